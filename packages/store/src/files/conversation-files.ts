import { link, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '@millrace/core';
import type { KeptMessage } from '../memory/appending.js';
import { isLeft } from './aside.js';
import { damaged } from './damage.js';
import { isTaken, namesIn, whenGone } from './failure.js';
import { newHolder } from './holder.js';
import { readLine, writeLine } from './line.js';
import { makeDirectory, syncDirectory, writeNew } from './make-directory.js';
import { lineEnd, segmentNumbers, segmentPath } from './segments.js';

/**
 * A conversation stands in numbered files. Each append makes the next one, which appears as a whole, or not at all where another writer has made it first. Every
 * so many files, one holds all messages, and those before it go.
 */
const filesBetweenWholes = 64;

/** What is known of a conversation up to a file. */
export interface Conversation {
  readonly number: number;
  readonly messages: readonly KeptMessage[];
}

/** One of which nothing is known yet. */
export const noConversation: Conversation = { number: 0, messages: [] };

/** Reads what has come to a conversation since it was known. */
export const readConversation = async (
  directory: string,
  known: Conversation = noConversation,
  tries = 5,
): Promise<Conversation> => {
  const last = (await segmentNumbers(directory)).at(-1) ?? 0;
  if (last <= known.number) return last === known.number ? known : noConversation;
  const whole = last - (last % filesBetweenWholes);
  const first = whole > known.number ? whole : known.number + 1;
  let messages = first === whole ? [] : known.messages;
  for (let number = Math.max(1, first); number <= last; number += 1) {
    const path = segmentPath(directory, number);
    const added = await messagesIn(path);
    if (added === undefined) {
      // The next whole one may just have taken its place.
      if (tries > 0) return readConversation(directory, noConversation, tries - 1);
      throw new MillraceError(
        'invalidState',
        `${path} is gone, and with it a part of the conversation. Restore the directory from a backup, or delete it to begin anew.`,
      );
    }
    messages = [...messages, ...added];
  }
  return { number: last, messages };
};

/** Adds messages behind what is known; nothing, where another one was first. */
export const addToConversation = async (
  directory: string,
  known: Conversation,
  added: readonly KeptMessage[],
): Promise<Conversation | undefined> => {
  await makeDirectory(directory);
  const number = known.number + 1;
  const next = { number, messages: [...known.messages, ...added] };
  const isWhole = number % filesBetweenWholes === 0;
  const isMade = await makeOnce(directory, number, textOf(isWhole ? next.messages : added));
  if (!isMade || !(await isCounted(directory, number, added))) return undefined;
  if (isWhole) await removeBefore(directory, number);
  return next;
};

/** Puts messages in the place of all there are, also where these are damaged: in the next file that holds all. */
export const replaceConversation = async (
  directory: string,
  messages: readonly KeptMessage[],
): Promise<Conversation> => {
  await makeDirectory(directory);
  const text = textOf(messages);
  for (;;) {
    const last = (await segmentNumbers(directory)).at(-1) ?? 0;
    const number = last - (last % filesBetweenWholes) + filesBetweenWholes;
    if (!(await makeOnce(directory, number, text))) continue;
    await removeBefore(directory, number);
    return { number, messages };
  }
};

const textOf = (messages: readonly KeptMessage[]): string =>
  messages.map((message) => writeLine('record', message)).join('');

const makeOnce = async (directory: string, number: number, text: string): Promise<boolean> => {
  const made = join(directory, newHolder() + unfinished);
  try {
    await writeNew(made, text);
    await link(made, segmentPath(directory, number));
    await syncDirectory(directory);
    return true;
  } catch (error) {
    if (isTaken(error)) return false;
    throw error;
  } finally {
    await rm(made, { force: true });
  }
};

/** A name is free again behind a whole one that has taken its place: who was stopped for that long has made a file that nobody reads. */
const isCounted = async (
  directory: string,
  number: number,
  added: readonly KeptMessage[],
): Promise<boolean> => {
  for (;;) {
    const whole = (await segmentNumbers(directory))
      .filter((later) => later > number && later % filesBetweenWholes === 0)
      .at(-1);
    if (whole === undefined) return true;
    const messages = await messagesIn(segmentPath(directory, whole));
    if (messages === undefined) continue;
    const ids = new Set(messages.map(({ id }) => id));
    if (added.every(({ id }) => ids.has(id))) return true;
    await rm(segmentPath(directory, number), { force: true });
    return false;
  }
};

/** Removes what came before, and what a crash has left. */
const removeBefore = async (directory: string, number: number): Promise<void> => {
  for (const old of await segmentNumbers(directory)) {
    if (old < number) await rm(segmentPath(directory, old), { force: true });
  }
  for (const name of await namesIn(directory)) {
    const path = join(directory, name);
    if (!name.endsWith(unfinished)) continue;
    const isOver = await isLeft(name.slice(0, -unfinished.length), path).catch(() => false);
    if (isOver) await rm(path, { force: true });
  }
};

const unfinished = '.tmp';

const messagesIn = async (path: string): Promise<readonly KeptMessage[] | undefined> => {
  const bytes = await whenGone(readFile(path), undefined);
  if (bytes === undefined) return undefined;
  const messages: KeptMessage[] = [];
  for (let start = 0, line = 1; start < bytes.length; line += 1) {
    const end = bytes.indexOf(lineEnd, start);
    const value = end === -1 ? undefined : readLine('record', bytes.subarray(start, end));
    const { id, text } = value ?? {};
    if (typeof id !== 'string' || typeof text !== 'string') throw damaged(path, line);
    messages.push({ id, text });
    start = end + 1;
  }
  return messages;
};
