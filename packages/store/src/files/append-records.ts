import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { MillraceError } from '@millrace/core';
import type { NewRecord } from '@millrace/core/journal';
import { firstValueFrom, type SchedulerLike, timer } from 'rxjs';
import { syncDirectories } from './make-directory.js';
import { countedSegments, endIn } from './later-segments.js';
import { continueSegment, type OpenSegment, openSegment } from './open-segment.js';
import { type DatedRecord, writeBatch } from './read-batches.js';
import { wholeMs } from '../whole-ms.js';
import { readSegment, type Segment, segmentNumbers, segmentPath } from './segments.js';

/** Writes the records of a claimed call. */
export interface RecordWriter {
  /** Appends records. Resolves to false if another writer has taken over the call, and they do not count. */
  append(records: readonly NewRecord[]): Promise<boolean>;
  close(): void;
}

/** The entry of a call in the indexes. */
export interface WrittenEntry {
  /** Before records are written, that end the call at this time, if given. Resolves to directories to sync with them. */
  before(records: readonly NewRecord[], endedAt: number | undefined): Promise<readonly string[]>;
  /** The records are stored. */
  after(endedAt: number | undefined): Promise<void>;
}

export interface RecordWriterOptions {
  readonly scheduler: SchedulerLike;
  readonly entry: WrittenEntry;
}

/** On a busy machine, a writer takes seconds to read a call before its head shows what it saw. */
const patienceMs = 60_000;

const firstDelayMs = 20;

export const recordWriter = (
  directory: string,
  opened: OpenSegment,
  { scheduler, entry }: RecordWriterOptions,
): RecordWriter => {
  const { callId, last } = opened;
  let segment: Pick<OpenSegment, 'file' | 'ino' | 'number'> = opened;
  const end = { ...opened.cursor, at: last?.at ?? 0, isTorn: false };
  let ended: number | undefined;
  /** The directories in which a new name is not on disk yet: of the segment, and of the call. */
  let unsynced: readonly string[] = [directory, dirname(directory)];
  // Synchronous: a question takes microseconds, and far longer through another thread.
  const isOwn = (): boolean =>
    statSync(segmentPath(directory, segment.number), { throwIfNoEntry: false })?.ino ===
    segment.ino;
  const hasNext = (): boolean => existsSync(segmentPath(directory, segment.number + 1));
  /**
   * The rest of a failed write must not count, and cannot be cut off: another writer may have counted it by now. So the
   * next segment says what counts, unless another writer has started that.
   */
  const passTornEnd = async (): Promise<boolean> => {
    const ends = [[segment.number, end.offset]] as const;
    const head = { callId, after: end.position, ends, at: scheduler.now() };
    const next = await continueSegment(directory, segment.number + 1, head);
    if (next === undefined) return false;
    close();
    segment = next;
    Object.assign(end, { offset: next.cursor.offset, isTorn: false });
    unsynced = [directory];
    return true;
  };
  const write = async (bytes: Buffer, isSafe: boolean, more: readonly string[]): Promise<void> => {
    end.isTorn = true;
    await segment.file.appendFile(bytes);
    if (isSafe) {
      await Promise.all([segment.file.datasync(), syncDirectories(...unsynced, ...more)]);
      unsynced = [];
    }
    end.isTorn = false;
  };
  /** Whether the bytes up to this offset count, after another writer has started a later segment. */
  const isCounted = async (offset: number): Promise<boolean> => {
    const { number } = segment;
    for (let waitedMs = 0, delay = firstDelayMs; isOwn(); delay = Math.min(2 * delay, 1_000)) {
      const counted = await countedBytes(directory, number);
      if (counted !== undefined) return offset <= counted;
      if (waitedMs < patienceMs) await firstValueFrom(timer(delay, scheduler));
      // The other writer seems to be gone. This segment says what counts, unless another one is faster.
      else await (await openSegment(directory, callId, scheduler.now()))?.file.close();
      waitedMs += delay;
    }
    return false;
  };
  const close = (): void => void segment.file.close().catch(() => undefined);
  return {
    append: async (records) => {
      if (!isOwn() || hasNext()) return false;
      if (records.length === 0) return true;
      if (end.isTorn && !(await passTornEnd())) return false;
      // The dates of a call never go back, so a later end is known as such.
      const at = Math.max(scheduler.now(), end.at);
      const endsAt = records.at(-1)?.ends === true ? (ended ?? wholeMs(at)) : undefined;
      const more = await entry.before(records, endsAt);
      const bytes = Buffer.from(writeBatch(datedRecords(records, end.position, at, endsAt)));
      const endsNow = endsAt !== undefined && endsAt !== ended;
      await write(bytes, endsNow || records.some(({ kind }) => kind === 'step'), more);
      const offset = end.offset + bytes.length;
      if (!isOwn()) return false;
      if (hasNext() && !(await isCounted(offset).catch(notKnown(callId)))) return false;
      Object.assign(end, { offset, at, position: end.position + records.length });
      ended = endsAt;
      // The records are stored, and a list corrects the entry.
      await entry.after(endsAt).catch(() => undefined);
      return true;
    },
    close,
  };
};

const datedRecords = (
  records: readonly NewRecord[],
  before: number,
  at: number,
  endsAt: number | undefined,
): readonly DatedRecord[] =>
  records.map(({ kind, name, seq, text }, index) => ({
    ...{ kind, name, seq, text, at },
    position: before + index + 1,
    ends: index === records.length - 1 ? endsAt : undefined,
  }));

/**
 * How many bytes of a segment count, once that is settled; undefined while the last segment has no head. A segment that is
 * started later does not change it: its writer sees that head.
 */
const countedBytes = async (directory: string, number: number): Promise<number | undefined> => {
  const later = (await segmentNumbers(directory)).filter((it) => it > number);
  const segments: Segment[] = [];
  for (const it of later) {
    const segment = await readSegment(directory, it);
    if (segment !== undefined) segments.push(segment);
  }
  const isSettled = segments.length > 0 && segments.at(-1)?.number === later.at(-1);
  if (!isSettled) return undefined;
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
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new MillraceError(
      'store',
      `Whether the last records of the call '${callId.slice(0, 100)}' are stored is not known: another process has taken over the call, and its files could not be read (${why}). Read the call to find out.`,
      { cause, retryable: false },
    );
  };
