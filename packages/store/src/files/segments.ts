import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { damaged, laterFormat } from './damage.js';
import { namesIn, whenGone } from './failure.js';
import { type LineKind, readLine } from './line.js';

/**
 * The records of a call stand in segments, files of lines; each claim begins a new one. Its head says up to which byte the files before it count: what a writer
 * who has lost its lease still writes stands behind that, and is not read. So who writes need not trust any clock: it has lost, if there is a later segment.
 */
export interface SegmentHead {
  readonly format: 1;
  readonly callId: string;
  /** Records before it. */
  readonly after: number;
  /** Of files before it, how many bytes count; those of earlier ones are told by earlier heads. */
  readonly ends: readonly (readonly [segment: number, bytes: number])[];
  /** When it was begun, in milliseconds since the epoch. */
  readonly at: number;
}

/** A segment that has a head. */
export interface Segment extends SegmentHead {
  readonly number: number;
  /** Bytes of the head. */
  readonly start: number;
}

/** Where a segment is. */
export const segmentPath = (directory: string, number: number): string =>
  join(directory, `${String(number).padStart(6, '0')}.jsonl`);

/** The numbers of the segments that there are, in order; none where there is no directory. */
export const segmentNumbers = async (directory: string): Promise<readonly number[]> =>
  (await namesIn(directory))
    .flatMap((name) => /^(\d{6,})\.jsonl$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);

/**
 * Reads the head of a segment; undefined where there is none, as its writer has not come to it. A head that is no whole one is an error where records
 * come behind it.
 */
export const readSegment = async (
  directory: string,
  number: number,
): Promise<Segment | undefined> => {
  const path = segmentPath(directory, number);
  const file = await opened(path);
  if (file === undefined) return undefined;
  try {
    for (const size of [usual, most]) {
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

/** Bytes of a head; the most is enough to see a record behind one that is damaged, too. */
const usual = 4 * 1024;
const most = 256 * 1024;

/** Opens a file for reading; undefined where there is none. */
export const opened = (path: string): Promise<FileHandle | undefined> =>
  whenGone(open(path, 'r'), undefined);

/** Tells whether there is a whole line of a kind in this. */
export const hasLine = (kind: LineKind, bytes: Buffer): boolean => {
  for (let start = 0, end = bytes.indexOf(lineEnd); end !== -1;) {
    if (readLine(kind, bytes.subarray(start, end)) !== undefined) return true;
    start = end + 1;
    end = bytes.indexOf(lineEnd, start);
  }
  return false;
};

/** What ends a line. */
export const lineEnd = 0x0a;

const headIn = (path: string, line: Buffer): SegmentHead | undefined => {
  const value = readLine('head', line);
  if (value === undefined) return undefined;
  if (value['format'] !== 1) throw laterFormat(path, value['format']);
  const { callId, after, ends, at } = value;
  return typeof callId === 'string' && isCount(after) && isCount(at) && Array.isArray(ends)
    ? { format: 1, callId, after, at, ends: ends.filter(isEnd) }
    : undefined;
};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value);

const isEnd = (value: unknown): value is readonly [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every(isCount);
