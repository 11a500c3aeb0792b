import type { NewRecord } from '@millrace/core/journal';
import { isThere } from './failure.js';
import { endIn, type LaterSegments } from './later-segments.js';
import type { OpenSegment } from './open-segment.js';
import { writeBatch } from './read-batches.js';
import { segmentPath } from './segments.js';

/** Writes records to an open segment: true when they are there, false when another writer has the call. */
export type AppendRecords = (records: readonly NewRecord[]) => Promise<boolean>;

/** Makes what writes to an open segment. */
export const appendTo = (
  directory: string,
  { file, number, place }: OpenSegment,
  laterSegments: LaterSegments,
  now: () => number,
): AppendRecords => {
  const path = segmentPath(directory, number);
  const end = { ...place, isTorn: false };
  const isLast = async (): Promise<boolean> =>
    (await isThere(path, (await file.stat()).ino)) &&
    !(await isThere(segmentPath(directory, number + 1)));
  const write = async (bytes: Buffer, isSafe: boolean): Promise<void> => {
    // What a write that failed has left behind is no part of the next one.
    if (end.isTorn) await file.truncate(end.offset);
    end.isTorn = true;
    await file.appendFile(bytes);
    if (isSafe) await file.datasync();
    end.isTorn = false;
  };
  return async (records) => {
    if (!(await isLast())) return false;
    if (records.length === 0) return true;
    const at = now();
    const dated = records.map((record, index) => ({
      ...record,
      position: end.position + index + 1,
      at,
    }));
    const bytes = Buffer.from(writeBatch(dated));
    await write(
      bytes,
      records.some(({ kind }) => kind === 'step'),
    );
    const offset = end.offset + bytes.length;
    if (!(await isLast())) {
      // Whoever has begun the later segment has seen these records, or has not.
      const counted = endIn(await laterSegments(directory, number), number);
      if (counted === undefined || counted < offset) return false;
    }
    end.offset = offset;
    end.position += records.length;
    return true;
  };
};
