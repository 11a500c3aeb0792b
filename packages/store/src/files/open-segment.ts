import { fstatSync, rmdirSync, unlinkSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { alreadyExists, ignoreErrors, isNotFound } from './file-system.js';
import { writeHead } from './head.js';
import { countedSegments } from './later-segments.js';
import { makeUnsynced } from './make-directory.js';
import type { Cursor, DatedRecord } from './read-batches.js';
import { beginning, readSegmentFrom } from './read-call.js';
import { lastRecord } from './read-ends.js';
import {
  readSegment,
  type Segment,
  type SegmentHead,
  segmentNumbers,
  segmentPath,
} from './segments.js';

export interface OpenSegment extends StartedSegment {
  readonly callId: string;
  readonly last: DatedRecord | undefined;
  /** Removes the segment of a call without records, and with it the call. Requires the lock. */
  readonly remove: () => void;
}

export interface StartedSegment {
  readonly number: number;
  readonly file: FileHandle;
  readonly ino: number;
  /** After its head. */
  readonly cursor: Cursor;
}

/** Starts the next segment of a call, which seals the earlier ones; undefined if another process started it first. */
export const openSegment = async (
  directory: string,
  callId: string,
  now: number,
): Promise<OpenSegment | undefined> => {
  const isMade = await makeUnsynced(directory);
  const earlier = isMade ? [] : await segmentNumbers(directory);
  const number = (earlier.at(-1) ?? 0) + 1;
  const file = await createSegment(segmentPath(directory, number));
  if (file === undefined) return undefined;
  try {
    // Read the earlier segments only now: a writer to one of them sees the new segment before it confirms a write.
    const last = await lastOf(directory, earlier);
    const { position, offset, record } = await endOf(directory, last);
    const ends = earlier
      .filter((it) => it >= (last?.number ?? 0))
      .map((it) => [it, it === last?.number ? offset : 0] as const);
    const started = await withHead(file, number, { callId, after: position, ends, at: now });
    const remove = (): void => ignoreErrors(() => removeSegment(directory, number));
    return { ...started, callId, last: record, remove };
  } catch (error) {
    await discardSegment(directory, number, file);
    throw error;
  }
};

/** Starts the segment after that of a writer, which knows what counts; undefined if another process started it first. */
export const continueSegment = async (
  directory: string,
  number: number,
  head: SegmentHead,
): Promise<StartedSegment | undefined> => {
  const file = await createSegment(segmentPath(directory, number));
  if (file === undefined) return undefined;
  try {
    return await withHead(file, number, head);
  } catch (error) {
    await discardSegment(directory, number, file);
    throw error;
  }
};

const withHead = async (
  file: FileHandle,
  number: number,
  head: SegmentHead,
): Promise<StartedSegment> => {
  const line = Buffer.from(writeHead(head));
  await file.appendFile(line);
  const { ino } = fstatSync(file.fd);
  const { after: position } = head;
  const cursor = { ...beginning, segment: number, offset: line.length, line: 1, position };
  return { number, file, ino, cursor };
};

const discardSegment = async (
  directory: string,
  number: number,
  file: FileHandle,
): Promise<void> => {
  await file.close();
  await rm(segmentPath(directory, number), { force: true });
};

/** Keeps the directory if it has other files. */
const removeSegment = (directory: string, number: number): void => {
  unlinkSync(segmentPath(directory, number));
  rmdirSync(directory);
};

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

const endOf = async (
  directory: string,
  last: Segment | undefined,
): Promise<Cursor & { readonly record?: DatedRecord | undefined }> => {
  if (last === undefined) return beginning;
  const { number: segment, start: offset, after: position } = last;
  let cursor: Cursor = { ...beginning, segment, offset, line: 1, position };
  let record: DatedRecord | undefined;
  const openNone = () => Promise.resolve(undefined);
  for await (const chunk of readSegmentFrom(directory, cursor, openNone)) {
    cursor = chunk.cursor;
    record = chunk.records.at(-1);
  }
  // A claim that wrote nothing has left a segment without records.
  if (record === undefined && position > 0) record = await earlierRecord(directory, segment);
  return { ...cursor, record };
};

const earlierRecord = async (
  directory: string,
  before: number,
): Promise<DatedRecord | undefined> => {
  const segments: Segment[] = [];
  for (const number of await segmentNumbers(directory)) {
    const segment = number <= before ? await readSegment(directory, number) : undefined;
    if (segment !== undefined) segments.push(segment);
  }
  return lastRecord(directory, countedSegments(segments));
};
