import { join } from 'node:path';
import type { MemoryChange, MessageTree } from 'millrace';
import { appendedTo, checkTree, movedTo, pathTo, siblingsOf, withoutBelow } from 'millrace/values';
import { pack, unpack, withMessages } from '../memory/stored-messages.js';
import type { StoredMemory, StoredMemoryFactory } from '../memory/stored-memory.js';
import { checkId, storedName } from '../stored-name.js';
import {
  changeConversation,
  type Changed,
  type Conversation,
  noConversation,
  readConversation,
  replaceConversation,
} from './conversation-files.js';
import { directoryMissing } from './file-system.js';
import { fileWork$, type Part, partsOf } from './file-work.js';

/**
 * Stores conversations, each in its own subdirectory that only this user can read. Messages are on disk when their
 * append completes. Two processes that append after the same message create two branches.
 */
export const fileMemory = (directory: string): StoredMemoryFactory =>
  memoryIn(partsOf(directory)(''));

export const memoryIn =
  (part: Part): StoredMemoryFactory =>
  (sessionId) => {
    checkId('A session', sessionId);
    return conversationIn(part, sessionId);
  };

const conversationIn = (part: Part, sessionId: string): StoredMemory => {
  const path = join(part.root, storedName(sessionId));
  const state: { known: Conversation } = { known: noConversation };
  const read = async (): Promise<MessageTree> => {
    state.known = await readConversation(path, state.known);
    return state.known.tree;
  };
  /** Makes a change of the conversation as it is, however many others change it meanwhile. */
  const update = async (make: (tree: MessageTree) => Update): Promise<MemoryChange> => {
    for (;;) {
      const before = state.known;
      const known = await readConversation(path, before);
      if (known.number < before.number) throw directoryMissing(part.root);
      state.known = known;
      const { change, ...changed } = make(known.tree);
      const isSame = changed.tree === known.tree;
      const next = isSame ? known : await changeConversation(path, known, changed);
      if (next === undefined) continue;
      state.known = next;
      return { ...change, head: { from: known.tree.head, to: next.tree.head } };
    }
  };
  return {
    load$: ({ at } = {}) => fileWork$(part, async () => pathTo(await read(), at).map(unpack)),
    last$: ({ at } = {}) =>
      fileWork$(part, async () => pathTo(await read(), at).at(-1)?.id ?? null),
    append$: (messages, place) =>
      fileWork$(part, async () => {
        const packed = messages.map(pack);
        return update((before) => {
          const { tree, after } = appendedTo(before, packed, place);
          return { tree, change: { appended: messages, removed: [], after } };
        });
      }),
    branches$: (at) => fileWork$(part, async () => siblingsOf(await read(), at)),
    moveHead$: (to) =>
      fileWork$(part, () =>
        update((before) => {
          const tree = movedTo(before, to);
          const isSame = tree.head === before.head;
          return { tree: isSame ? before : tree, change: { appended: [], removed: [] } };
        }),
      ),
    remove$: (at) => fileWork$(part, () => update((before) => withoutMessage(before, at))),
    all$: () => fileWork$(part, async () => withMessages(await read(), unpack)),
    replace$: (tree) =>
      fileWork$(part, async () => {
        checkTree(tree);
        state.known = await replaceConversation(path, withMessages(tree, pack));
      }),
  };
};

interface Update extends Changed {
  readonly change: Omit<MemoryChange, 'head'>;
}

const withoutMessage = (before: MessageTree, at: string): Update => {
  const tree = withoutBelow(before, at);
  const left = new Set(tree.entries.map(({ message }) => message.id));
  const ids = before.entries.map(({ message }) => message.id);
  const removed = ids.filter((id) => !left.has(id));
  // The first of them is the one that the others come after.
  const [top] = removed;
  return { tree, ...(top !== undefined && { removed: top }), change: { appended: [], removed } };
};
