import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MillraceError } from 'millrace';
import { storedName } from '../stored-name.js';
import { damaged } from './damage.js';
import { ifMissing, openFile, readNames } from './file-system.js';
import { readHead } from './head.js';
import { type LineKind, readLine } from './line.js';

/**
 * The records of a call are split into segments, one file per claim. The head of a segment lists up to which byte the
 * earlier files count, so bytes that a writer appends after losing its lease are never read. No clock is involved: a
 * writer has lost its lease if a later segment exists.
 */
export interface SegmentHead {
  readonly callId: string;
  /** Number of records in earlier segments. */
  readonly after: number;
  /** How many bytes of the preceding files count; the heads of these cover the files before them. */
  readonly ends: readonly (readonly [segment: number, bytes: number])[];
  /** When it was started, in milliseconds since the epoch. */
  readonly at: number;
}

export interface Segment extends SegmentHead {
  readonly number: number;
  /** Bytes of the head. */
  readonly start: number;
}

export const segmentPath = (directory: string, number: number): string =>
  join(directory, String(number).padStart(6, '0') + segmentEnd);

/** The end of the name of every segment. */
export const segmentEnd = '.jsonl';

/** The numbers of all segments, in order; empty if the directory does not exist. */
export const segmentNumbers = async (directory: string): Promise<readonly number[]> =>
  (await readNames(directory))
    .flatMap((name) => /^(\d{6,})\.jsonl$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);

/**
 * Reads the head of a segment; undefined if the file does not exist or its writer has not completed the head. Throws
 * if the head is broken and records follow it, and if it is that of another call.
 */
export const readSegment = async (
  directory: string,
  number: number,
): Promise<Segment | undefined> => {
  const path = segmentPath(directory, number);
  const file = await tryOpen(path);
  if (file === undefined) return undefined;
  try {
    for (const size of [headBytes, maxHeadBytes]) {
      const { buffer } = await file.read({ buffer: Buffer.alloc(size), position: 0 });
      const end = buffer.indexOf(lineEnd);
      const head = end === -1 ? undefined : headIn(path, buffer.subarray(0, end));
      if (head !== undefined) return { ...head, number, start: end + 1 };
      if (hasLine('record', buffer)) throw damaged(path, 1);
    }
    return undefined;
  } finally {
    await file.close();
  }
};

/** Bytes to read for a head. The maximum also covers a record after a damaged head. */
const headBytes = 4 * 1024;
const maxHeadBytes = 256 * 1024;

export const tryOpen = (path: string): Promise<FileHandle | undefined> =>
  ifMissing(openFile(path), undefined);

/** Whether the bytes contain an intact line of this kind. */
export const hasLine = (kind: LineKind, bytes: Buffer): boolean => {
  for (let start = 0, end = bytes.indexOf(lineEnd); end !== -1;) {
    if (readLine(kind, bytes.subarray(start, end)) !== undefined) return true;
    start = end + 1;
    end = bytes.indexOf(lineEnd, start);
  }
  return false;
};

export const lineEnd = 0x0a;

export const headIn = (path: string, line: Buffer): SegmentHead | undefined => {
  const value = readHead(path, line);
  if (value === undefined) return undefined;
  const { callId, after, ends, at } = value;
  if (typeof callId !== 'string' || !isCount(after) || !isCount(at) || !Array.isArray(ends)) {
    return undefined;
  }
  const directory = dirname(path);
  if (storedName(callId) !== basename(directory)) throw renamed(path, callId);
  return { callId, after, at, ends: ends.filter(isEnd) };
};

/** Without this, a file in the wrong place would show the call of one user to another. */
const renamed = (path: string, callId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} contains the call '${callId.slice(0, 100)}', which does not match the name of its directory. Do not rename the directories of calls, or move files between them.`,
  );

const isCount = (value: unknown): value is number => Number.isSafeInteger(value);

const isEnd = (value: unknown): value is readonly [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every(isCount);
