import type { Message } from '../../values/message.js';
import {
  checkTree,
  type Entry,
  lineOf,
  type MessageTree,
  pathTo,
} from '../../values/message-tree.js';

/** A message that is not on the branch of `messages`. */
export interface BranchEntry extends Entry {
  /** The number of messages, of all branches, that were added before it. */
  readonly at: number;
}

/** A conversation as a state has it: the path of its head, and what is beside it. */
export interface StoredTree {
  readonly messages: readonly Message[];
  readonly branches?: readonly BranchEntry[];
}

export const storedTree = (tree: MessageTree): StoredTree => {
  const messages = pathTo(tree);
  if (messages.length === tree.entries.length) return { messages };
  const path = new Set(messages.map(({ id }) => id));
  const branches = tree.entries.flatMap(({ message, after }, at) =>
    path.has(message.id) ? [] : [{ at, after, message }],
  );
  return { messages, branches };
};

/** Throws `invalidState` if it is damaged. */
export const treeOfState = ({ messages, branches = [] }: StoredTree): MessageTree => {
  const { entries: path, head } = lineOf(messages);
  if (branches.length === 0) return { entries: path, head };
  const entries: Entry[] = [];
  let next = 0;
  for (const { at, after, message } of branches.toSorted((one, other) => one.at - other.at)) {
    const before = path.slice(next, next + Math.max(0, at - entries.length));
    entries.push(...before, { message, after });
    next += before.length;
  }
  const tree = { entries: [...entries, ...path.slice(next)], head };
  checkTree(tree);
  return tree;
};
