import type { Observable } from 'rxjs';
import { defaultIfEmpty, defer, EMPTY, map, mergeMap, take, throwError } from 'rxjs';
import { failAs } from '../flow/contained.js';
import { MillraceError, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import type { Demand } from '../flow/demand.js';
import type { EventType, Listener } from '../events.js';

export interface NewRecord {
  readonly kind: 'step' | 'event';
  /** The id of a step, or the type of an event. Up to 64 kB. */
  readonly name: string;
  /** The `seq` of an event, or that of the last event before a step. */
  readonly seq: number;
  readonly text: string;
  /** The call ends with this record, unless others follow. Drivers store it by call. Default: false. */
  readonly ends?: boolean;
}

export interface StoredRecord extends Omit<NewRecord, 'ends'> {
  /** Its position among the records of its call, from 1, without gaps. */
  readonly position: number;
}

export interface RecordRange {
  /** Default: both. */
  readonly kind?: NewRecord['kind'];
  /** Only records at later positions. Default: 0. */
  readonly after?: number;
  /** Only records with a greater `seq`. Default: -1. */
  readonly afterSeq?: number;
}

export interface StoredCall {
  readonly callId: string;
  /** The time of its first record, in milliseconds since the epoch; `updatedAt` is that of its last one. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Whether a writer has it open. */
  readonly isOpen: boolean;
  /** Orders the calls of a session, independent of clocks: greater for later calls. Present in the list of a session. */
  readonly place?: number;
  /** Absent if no record was written. */
  readonly first?: StoredRecord;
  readonly last?: StoredRecord;
}

/** Which calls are listed. Default: all. */
export interface CallQuery {
  /** Only calls for which `sessionIn` returned it, the last begun first. */
  readonly sessionId?: string;
  /** Only calls whose last record does not end them. May contain others, such as those with a reply and no last event. */
  readonly isUnfinished?: true;
  /** Only calls that were last written at this time or before, in milliseconds since the epoch. */
  readonly writtenUntil?: number;
}

export interface RemovedCall {
  readonly callId: string;
  /** Absent if it had none, or was unknown or damaged. */
  readonly sessionId?: string;
}

export interface Claim {
  /**
   * Appends records, all or none, in order. Completes once they are durable; events without a step need not outlast
   * the process. Errors with `conflict` if another writer has the call, and `store`. Not called concurrently. Cold.
   */
  append$(records: readonly NewRecord[]): Observable<unknown>;
}

export interface CallStoreDriver {
  /**
   * Claims a call, also a new one, emits once, and holds the claim until unsubscribed: a lease, which expires if its
   * holder is gone. Errors with `conflict` if another writer has it or it is lost, `store` once that is closed. Cold.
   */
  claim$(callId: string): Observable<Claim>;
  /**
   * Emits the existing records, in order, in batches, and completes; empty for an unknown call. A damaged record
   * errors with `invalidState` after earlier ones. Cold.
   */
  read$(callId: string, range?: RecordRange): Observable<readonly StoredRecord[]>;
  /** Emits within a second if there may be new records of any process. Completes only when the store is closed. Cold. */
  changes$(callId: string): Observable<unknown>;
  /**
   * Emits the calls that match a query in batches, the last written first unless it names a session, and completes. Reads
   * by index: nothing that it does not emit, but for one batch. A damaged call has no `first` and `last`. Cold.
   */
  list$(query?: CallQuery): Observable<readonly StoredCall[]>;
  /** Deletes a call, even an unknown or damaged one, and completes. Errors with `conflict` while it is open. Cold. */
  remove$(callId: string): Observable<unknown>;
  /**
   * Deletes calls that are not open, also unknown or damaged ones, and emits the deleted ones in batches: thousands
   * cost few operations. Skips open ones, and completes. Cold.
   */
  removeAll$(callIds: readonly string[]): Observable<readonly RemovedCall[]>;
}

export interface StoreOfCalls {
  readonly driver: CallStoreDriver;
}

export const isStoreOfCalls = (value: unknown): value is StoreOfCalls =>
  isRecord(value) && isRecord(value['driver']);

export const checkStored = (owner: string, store: unknown, callId: unknown = 'any'): void => {
  if (!isStoreOfCalls(store)) {
    throw misuse(`${owner} needs a store of calls: createCallStore(driver).`);
  }
  if (typeof callId !== 'string' || callId === '') throw misuse(`${owner} needs the id of a call.`);
};

export const isStored$ = (driver: CallStoreDriver, callId: string): Observable<boolean> =>
  defer(() => driver.read$(callId)).pipe(
    failAs('store', 'The journal could not be read'),
    take(1),
    map(({ length }) => length > 0),
    defaultIfEmpty(false),
  );

export const assertStored$ = (driver: CallStoreDriver, callId: string): Observable<never> =>
  isStored$(driver, callId).pipe(
    mergeMap((isStored) => (isStored ? EMPTY : throwError(() => notStored(callId)))),
  );

export const notStored = (callId: string): MillraceError =>
  new MillraceError(
    'invalidResume',
    `There is no call '${callId}' in the store. List its calls with calls$(store).`,
  );

export interface JournalStore {
  /**
   * Opens the journal of a root call as its only writer, emits what `run` emits, and closes it at the end or on
   * unsubscribe. Errors with `conflict` if another writer has it, and with `store`. Cold.
   */
  open$<T>(callId: string, run: (journal: OpenJournal) => Observable<T>): Observable<T>;
}

export interface OpenJournal {
  /**
   * Runs a step once: emits the value of `work` after recording it, and later, in any process, the recorded value.
   * `id` is a position (`callId/iteration`, `callId/iteration/index`), the same in a resumed call. A value is plain
   * JSON; an empty step or an error is not recorded.
   */
  step$(id: string, work: () => Observable<unknown>): Observable<unknown>;
  /** Whether a step is recorded. Default: any step may be. */
  readonly isWritten?: (id: string) => boolean;
  /** The ids of the recorded steps. Without it, unrecorded optional steps are performed again. */
  readonly stepIds?: () => Iterable<string>;
  readonly listener?: Listener;
  /** The `seq` of the last recorded event, which a resumed call continues. Default: 0. */
  readonly lastSeq?: number;
  /** Partly delivered messages of unrecorded steps, which a resumed call discards and repeats. Default: none. */
  readonly cutShort?: ReadonlySet<string>;
  /** Whether an event was delivered after the last recorded step, once per event: it is not repeated. Default: false. */
  readonly wasDelivered?: (callId: string, type: EventType) => boolean;
  /** Whether the call has ended and delivered its last event. Default: false. */
  readonly hasEnded?: boolean;
  /** Closed while events wait to be recorded, which pauses the sources of the call. Default: always open. */
  readonly demand?: Demand;
}
