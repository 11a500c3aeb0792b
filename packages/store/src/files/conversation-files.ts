import { link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Entry, type MessageTree, MillraceError } from 'millrace';
import { emptyTree, withoutBelow } from 'millrace/values';
import { jsonOf, packed } from '../memory/stored-messages.js';
import { isAbandoned } from './staging.js';
import { damaged } from './damage.js';
import { alreadyExists, ifMissing, readNames, readWhole } from './file-system.js';
import { newHolderId } from './holder-id.js';
import { readHead, writeHead } from './head.js';
import { readLine, writeLine } from './line.js';
import { makeDirectory, syncDirectories, writeNew } from './make-directory.js';
import { lineEnd, segmentNumbers, segmentPath } from './segments.js';
import { isPlace } from './session-file.js';

/**
 * A conversation is a sequence of numbered files, each with a head and some messages. Each change creates the next one atomically, and fails if another
 * writer created it first. Every 64th file is a snapshot that holds all messages; the files before it are deleted.
 *
 * A message has `after` only if it does not come after the message before it in the order of the files. A head has `head` only if the head of the
 * conversation is not the last message, and `removed` if a message was removed with those after it: the next file is then a snapshot.
 */
const snapshotInterval = 64;

/** A conversation as read up to the file `number`. */
export interface Conversation {
  readonly number: number;
  /** The number of the next file. */
  readonly next: number;
  /** Its messages are packed. */
  readonly tree: MessageTree;
}

export const noConversation: Conversation = { number: 0, next: 1, tree: emptyTree };

/** Reads the changes since `known`. */
export const readConversation = async (
  directory: string,
  known: Conversation = noConversation,
  tries = 5,
): Promise<Conversation> => {
  const last = (await segmentNumbers(directory)).at(-1) ?? 0;
  if (last <= known.number) return last === known.number ? known : noConversation;
  const snapshot = last - (last % snapshotInterval);
  let conversation = known;
  do {
    const number = snapshot > conversation.number ? snapshot : conversation.next;
    const path = segmentPath(directory, number);
    const lines = await linesIn(path);
    if (lines === undefined) {
      // The next snapshot may just have replaced it.
      if (tries > 0) return readConversation(directory, noConversation, tries - 1);
      throw new MillraceError(
        'invalidState',
        `${path} is missing: the conversation is incomplete. Restore the directory from a backup, or delete it to start over.`,
      );
    }
    const before = isSnapshot(number) ? emptyTree : conversation.tree;
    conversation = {
      number,
      next: lines.removed === undefined ? number + 1 : snapshotAfter(number),
      tree: treeAfter(path, before, lines),
    };
  } while (conversation.number < last);
  return conversation;
};

const isSnapshot = (number: number): boolean => number % snapshotInterval === 0;

const snapshotAfter = (number: number): number =>
  number - (number % snapshotInterval) + snapshotInterval;

export interface Changed {
  /** The tree after the change, with packed messages: the one before it and more entries, another head, or without `removed`. */
  readonly tree: MessageTree;
  /** The message that was removed, with those after it. */
  readonly removed?: string;
}

/** Writes a change of the known conversation. Resolves to undefined if another writer was first. */
export const changeConversation = async (
  directory: string,
  known: Conversation,
  { tree, removed }: Changed,
): Promise<Conversation | undefined> => {
  await makeDirectory(directory);
  const number = known.next;
  const added = removed === undefined ? tree.entries.slice(known.tree.entries.length) : [];
  const text = isSnapshot(number)
    ? textOf(tree.entries, tree, emptyTree)
    : textOf(added, tree, known.tree, removed);
  const isDone = (now: MessageTree): boolean => isIn(now, added, tree, removed);
  const isMade = await tryCreate(directory, number, text);
  if (!isMade || !(await isIncluded(directory, number, isDone))) return undefined;
  if (isSnapshot(number)) await removeBefore(directory, number);
  else if (removed !== undefined) {
    // Nothing of what was removed stays on disk.
    const marked = { number, next: snapshotAfter(number), tree };
    return (await changeConversation(directory, marked, { tree })) ?? marked;
  }
  return { number, next: number + 1, tree };
};

const isIn = (
  now: MessageTree,
  added: readonly Entry[],
  { head }: MessageTree,
  removed: string | undefined,
): boolean => {
  const ids = new Set(now.entries.map(({ message }) => message.id));
  if (removed !== undefined) return !ids.has(removed);
  if (added.length === 0) return now.head === head;
  return added.every(({ message }) => ids.has(message.id));
};

/** Replaces everything, even what is damaged, by writing the next snapshot. */
export const replaceConversation = async (
  directory: string,
  tree: MessageTree,
): Promise<Conversation> => {
  await makeDirectory(directory);
  const text = textOf(tree.entries, tree, emptyTree);
  for (;;) {
    const number = snapshotAfter((await segmentNumbers(directory)).at(-1) ?? 0);
    if (!(await tryCreate(directory, number, text))) continue;
    await removeBefore(directory, number);
    return { number, next: number + 1, tree };
  }
};

