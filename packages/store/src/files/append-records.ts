import type { NewRecord } from 'millrace/journal';
import type { SchedulerLike } from 'rxjs';
import { wholeMs } from '../whole-ms.js';
import type { OpenSegment } from './open-segment.js';
import { type DatedRecord, writeBatch } from './read-batches.js';
import { segmentWriter } from './segment-writer.js';

export interface RecordWriter {
  /** Appends records. Resolves to false if another writer has taken over the call, and they do not count. */
  append(records: readonly NewRecord[]): Promise<boolean>;
  /** Whether no other writer has taken over. */
  isLast(): boolean;
  close(): void;
}

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

export const recordWriter = (
  directory: string,
  opened: OpenSegment,
  { scheduler, entry }: RecordWriterOptions,
): RecordWriter => {
  const segment = segmentWriter(directory, opened, scheduler);
  /** The last record that counts. */
  let last = { position: opened.cursor.position, at: opened.last?.at ?? 0 };
  let ended: number | undefined;
  return {
    append: async (records) => {
      if (!segment.isLast()) return false;
      if (records.length === 0) return true;
      if (!(await segment.passTornEnd(last.position))) return false;
      // The dates of a call never go back, so a later end is known as such.
      const at = Math.max(scheduler.now(), last.at);
      const endsAt = records.at(-1)?.ends === true ? (ended ?? wholeMs(at)) : undefined;
      const directories = await entry.before(records, endsAt);
      const bytes = Buffer.from(writeBatch(datedRecords(records, last.position, at, endsAt)));
      const endsNow = endsAt !== undefined && endsAt !== ended;
      const isSafe = endsNow || records.some(({ kind }) => kind === 'step');
      if (!(await segment.append(bytes, { isSafe, directories }))) return false;
      last = { position: last.position + records.length, at };
      ended = endsAt;
      // The records are stored, and a list corrects the entry.
      await entry.after(endsAt).catch(() => undefined);
      return true;
    },
    isLast: () => segment.isLast(),
    close: () => segment.close(),
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
