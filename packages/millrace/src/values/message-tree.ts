import { MillraceError } from './errors.js';
import type { Message } from './message.js';

/** A message of a conversation, and the id of the message before it: `null` at the beginning. Neither ever changes. */
export interface Entry {
  readonly message: Message;
  readonly after: string | null;
}

/**
 * A conversation with its branches. A branch begins after the end of a call, or after a question, never between a tool call and
 * its result.
 */
export interface MessageTree {
  /** In the order in which they were added: a message comes after the one before it. */
  readonly entries: readonly Entry[];
  /** The last message of the branch that is continued by default; `null` in an empty conversation. */
  readonly head: string | null;
}

/** The place of an append. */
export interface Place {
  /** The id of the message that the first new message comes after; `null` for the beginning. Default: the head. */
  readonly after?: string | null;
  /** The head moves to the new messages also if it is this message, or comes after it. */
  readonly replaces?: string;
}

export const emptyTree: MessageTree = { entries: [], head: null };

/** A conversation without branches. */
export const lineOf = (messages: readonly Message[]): MessageTree => ({
  entries: messages.map((message, index) => ({ message, after: messages[index - 1]?.id ?? null })),
  head: messages.at(-1)?.id ?? null,
});

/**
 * The messages from the beginning to a message, oldest first. `at`: the id of a message, or of a call for its last message;
 * default: the head. Throws `conflict` (409) if the tree has neither.
 */
export const pathTo = (tree: MessageTree, at: string | null = tree.head): readonly Message[] => {
  if (at === null) return [];
  const { entries } = tree;
  const path: Message[] = [];
  let next: string | null = idIn(tree, at);
  // A message comes after the one before it, so one pass from the end meets them in order.
  for (let index = entries.length - 1; index >= 0 && next !== null; index -= 1) {
    const entry = entries[index];
    if (entry?.message.id !== next) continue;
    path.push(entry.message);
    next = entry.after;
  }
  return path.reverse();
};

/**
 * Adds messages after a message, each after the one before, and skips known ids. Returns the tree, and the id of the message before the
 * first one. Throws `conflict` (409) if `after` is unknown.
 */
export const appendedTo = (
  tree: MessageTree,
  messages: readonly Message[],
  { after: given, replaces }: Place = {},
): { readonly tree: MessageTree; readonly after: string | null } => {
  const known = new Map(tree.entries.map(({ message, after }) => [message.id, after]));
  const from = given === undefined ? tree.head : given === null ? null : idIn(tree, given);
  const { added, after, last } = chained(messages, known, from);
  const [first] = added;
  if (first === undefined) return { tree, after };
  const mayMove = tree.head === first.after || isAtOrBelow(tree, tree.head, replaces);
  return {
    tree: { entries: [...tree.entries, ...added], head: mayMove ? last : tree.head },
    after,
  };
};

/** Chains messages, each after the one before; those with known ids keep their place, and the next one comes after them. */
export const chained = (
  messages: readonly Message[],
  known: ReadonlyMap<string, string | null>,
  after: string | null,
): {
  readonly added: readonly Entry[];
  /** The id of the message before the first one. */
  readonly after: string | null;
  readonly last: string | null;
} => {
  const added: Entry[] = [];
  const own = new Set<string>();
  let last = after;
  for (const message of messages) {
    const { id } = message;
    if (own.has(id)) continue;
    if (!known.has(id)) {
      added.push({ message, after: last });
      own.add(id);
    }
    last = id;
  }
  const former = known.get(messages[0]?.id ?? '');
  return { added, after: former === undefined ? after : former, last };
};

/** Lists of entries of one conversation, each made by adding to the one before; `length` is that of the latest. */
const growths = new WeakMap<readonly Entry[], { length: number }>();

/** A longer list of entries. `addedSince` knows without comparing that it begins with the former. */
export const grown = (entries: readonly Entry[], added: readonly Entry[]): readonly Entry[] => {
  const now = entries.concat(added);
  const known = growths.get(entries);
  // A list that grows from an earlier one than the latest is another conversation.
  const growth = known?.length === entries.length ? known : { length: 0 };
  growth.length = now.length;
  if (known === undefined) growths.set(entries, growth);
  growths.set(now, growth);
  return now;
};

