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
import { wholeOf } from '../../memories/window-memory.js';
import type { Message } from '../../values/message.js';
import {
  emptyTree,
  type Entry,
  lineOf,
  type MessageTree,
  pathTo,
} from '../../values/message-tree.js';
import { isMessage } from '../../values/shape.js';

export const watchedMemory = (memory: Memory, report: (change: MessagesChange) => void): Memory => {
  const reporting =
    (byDefault?: MemoryChange) =>
    (work$: Observable<unknown>): Observable<unknown> =>
      defer(() => {
        let change = byDefault;
        return work$.pipe(
          tap({
            next: (emitted) => {
              if (isMemoryChange(emitted)) change = emitted;
            },
            complete: () => {
              if (change !== undefined) memoryChanges(change).forEach(report);
            },
          }),
        );
      });
  const { moveHead$, remove$, replace$, ...whole } = wholeOf(memory);
  return {
    ...whole,
    load$: (options) => memory.load$(options),
    append$: (messages, options) =>
      defer(() => memory.append$(messages, options)).pipe(
        reporting({ appended: messages, removed: [] }),
      ),
    ...(moveHead$ && { moveHead$: (to) => moveHead$(to).pipe(reporting()) }),
    ...(remove$ && { remove$: (at) => remove$(at).pipe(reporting()) }),
    ...(replace$ && {
      replace$: (tree) =>
        once$(kept$(memory)).pipe(
          concatMap((before) =>
            replace$(tree).pipe(
              tap({
                complete: () => {
                  differences(before, tree).flatMap(memoryChanges).forEach(report);
                },
              }),
            ),
          ),
        ),
    }),
  };
};

/** The removals, then the appends of each branch, that lead from one tree to another. */
const differences = (before: MessageTree, now: MessageTree): readonly MemoryChange[] => {
  const found = before.entries.findIndex((entry, index) => !equal(entry, now.entries[index]));
  const from = found === -1 ? before.entries.length : found;
  const removed = before.entries.slice(from).map(({ message }) => message.id);
  const lines = now.entries.slice(from).reduce<readonly (readonly Entry[])[]>((all, entry) => {
    const line = all.at(-1);
    return line !== undefined && line.at(-1)?.message.id === entry.after
      ? [...all.slice(0, -1), [...line, entry]]
      : [...all, [entry]];
  }, []);
  const left = before.entries.slice(0, from);
  const last = lines.at(-1)?.at(-1) ?? left.at(-1);
  return [
    { appended: [], removed },
    ...lines.map((line) => ({
      appended: line.map(({ message }) => message),
      removed: [],
      ...(line[0] && { after: line[0].after }),
    })),
    { appended: [], removed: [], head: { from: last?.message.id ?? null, to: now.head } },
  ];
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
    once$(kept$(own)).pipe(map(({ entries }) => entries.length > 0));
  const past$ = (messages$: Observable<readonly Message[]>): Observable<readonly Message[]> =>
    messages$.pipe(
      take(1),
      defaultIfEmpty([]),
      map((messages) => messagesBeforeFork(messages, fork)),
    );
  const all$ = defer(() => kept$(original)).pipe(map((tree) => pathTo(tree)));
  // Until it is copied, the last message is one of the original.
  const { last$: _, ...whole } = wholeOf(own);
  return {
    ...whole,
    load$: (options) =>
      defer(isCopied$).pipe(
        concatMap((isCopied) => (isCopied ? own.load$(options) : past$(original.load$(options)))),
      ),
    all$: () =>
      defer(isCopied$).pipe(
        concatMap((isCopied) => (isCopied ? kept$(own) : past$(all$).pipe(map(lineOf)))),
      ),
    append$: (messages, options) =>
      defer(isCopied$).pipe(
        concatMap((isCopied) =>
          isCopied
            ? own.append$(messages, options)
            : past$(all$).pipe(concatMap((past) => appended$(own, [...past, ...messages]))),
        ),
      ),
  };
};

const once$ = (tree$: Observable<MessageTree>): Observable<MessageTree> =>
  tree$.pipe(take(1), defaultIfEmpty(emptyTree));

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
