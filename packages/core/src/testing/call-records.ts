import { lastValueFrom, toArray } from 'rxjs';
import type {
  CallStoreDriver,
  NewRecord,
  RecordRange,
  StoredCall,
  StoredRecord,
} from '../journal/call-store-driver.js';
import { type Hold, holdCall } from './hold-call.js';

/** A step that is done. */
export const step = (name: string, seq = 0, text = '1'): NewRecord => ({
  kind: 'step',
  name,
  seq,
  text,
});

/** An event. */
export const event = (name: string, seq: number, text = '{}'): NewRecord => ({
  kind: 'event',
  name,
  seq,
  text,
});

/** The records where they stand, of a call that holds no others. */
export const at = (records: readonly NewRecord[]): readonly StoredRecord[] =>
  records.map((record, index) => ({ ...record, position: index + 1 }));

/** Tells whether a range names a record. */
export const isIn =
  ({ kind, after = 0, afterSeq = -1 }: RecordRange) =>
  (record: StoredRecord): boolean =>
    (kind ?? record.kind) === record.kind && record.position > after && record.seq > afterSeq;

/** Reads all at once. */
export const read = async (
  driver: CallStoreDriver,
  callId: string,
  range?: RecordRange,
): Promise<readonly StoredRecord[]> =>
  (await lastValueFrom(driver.read$(callId, range).pipe(toArray()))).flat();

/** Lists all at once. */
export const list = async (driver: CallStoreDriver): Promise<readonly StoredCall[]> =>
  (await lastValueFrom(driver.list$().pipe(toArray()))).flat();

/** Writes down records for who holds a call. */
export const append = (hold: Hold, records: readonly NewRecord[]): Promise<unknown> =>
  lastValueFrom(hold.claim.append$(records), { defaultValue: undefined });

/** Claims a call, writes down batches of records, and gives it back. */
export const write = async (
  driver: CallStoreDriver,
  callId: string,
  ...batches: readonly (readonly NewRecord[])[]
): Promise<void> => {
  const hold = await holdCall(driver, callId);
  for (const batch of batches) await append(hold, batch);
  hold.leave();
};
