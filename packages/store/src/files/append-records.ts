import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { NewRecord } from '@millrace/core/journal';
import { syncDirectories } from './make-directory.js';
import { endIn, type LaterSegments } from './later-segments.js';
import type { OpenSegment } from './open-segment.js';
import { writeBatch } from './read-batches.js';
import { segmentPath } from './segments.js';

/** Appends records to an open segment. Resolves to false if another writer has taken over the call. */
export type AppendRecords = (records: readonly NewRecord[]) => Promise<boolean>;

/** On a busy machine, a writer takes seconds to read a call before its head shows what it saw. */
const patienceMs = 60_000;

export const appendTo = (
  directory: string,
  { file, ino, number, cursor }: OpenSegment,
  laterSegments: LaterSegments,
  now: () => number,
): AppendRecords => {
  const path = segmentPath(directory, number);
  const end = { ...cursor, isTorn: false };
  /** The directories in which a new name is not on disk yet: of the segment, and of the call. */
  let unsynced: readonly string[] = [directory, dirname(directory)];
  const next = segmentPath(directory, number + 1);
  // Synchronous: a question takes microseconds, and far longer through another thread.
  const isOwn = (): boolean => statSync(path, { throwIfNoEntry: false })?.ino === ino;
  const write = async (bytes: Buffer, isSafe: boolean): Promise<void> => {
    // Remove the partial output of a failed write.
    if (end.isTorn) await file.truncate(end.offset);
    end.isTorn = true;
    await file.appendFile(bytes);
    if (isSafe) {
      await Promise.all([file.datasync(), syncDirectories(...unsynced)]);
      unsynced = [];
    }
    end.isTorn = false;
  };
  return async (records) => {
    if (!isOwn() || existsSync(next)) return false;
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
    if (!isOwn()) return false;
    if (existsSync(next)) {
      // Another writer has started a later segment. Its head shows whether it saw these records.
      const counted = endIn(await laterSegments(directory, number, patienceMs), number);
      if (counted === undefined || counted < offset) return false;
    }
    end.offset = offset;
    end.position += records.length;
    return true;
  };
};
