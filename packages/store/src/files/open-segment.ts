import { rmdirSync, unlinkSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { MillraceError } from '@millrace/core';
import { alreadyExists, ignoreErrors, isNotFound } from './file-system.js';
import { writeHead } from './head.js';
import { makeUnsynced } from './make-directory.js';
import type { Cursor } from './read-batches.js';
import { beginning, readSegmentFrom } from './read-call.js';
import {
  readSegment,
  type Segment,
  type SegmentHead,
  segmentNumbers,
  segmentPath,
} from './segments.js';

/** A segment that is open for writing. */
export interface OpenSegment {
  readonly number: number;
  readonly file: FileHandle;
  readonly ino: number;
  /** After its head. */
  readonly cursor: Cursor;
  /** Removes the segment of a call without records, and with it the call. Requires the lock. */
  readonly remove: () => void;
}

/** Starts the next segment of a call, which seals the earlier ones; undefined if another process started it first. */
export const openSegment = async (
  directory: string,
  callId: string,
  now: number,
): Promise<OpenSegment | undefined> => {
  await makeUnsynced(directory);
  const earlier = await segmentNumbers(directory);
  const number = (earlier.at(-1) ?? 0) + 1;
  const file = await createSegment(segmentPath(directory, number));
  if (file === undefined) return undefined;
  try {
    // Read the earlier segments only now: a writer to one of them sees the new segment before it confirms a write.
    const last = await lastOf(directory, earlier);
    if (last !== undefined && last.callId !== callId) throw renamed(directory, last.callId);
    const { position, offset } = await endOf(directory, last);
    const ends = earlier
      .filter((it) => it >= (last?.number ?? 0))
      .map((it) => [it, it === last?.number ? offset : 0] as const);
    const head: SegmentHead = { callId, after: position, ends, at: now };
    const line = Buffer.from(writeHead(head));
    await file.appendFile(line);
    const { ino } = await file.stat();
    const cursor = { ...beginning, segment: number, offset: line.length, line: 1, position };
    const remove = (): void => ignoreErrors(() => removeSegment(directory, number));
    return { number, file, ino, cursor, remove };
  } catch (error) {
    await file.close();
    await rm(segmentPath(directory, number), { force: true });
    throw error;
  }
};

/** Keeps the directory if it has other files. */
const removeSegment = (directory: string, number: number): void => {
  unlinkSync(segmentPath(directory, number));
  rmdirSync(directory);
};

const renamed = (directory: string, callId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${directory} contains the call '${callId}', which does not match its name. Do not rename the directories of calls.`,
  );

const createSegment = async (path: string): Promise<FileHandle | undefined> => {
  try {
    return await open(path, 'ax', 0o600);
  } catch (error) {
    if (alreadyExists(error) || isNotFound(error)) return undefined;
    throw error;
  }
};

const lastOf = async (
  directory: string,
  numbers: readonly number[],
): Promise<Segment | undefined> => {
  for (const number of [...numbers].reverse()) {
    const segment = await readSegment(directory, number);
    if (segment !== undefined) return segment;
  }
  return undefined;
};

const endOf = async (directory: string, last: Segment | undefined): Promise<Cursor> => {
  if (last === undefined) return beginning;
  const { number: segment, start: offset, after: position } = last;
  let cursor: Cursor = { ...beginning, segment, offset, line: 1, position };
  const open = () => Promise.resolve(undefined);
  for await (const chunk of readSegmentFrom(directory, cursor, open)) cursor = chunk.cursor;
  return cursor;
};
