import type { Observable } from 'rxjs';

/** What is written down of a call: a step that is done, or an event. */
export interface NewRecord {
  readonly kind: 'step' | 'event';
  /** Of a step its id; of an event its type. At most 64 kB. */
  readonly name: string;
  /** Of an event its number, which only grows; of a step the number of the last event before it. */
  readonly seq: number;
  /** JSON. */
  readonly text: string;
}

/** A record where it stands. */
export interface StoredRecord extends NewRecord {
  /** Its place among the records of its call, from 1, one by one. */
  readonly position: number;
}

/** Which records of a call are read. */
export interface RecordRange {
  /** Default: both. */
  readonly kind?: NewRecord['kind'];
  /** Only those at later places. Default: 0. */
  readonly after?: number;
  /** Only those with a greater number. Default: -1. */
  readonly afterSeq?: number;
}

/** A call of which something is written down. */
export interface StoredCall {
  readonly callId: string;
  /** Of its first and of its last record, in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Whether somebody has it open for writing now. */
  readonly isOpen: boolean;
  /** Nothing, where it was opened and nothing is written down. */
  readonly first?: StoredRecord;
  readonly last?: StoredRecord;
}

/** The right to write down a call. */
export interface Claim {
  /**
   * Appends records, all or none, in order. Completes once they are durable; events alone need not outlast the process. Errors with
   * `conflict` if another writer has the call, and with `store`. Never called concurrently. Cold.
   */
  append$(records: readonly NewRecord[]): Observable<unknown>;
}

/** What a store of calls must be able to do. All else is made of it: `createCallStore`. */
export interface CallStoreDriver {
  /**
   * Claims a call, also a new one, emits once, and holds the claim until unsubscribed. It is a lease: it expires if its holder is gone.
   * Errors with `conflict` if another writer has it or it is lost, and with `store` once the store is closed. Cold.
   */
  claim$(callId: string): Observable<Claim>;
  /** Emits the records that are there, in order, in portions, and completes; none for a call that is not there. A record that is no whole one errors with `invalidState`, behind those before it. Cold. */
  read$(callId: string, range?: RecordRange): Observable<readonly StoredRecord[]>;
  /** Emits whenever there may be more to read, also what another process has written, within a second. Completes when the store is closed, and never before. Cold. */
  changes$(callId: string): Observable<unknown>;
  /** Emits the calls in batches, the last written first, and completes. A damaged one has no `first` and `last`. Cold. */
  list$(): Observable<readonly StoredCall[]>;
  /** Deletes a call with its records, and completes; also where it is not there, or is damaged. Errors with `conflict` while somebody has it open. Cold. */
  remove$(callId: string): Observable<unknown>;
}
