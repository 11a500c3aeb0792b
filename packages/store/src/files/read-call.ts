import type { FileHandle } from 'node:fs/promises';
import { damaged, missingRecord } from './damage.js';
import { batchesIn, type DatedRecord, type Cursor } from './read-batches.js';
import { hasLine, lineEnd, tryOpen, type Segment, segmentPath } from './segments.js';
import { endIn, type LaterSegments } from './later-segments.js';

/** Some records of a call, and the cursor after them. */
export interface Chunk {
  readonly records: readonly DatedRecord[];
  readonly cursor: Cursor;
}

/** The start of every call. */
export const beginning: Cursor = { segment: 0, offset: 0, line: 0, position: 0, seq: -1 };

/** Bytes per read; doubled for longer batches. */
const chunkBytes = 256 * 1024;

/** No batch is longer: it would exceed the maximum length of a string. */
const maxBytes = 1024 ** 3;

/** Reads the records of a call after a cursor, in chunks. */
export async function* readCall(
  directory: string,
  from: Cursor,
  laterSegments: LaterSegments,
): AsyncGenerator<Chunk> {
  let later: readonly Segment[] = [];
  for (let cursor = from; ;) {
    const { segment } = cursor;
    // Read the later heads once, not for each segment.
    later = later.filter(({ number }) => number > segment);
    const endOf = async (): Promise<number | undefined> => {
      if (later.length === 0) later = await laterSegments(directory, segment);
      return endIn(later, segment);
    };
    await endOf();
    // The beginning is before the first file.
    const chunks = segment === beginning.segment ? [] : readSegmentFrom(directory, cursor, endOf);
    for await (const chunk of chunks) {
      yield chunk;
      cursor = chunk.cursor;
    }
    const next = later.find(({ number }) => endIn(later, number) !== 0);
    if (next === undefined) return;
    const { number, start, after } = next;
    if (after !== cursor.position)
      throw missingRecord(segmentPath(directory, number), cursor.position + 1);
    cursor = { ...cursor, segment: number, offset: start, line: 1 };
  }
}

/**
 * Reads a segment after a cursor. `endOf` returns how many of its bytes count, or undefined while it is the last
 * segment. It is called after each read: bytes read before a later segment existed count permanently.
 */
export async function* readSegmentFrom(
  directory: string,
  from: Cursor,
  endOf: () => Promise<number | undefined>,
): AsyncGenerator<Chunk> {
  const path = segmentPath(directory, from.segment);
  const file = await tryOpen(path);
  if (file === undefined) return;
  try {
    let cursor = from;
    let isEndKnown = false;
    for (let size = chunkBytes; ;) {
      const buffer = Buffer.allocUnsafe(size);
      const { bytesRead } = await file.read({ buffer, position: cursor.offset });
      const end = await endOf();
      const length = Math.min(bytesRead, Math.max(0, (end ?? Infinity) - cursor.offset));
      const { records, cursor: next, damage } = batchesIn(buffer.subarray(0, length), cursor);
      if (next.offset > cursor.offset) {
        yield { records, cursor: next };
        cursor = next;
        size = chunkBytes;
        continue;
      }
      if (end !== undefined && !isEndKnown) {
        // Read again: more bytes may have been appended between the read and the end.
        isEndKnown = true;
        continue;
      }
      if (damage !== undefined) {
        if (end !== undefined || (await hasRecordAfter(file, damage.offset))) {
          throw damaged(path, damage.line);
        }
        return;
      }
      if (length < size) {
        if (end !== undefined && cursor.offset < end) throw damaged(path, cursor.line + 1);
        return;
      }
      size *= 2;
      // No batch is this long, so this package did not write it.
      if (size > maxBytes) throw damaged(path, cursor.line + 1);
    }
  } finally {
    await file.close();
  }
}

/** Whether an intact record follows a broken line. If not, the line is the torn end of the file. */
const hasRecordAfter = async (file: FileHandle, offset: number): Promise<boolean> => {
  let line: Buffer[] = [];
  for (let at = offset; ;) {
    const buffer = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await file.read({ buffer, position: at });
    if (bytesRead === 0) return false;
    at += bytesRead;
    const read = buffer.subarray(0, bytesRead);
    const end = read.lastIndexOf(lineEnd) + 1;
    if (end === 0) {
      // A line cannot be longer.
      if (line.length * chunkBytes < maxBytes) line.push(read);
      continue;
    }
    if (hasLine('record', Buffer.concat([...line, read.subarray(0, end)]))) return true;
    line = [read.subarray(end)];
  }
};