/** The text of a file with these entries, after which the conversation is `now`. */
const textOf = (
  entries: readonly Entry[],
  now: MessageTree,
  before: MessageTree,
  removed?: string,
): string => {
  const last = lastIn(now.entries);
  const head = writeHead({ removed, ...(now.head !== last && { head: now.head }) });
  let previous = lastIn(before.entries);
  const lines = entries.map(({ message, after }) => {
    const place = after === previous ? {} : { after };
    previous = message.id;
    return writeLine('record', { id: message.id, ...place, text: jsonOf(message) });
  });
  return head + lines.join('');
};

const lastIn = (entries: readonly Entry[]): string | null => entries.at(-1)?.message.id ?? null;

const tryCreate = async (directory: string, number: number, text: string): Promise<boolean> => {
  const made = join(directory, newHolderId() + tmpSuffix);
  try {
    await writeNew(made, text);
    await link(made, segmentPath(directory, number));
    await syncDirectories(directory);
    return true;
  } catch (error) {
    if (alreadyExists(error)) return false;
    throw error;
  } finally {
    await rm(made, { force: true });
  }
};

/**
 * A snapshot deletes the files before it, which frees their numbers. A writer that was suspended for that long has
 * created a file that no reader looks at; this detects it and deletes the file.
 */
const isIncluded = async (
  directory: string,
  number: number,
  isDone: (now: MessageTree) => boolean,
): Promise<boolean> => {
  for (;;) {
    const snapshot = (await segmentNumbers(directory))
      .filter((later) => later > number && isSnapshot(later))
      .at(-1);
    if (snapshot === undefined) return true;
    const path = segmentPath(directory, snapshot);
    const lines = await linesIn(path);
    if (lines === undefined) continue;
    if (isDone(treeAfter(path, emptyTree, lines))) return true;
    await rm(segmentPath(directory, number), { force: true });
    return false;
  }
};

/** Removes the earlier files, and the temporary files of crashed processes. */
const removeBefore = async (directory: string, number: number): Promise<void> => {
  for (const old of await segmentNumbers(directory)) {
    if (old < number) await rm(segmentPath(directory, old), { force: true });
  }
  for (const name of await readNames(directory)) {
    const path = join(directory, name);
    if (!name.endsWith(tmpSuffix)) continue;
    const holderId = name.slice(0, -tmpSuffix.length);
    if (await isAbandoned(holderId, path).catch(() => false)) await rm(path, { force: true });
  }
};

const tmpSuffix = '.tmp';

interface Lines {
  readonly head?: string | null;
  readonly removed?: string;
  readonly records: readonly {
    readonly id: string;
    readonly text: string;
    readonly after?: string | null;
  }[];
}

const linesIn = async (path: string): Promise<Lines | undefined> => {
  const bytes = await ifMissing(readWhole(path), undefined);
  if (bytes === undefined) return undefined;
  const firstEnd = bytes.indexOf(lineEnd);
  const first = firstEnd === -1 ? undefined : readHead(path, bytes.subarray(0, firstEnd));
  if (first === undefined) throw damaged(path, 1);
  const { head, removed } = first;
  const records: Lines['records'][number][] = [];
  for (let start = firstEnd + 1, line = 2; start < bytes.length; line += 1) {
    const end = bytes.indexOf(lineEnd, start);
    const value = end === -1 ? undefined : readLine('record', bytes.subarray(start, end));
    const { id, text, after } = value ?? {};
    if (typeof id !== 'string' || typeof text !== 'string') throw damaged(path, line);
    records.push({ id, text, ...(isPlace(after) && { after }) });
    start = end + 1;
  }
  return {
    records,
    ...(isPlace(head) && { head }),
    ...(typeof removed === 'string' && { removed }),
  };
};

const treeAfter = (path: string, before: MessageTree, lines: Lines): MessageTree => {
  const { head, removed, records } = lines;
  const isThere = (id: string): boolean => entries.some(({ message }) => message.id === id);
  const entries = [...before.entries];
  if (removed !== undefined) {
    if (!isThere(removed)) throw damaged(path, 1);
    entries.splice(0, entries.length, ...withoutBelow(before, removed).entries);
  }
  records.forEach(({ id, text, after = lastIn(entries) }, index) => {
    // Without `after`, it comes after one that is there.
    const isKnown = records[index]?.after === undefined || after === null || isThere(after);
    if (!isKnown) throw damaged(path, index + 2);
    entries.push({ message: packed(id, text), after });
  });
  if (typeof head === 'string' && !isThere(head)) throw damaged(path, 1);
  return { entries, head: head === undefined ? lastIn(entries) : head };
};
