import { firstValueFrom, lastValueFrom, ReplaySubject, toArray } from 'rxjs';
import type {
  CallQuery,
  CallStoreDriver,
  Claim,
  NewRecord,
  RecordRange,
  StoredCall,
  StoredRecord,
} from '../journal/call-store-driver.js';

/** Two handles of one store of calls, as of two processes. */
export interface CallStoreHandles {
  readonly first: CallStoreDriver;
  /** Default: the first, for a store of a single process. */
  readonly second?: CallStoreDriver;
  /** Expires the lease of a call, as if its holder hung. Default: leases do not expire. */
  readonly expire?: (callId: string) => Promise<unknown>;
  /** Closes the first. Default: nothing to close. */
  readonly close?: () => Promise<unknown>;
}

export const step = (name: string, seq = 0, text = '1'): NewRecord => ({
  kind: 'step',
  name,
  seq,
  text,
});
export const event = (name: string, seq: number, text = '{}'): NewRecord => ({
  kind: 'event',
  name,
  seq,
  text,
});
export const at = (records: readonly NewRecord[]): readonly StoredRecord[] =>
  records.map((record, index) => ({ ...record, position: index + 1 }));
export const read = async (
  driver: CallStoreDriver,
  callId: string,
  range?: RecordRange,
): Promise<readonly StoredRecord[]> =>
  (await lastValueFrom(driver.read$(callId, range).pipe(toArray()))).flat();
export const list = async (
  driver: CallStoreDriver,
  query?: CallQuery,
): Promise<readonly StoredCall[]> =>
  (await lastValueFrom(driver.list$(query).pipe(toArray()))).flat();
export const append = (hold: Hold, records: readonly NewRecord[]): Promise<unknown> =>
  lastValueFrom(hold.claim.append$(records), { defaultValue: undefined });
export const write = async (
  driver: CallStoreDriver,
  callId: string,
  ...batches: readonly (readonly NewRecord[])[]
): Promise<void> => {
  const hold = await holdCall(driver, callId);
  for (const batch of batches) await append(hold, batch);
  hold.leave();
};
export interface Hold {
  readonly claim: Claim;
  readonly lost: Promise<unknown>;
  leave(): void;
}
export const holdCall = async (driver: CallStoreDriver, callId: string): Promise<Hold> => {
  const claim$ = new ReplaySubject<Claim>(1);
  const held = driver.claim$(callId).subscribe(claim$);
  const lost = lastValueFrom(claim$);
  // Only those who ask want to know.
  lost.catch(() => undefined);
  return { claim: await firstValueFrom(claim$), lost, leave: () => held.unsubscribe() };
};

export const until = async <T>(look: () => Promise<T>, isIt: (seen: T) => boolean): Promise<T> => {
  for (let tries = 0; ; tries += 1) {
    const seen = await look();
    if (isIt(seen) || tries === 1_000) return seen;
  }
};
export const nextMillisecond = async (): Promise<void> => {
  const now = Date.now();
  while (Date.now() <= now) await Promise.resolve();
};
