import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
import { firstValueFrom, type SchedulerLike, timer } from 'rxjs';
import { countedSegments, endIn, segmentsAfter } from './later-segments.js';
import { syncDirectories } from './make-directory.js';
import { continueSegment, openSegment, type OpenSegment } from './open-segment.js';
import { segmentPath } from './segments.js';

/** Writes bytes to the last segment of a call, until another writer takes over. */
export interface SegmentWriter {
  /** Whether no other writer has taken over. Synchronous: it takes microseconds, and far longer through another thread. */
  isLast(): boolean;
  /**
   * Prepares a write after one that failed: its rest must not count, and cannot be cut off: another writer may have counted
   * it by now. So the next segment says what counts, up to this position. Resolves to false if another writer has started that.
   */
  passTornEnd(position: number): Promise<boolean>;
  /** Appends bytes, and waits for the disk if they are safe. Resolves to whether they count. */
  append(bytes: Buffer, how: WriteOptions): Promise<boolean>;
  close(): void;
}

export interface WriteOptions {
  readonly isSafe: boolean;
  /** Directories to sync with the bytes. */
  readonly directories: readonly string[];
}

/** On a busy machine, a writer takes seconds to read a call before its head shows what it saw. */
const patienceMs = 60_000;

const firstDelayMs = 20;

export const segmentWriter = (
  directory: string,
  opened: OpenSegment,
  scheduler: SchedulerLike,
): SegmentWriter => {
  const { callId } = opened;
  let segment: Pick<OpenSegment, 'file' | 'ino' | 'number'> = opened;
  let { offset } = opened.cursor;
  let isTorn = false;
  /** The directories in which a new name is not on disk yet: of the segment, and of the call. */
  let unsynced: readonly string[] = [directory, dirname(directory)];
  const isOwn = (): boolean =>
    statSync(segmentPath(directory, segment.number), { throwIfNoEntry: false })?.ino ===
    segment.ino;
  const hasNext = (): boolean => existsSync(segmentPath(directory, segment.number + 1));
  const close = (): void => void segment.file.close().catch(() => undefined);
  /** Whether the bytes up to this offset count, after another writer has started a later segment. */
  const isCounted = async (end: number): Promise<boolean> => {
    for (let waitedMs = 0, delay = firstDelayMs; isOwn(); delay = Math.min(2 * delay, 1_000)) {
      const counted = await countedBytes(directory, segment.number);
      if (counted !== undefined) return end <= counted;
      if (waitedMs < patienceMs) await firstValueFrom(timer(delay, scheduler));
      // The other writer seems to be gone. This segment says what counts, unless another one is faster.
      else await (await openSegment(directory, callId, scheduler.now()))?.file.close();
      waitedMs += delay;
    }
    return false;
  };
  return {
    isLast: () => isOwn() && !hasNext(),
    passTornEnd: async (position) => {
      if (!isTorn) return true;
      const ends = [[segment.number, offset]] as const;
      const head = { callId, after: position, ends, at: scheduler.now() };
      const next = await continueSegment(directory, segment.number + 1, head);
      if (next === undefined) return false;
      close();
      [segment, offset, isTorn] = [next, next.cursor.offset, false];
      unsynced = [directory];
      return true;
    },
    append: async (bytes, { isSafe, directories }) => {
      isTorn = true;
      await segment.file.appendFile(bytes);
      if (isSafe) {
        await Promise.all([segment.file.datasync(), syncDirectories(...unsynced, ...directories)]);
        unsynced = [];
      }
      isTorn = false;
      const end = offset + bytes.length;
      if (!isOwn()) return false;
      if (hasNext() && !(await isCounted(end).catch(notKnown(callId)))) return false;
      offset = end;
      return true;
    },
    close,
  };
};

/**
 * How many bytes of a segment count, once that is settled; undefined while the last segment has no head. A segment that is
 * started later does not change it: its writer sees that head.
 */
const countedBytes = async (directory: string, number: number): Promise<number | undefined> => {
  const { segments, newest, isWhole } = await segmentsAfter(directory, number);
  if (newest === undefined || !isWhole) return undefined;
  const counted = endIn(countedSegments(segments), number);
  if (counted !== undefined) return counted;
  throw new MillraceError(
    'invalidState',
    `No file in ${directory} says what counts of file ${number}`,
  );
};

const notKnown =
  (callId: string) =>
  (cause: unknown): never => {
    const why = messageOf(cause);
    throw new MillraceError(
      'store',
      `Whether the last records of the call '${callId.slice(0, 100)}' are stored is not known: another process has taken over the call, and its files could not be read (${why}). Read the call to find out.`,
      { cause, retryable: false },
    );
  };
