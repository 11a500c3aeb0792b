import { link, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '@millrace/core';
import type { StoredMessage } from '../memory/stored-messages.js';
import { isAbandoned } from './staging.js';
import { damaged } from './damage.js';
import { alreadyExists, readNames, ifMissing } from './file-system.js';
import { newHolderId } from './holder-id.js';
import { readHead, writeHead } from './head.js';
import { readLine, writeLine } from './line.js';
import { makeDirectory, syncDirectories, writeNew } from './make-directory.js';
import { lineEnd, segmentNumbers, segmentPath } from './segments.js';

/**
 * A conversation is a sequence of numbered files, each with a head and some messages. Each append creates the next one atomically, and fails if another
 * writer created it first. Every 64th file is a snapshot that holds all messages; the files before it are deleted.
 */
const snapshotInterval = 64;

/** A conversation as read up to the file `number`. */
export interface Conversation {
  readonly number: number;
  readonly messages: readonly StoredMessage[];
}

export const noConversation: Conversation = { number: 0, messages: [] };

/** Reads the messages that were added since `known`. */
export const readConversation = async (
  directory: string,
  known: Conversation = noConversation,
  tries = 5,
): Promise<Conversation> => {
  const last = (await segmentNumbers(directory)).at(-1) ?? 0;
  if (last <= known.number) return last === known.number ? known : noConversation;
  const snapshot = last - (last % snapshotInterval);
  const first = snapshot > known.number ? snapshot : known.number + 1;
  let messages = first === snapshot ? [] : known.messages;
  for (let number = Math.max(1, first); number <= last; number += 1) {
    const path = segmentPath(directory, number);
    const added = await messagesIn(path);
    if (added === undefined) {
      // The next snapshot may just have replaced it.
      if (tries > 0) return readConversation(directory, noConversation, tries - 1);
      throw new MillraceError(
        'invalidState',
        `${path} is missing: the conversation is incomplete. Restore the directory from a backup, or delete it to start over.`,
      );
    }
    messages = [...messages, ...added];
  }
  return { number: last, messages };
};

/** Adds messages after the known ones. Resolves to undefined if another writer was first. */
export const addToConversation = async (
  directory: string,
  known: Conversation,
  added: readonly StoredMessage[],
): Promise<Conversation | undefined> => {
  await makeDirectory(directory);
  const number = known.number + 1;
  const next = { number, messages: [...known.messages, ...added] };
  const isSnapshot = number % snapshotInterval === 0;
  const isMade = await tryCreate(directory, number, textOf(isSnapshot ? next.messages : added));
  if (!isMade || !(await isIncluded(directory, number, added))) return undefined;
  if (isSnapshot) await removeBefore(directory, number);
  return next;
};

/** Replaces all messages, even damaged ones, by writing the next snapshot. */
export const replaceConversation = async (
  directory: string,
  messages: readonly StoredMessage[],
): Promise<Conversation> => {
  await makeDirectory(directory);
  const text = textOf(messages);
  for (;;) {
    const last = (await segmentNumbers(directory)).at(-1) ?? 0;
    const number = last - (last % snapshotInterval) + snapshotInterval;
    if (!(await tryCreate(directory, number, text))) continue;
    await removeBefore(directory, number);
    return { number, messages };
  }
};

const textOf = (messages: readonly StoredMessage[]): string =>
  writeHead() + messages.map((message) => writeLine('record', message)).join('');

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
  added: readonly StoredMessage[],
): Promise<boolean> => {
  for (;;) {
    const snapshot = (await segmentNumbers(directory))
      .filter((later) => later > number && later % snapshotInterval === 0)
      .at(-1);
    if (snapshot === undefined) return true;
    const messages = await messagesIn(segmentPath(directory, snapshot));
    if (messages === undefined) continue;
    const ids = new Set(messages.map(({ id }) => id));
    if (added.every(({ id }) => ids.has(id))) return true;
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

const messagesIn = async (path: string): Promise<readonly StoredMessage[] | undefined> => {
  const bytes = await ifMissing(readFile(path), undefined);
  if (bytes === undefined) return undefined;
  const firstEnd = bytes.indexOf(lineEnd);
  const head = firstEnd === -1 ? undefined : readHead(path, bytes.subarray(0, firstEnd));
  if (head === undefined) throw damaged(path, 1);
  const messages: StoredMessage[] = [];
  for (let start = firstEnd + 1, line = 2; start < bytes.length; line += 1) {
    const end = bytes.indexOf(lineEnd, start);
    const value = end === -1 ? undefined : readLine('record', bytes.subarray(start, end));
    const { id, text } = value ?? {};
    if (typeof id !== 'string' || typeof text !== 'string') throw damaged(path, line);
    messages.push({ id, text });
    start = end + 1;
  }
  return messages;
};
