import equal from 'fast-deep-equal';
import { concatMap, defaultIfEmpty, defer, type Observable, take, tap } from 'rxjs';
import { isMemoryChange, kept$, type Memory, type MemoryChange } from '../memory.js';
import { memoryChanges, type MessagesChange } from '../memory-changes.js';
import type { Message } from '../message.js';

/** The memory of a session as a program has it: what the program does to the messages is told. */
export const watchedMemory = (memory: Memory, tell: (change: MessagesChange) => void): Memory => {
  const replace$ = memory.replace$?.bind(memory);
  return {
    load$: () => memory.load$(),
    all$: () => kept$(memory),
    append$: (messages) =>
      defer(() => {
        let change: MemoryChange = { appended: messages, removed: [] };
        return memory.append$(messages).pipe(
          tap({
            next: (emitted) => {
              if (isMemoryChange(emitted)) change = emitted;
            },
            complete: () => memoryChanges(change).forEach(tell),
          }),
        );
      }),
    ...(replace$ !== undefined && {
      replace$: (messages: readonly Message[]): Observable<unknown> =>
        kept$(memory).pipe(
          take(1),
          defaultIfEmpty<readonly Message[], readonly Message[]>([]),
          concatMap((before) =>
            replace$(messages).pipe(
              tap({
                complete: () => memoryChanges(difference(before, messages)).forEach(tell),
              }),
            ),
          ),
        ),
    }),
  };
};

/** What stands before the first difference is left out of it. */
const difference = (before: readonly Message[], after: readonly Message[]): MemoryChange => {
  const found = before.findIndex((message, index) => !equal(message, after[index]));
  const from = found === -1 ? before.length : found;
  return { appended: after.slice(from), removed: before.slice(from).map(({ id }) => id) };
};
