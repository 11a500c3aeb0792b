import { defer, type Observable, of } from 'rxjs';
import type { AppendOptions, Memory, MemoryChange } from '../values/memory.js';
import type { Message } from '../values/message.js';
import {
  chained,
  checkTree,
  emptyTree,
  grown,
  idIn,
  type MessageTree,
  movedTo,
  pathTo,
  siblingsOf,
  withoutBelow,
} from '../values/message-tree.js';

export type MemoryFactory = (sessionId: string) => Memory;

/** Keeps conversations in this process, with their branches, as long as the factory is referenced. */
export const inProcessMemory = (): MemoryFactory => {
  const conversations = new Map<string, Conversation>();
  return (sessionId) => {
    const current = (): Conversation => conversations.get(sessionId) ?? conversationOf(emptyTree);
    const set = (conversation: Conversation): void => {
      if (conversation.tree.entries.length === 0) conversations.delete(sessionId);
      else conversations.set(sessionId, conversation);
    };
    /** Changes the conversation, and emits the change. */
    const changed$ = (
      change: (before: Conversation) => readonly [Conversation, Omit<MemoryChange, 'head'>],
    ): Observable<MemoryChange> =>
      defer(() => {
        const before = current();
        const [now, made] = change(before);
        set(now);
        return of({ ...made, head: { from: before.tree.head, to: now.tree.head } });
      });
    return {
      load$: ({ at } = {}) =>
        defer(() => {
          const { tree, path } = current();
          return of(at === undefined || at === tree.head ? path : pathTo(tree, at));
        }),
      last$: ({ at } = {}) =>
        defer(() => {
          const { tree } = current();
          return of(at === undefined ? tree.head : at === null ? null : idIn(tree, at));
        }),
      append$: (messages, options) =>
        changed$((before) => {
          const [now, after] = withAppended(before, messages, options);
          return [now, { appended: messages, removed: [], after }];
        }),
      branches$: (at) => defer(() => of(siblingsOf(current().tree, at))),
      moveHead$: (to) =>
        changed$(({ tree }) => [conversationOf(movedTo(tree, to)), { appended: [], removed: [] }]),
      remove$: (at) =>
        changed$(({ tree }) => {
          const now = conversationOf(withoutBelow(tree, at));
          const removed = tree.entries.flatMap(({ message: { id } }) =>
            now.ids.has(id) ? [] : [id],
          );
          return [now, { appended: [], removed }];
        }),
      all$: () => defer(() => of(current().tree)),
      replace$: (tree) =>
        defer(() => {
          checkTree(tree);
          set(conversationOf(tree));
          return of(undefined);
        }),
    };
  };
};

/** A conversation, with what is asked for most: the path to its head, and the message before each, by id. */
interface Conversation {
  readonly tree: MessageTree;
  readonly path: readonly Message[];
  /** Grows with the conversation that has it last. */
  readonly ids: Map<string, string | null>;
}

const conversationOf = (tree: MessageTree): Conversation => ({
  tree,
  path: pathTo(tree),
  ids: new Map(tree.entries.map(({ message, after }) => [message.id, after])),
});

const withAppended = (
  { tree, path, ids }: Conversation,
  messages: readonly Message[],
  { after: given, replaces }: AppendOptions = {},
): readonly [Conversation, after: string | null] => {
  const { entries, head } = tree;
  const isHead = given === undefined || given === head;
  const from = isHead ? head : given === null ? null : idIn(tree, given);
  const { added, after, last } = chained(messages, ids, from);
  const [first] = added;
  if (first === undefined) return [{ tree, path, ids }, after];
  for (const entry of added) ids.set(entry.message.id, entry.after);
  const isNext = first.after === head;
  const isMoved = isNext || path.some(({ id }) => id === replaces);
  const next: MessageTree = { entries: grown(entries, added), head: isMoved ? last : head };
  const own = added.map(({ message }) => message);
  return [
    { tree: next, path: isNext ? path.concat(own) : isMoved ? pathTo(next) : path, ids },
    after,
  ];
};
