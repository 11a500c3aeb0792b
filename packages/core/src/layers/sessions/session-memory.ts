import equal from 'fast-deep-equal';
import { concatMap, defaultIfEmpty, defer, map, type Observable, take, tap } from 'rxjs';
import type { Fork } from '../../journal/call-record.js';
import { renamed } from '../../journal/forked-records.js';
import { memoryChanges, type MessagesChange } from '../../phases/remember.js';
import {
  appended$,
  isMemoryChange,
  kept$,
  type Memory,
  type MemoryChange,
} from '../../values/memory.js';
import type { Message } from '../../values/message.js';
import { isMessage } from '../../values/shape.js';

/** A memory that reports its changes. */
export const watchedMemory = (memory: Memory, report: (change: MessagesChange) => void): Memory => {
  const replace$ = memory.replace$?.bind(memory);
  return {
    load$: () => memory.load$(),
    all$: () => kept$(memory),
    append$: (messages, hasFailed) =>
      defer(() => {
        let change: MemoryChange = { appended: messages, removed: [] };
        return memory.append$(messages, hasFailed).pipe(
          tap({
            next: (emitted) => {
              if (isMemoryChange(emitted)) change = emitted;
            },
            complete: () => memoryChanges(change).forEach(report),
          }),
        );
      }),
    ...(replace$ !== undefined && {
      replace$: (messages: readonly Message[]): Observable<unknown> =>
        once$(kept$(memory)).pipe(
          concatMap((before) =>
            replace$(messages).pipe(
              tap({ complete: () => memoryChanges(difference(before, messages)).forEach(report) }),
            ),
          ),
        ),
    }),
  };
};

const difference = (before: readonly Message[], after: readonly Message[]): MemoryChange => {
  const found = before.findIndex((message, index) => !equal(message, after[index]));
  const from = found === -1 ? before.length : found;
  return { appended: after.slice(from), removed: before.slice(from).map(({ id }) => id) };
};

/** A copy, `<session>~<fork>`, without what the forked call added after the fork point. The original stays as it is. */
export const forkedSession = <Session extends { readonly id: string; readonly memory: Memory }>(
  named: Session,
  forks: readonly Fork[],
  sessionOf: (sessionId: string) => Session,
): Session =>
  forks.reduce((original, fork) => {
    const copy = sessionOf(`${named.id}~${fork.to}`);
    return { ...copy, memory: copiedMemory(original.memory, copy.memory, fork) };
  }, named);

const copiedMemory = (original: Memory, own: Memory, fork: Fork): Memory => {
  const isCopied$ = (): Observable<boolean> =>
    once$(kept$(own)).pipe(map(({ length }) => length > 0));
  const past$ = (messages$: Observable<readonly Message[]>): Observable<readonly Message[]> =>
    once$(messages$).pipe(map((messages) => messagesBeforeFork(messages, fork)));
  const replace$ = own.replace$?.bind(own);
  return {
    load$: () =>
      defer(isCopied$).pipe(
        concatMap((isCopied) => (isCopied ? own.load$() : past$(original.load$()))),
      ),
    all$: () =>
      defer(isCopied$).pipe(
        concatMap((isCopied) => (isCopied ? kept$(own) : past$(kept$(original)))),
      ),
    append$: (messages, hasFailed) =>
      defer(isCopied$).pipe(
        concatMap((isCopied) =>
          isCopied
            ? own.append$(messages, hasFailed)
            : past$(kept$(original)).pipe(
                concatMap((past) => appended$(own, [...past, ...messages])),
              ),
        ),
      ),
    ...(replace$ !== undefined && { replace$ }),
  };
};

const once$ = (messages$: Observable<readonly Message[]>): Observable<readonly Message[]> =>
  messages$.pipe(take(1), defaultIfEmpty<readonly Message[], readonly Message[]>([]));

const messagesBeforeFork = (
  messages: readonly Message[],
  { from, to, calls }: Fork,
): readonly Message[] =>
  messages.flatMap((message) => {
    const { id } = message;
    if (!id.startsWith(`${from}/`)) return [message];
    const isKept = calls.some((call) => id.startsWith(`${from}/${call}/`));
    const kept = isKept ? renamed(message, from, to) : undefined;
    return isMessage(kept) ? [kept] : [];
  });