/** The entries that were added to a former list; `undefined` if the list does not begin with the same entries, by identity. */
export const addedSince = (
  former: readonly Entry[],
  entries: readonly Entry[],
): readonly Entry[] | undefined => {
  if (entries.length < former.length) return undefined;
  const growth = growths.get(former);
  const isKnown = entries === former || (growth !== undefined && growths.get(entries) === growth);
  return isKnown || former.every((entry, index) => entry === entries[index])
    ? entries.slice(former.length)
    : undefined;
};

/** A message and those that come after the same message, the oldest first. Throws `conflict` (409) if it is unknown. */
export const siblingsOf = (tree: MessageTree, at: string): readonly string[] => {
  const id = idIn(tree, at);
  const after = tree.entries.find(({ message }) => message.id === id)?.after;
  return tree.entries.filter((entry) => entry.after === after).map(({ message }) => message.id);
};

/** The last message of the branch below a message that was added last. Throws `conflict` (409) if it is unknown. */
export const leafBelow = (tree: MessageTree, at: string): string => {
  const below = idsBelow(tree, idIn(tree, at));
  return tree.entries.findLast(({ message }) => below.has(message.id))?.message.id ?? at;
};

/** The tree without a message and those after it. A head among them moves to the newest branch that is left. Throws `conflict` (409) if it is unknown. */
export const withoutBelow = (tree: MessageTree, at: string): MessageTree => {
  const id = idIn(tree, at);
  const below = idsBelow(tree, id);
  const { after = null } = tree.entries.find(({ message }) => message.id === id) ?? {};
  const entries = tree.entries.filter(({ message }) => !below.has(message.id));
  if (tree.head === null || !below.has(tree.head)) return { ...tree, entries };
  const rest = { entries, head: entries.at(-1)?.message.id ?? null };
  return after === null ? rest : { entries, head: leafBelow(rest, after) };
};

/** The tree with another head. Throws `conflict` (409) if it is unknown. */
export const movedTo = (tree: MessageTree, head: string): MessageTree => ({
  ...tree,
  head: idIn(tree, head),
});

/** The id of a message, or of the last one of a call. Throws `conflict` (409) if the tree has neither. */
export const idIn = ({ entries, head }: MessageTree, at: string): string => {
  const own = `${at}/`;
  const found =
    entries.find(({ message }) => message.id === at) ??
    entries.findLast(({ message }) => message.id.startsWith(own));
  if (found === undefined) throw unknownPlace(at, head);
  return found.message.id;
};

export const unknownPlace = (at: string, head: string | null): MillraceError =>
  new MillraceError(
    'conflict',
    `The conversation has no message '${at.slice(0, 100)}' to continue after. ${head === null ? 'It is empty' : `Its head is '${head}'`}: load it again.`,
    { status: 409, userMessage: 'The conversation has changed. Load it again.' },
  );

/** Throws `invalidState` if these are no tree: an id twice, a message after an unknown or later one, or an unknown head. */
export const checkTree = ({ entries, head }: MessageTree): void => {
  const known = new Set<string>();
  for (const { message, after } of entries) {
    if (known.has(message.id)) throw noTree(`The message '${message.id}' is there twice.`);
    if (after !== null && !known.has(after)) throw noTree(`No message '${after}' comes first.`);
    known.add(message.id);
  }
  if (head !== null && !known.has(head)) throw noTree(`There is no message '${head}', its head.`);
  if (head === null && known.size > 0) throw noTree('It has messages, but no head.');
};

const noTree = (why: string): MillraceError =>
  new MillraceError('invalidState', `The conversation is damaged. ${why}`);

const isAtOrBelow = (tree: MessageTree, id: string | null, top: string | undefined): boolean =>
  top !== undefined && id !== null && pathTo(tree, id).some((message) => message.id === top);

const idsBelow = ({ entries }: MessageTree, top: string): ReadonlySet<string> => {
  const below = new Set([top]);
  for (const { message, after } of entries) {
    if (after !== null && below.has(after)) below.add(message.id);
  }
  return below;
};
