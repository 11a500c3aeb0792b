import type { Observable } from 'rxjs';
import { defaultIfEmpty, defer, EMPTY, map, mergeMap, take, throwError } from 'rxjs';
import { failAs } from '../flow/contained.js';
import { MillraceError, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import type { Demand } from '../flow/demand.js';
import type { EventType, Listener } from '../events.js';

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
  /** Orders the calls of a session: a call that begins later has a greater number, independent of clocks. Present in `list$(sessionId)`. */
  readonly place?: number;
  /** Nothing, where it was opened and nothing is written down. */
  readonly first?: StoredRecord;
  readonly last?: StoredRecord;
}

/** The right to write down a call. */
export interface Claim {
  /** Appends records, all or none, in order. Completes once they are durable; events alone need not outlast the process. Errors with `conflict` if another writer has the call, and with `store`. Never called concurrently. Cold. */
  append$(records: readonly NewRecord[]): Observable<unknown>;
}

/** What a store of calls must be able to do. All else is made of it: `createCallStore`. */
export interface CallStoreDriver {
  /** Claims a call, also a new one, emits once, and holds the claim until unsubscribed. It is a lease: it expires if its holder is gone. Errors with `conflict` if another writer has it or it is lost, and with `store` once the store is closed. Cold. */
  claim$(callId: string): Observable<Claim>;
  /** Emits the records that are there, in order, in portions, and completes; none for a call that is not there. A record that is no whole one errors with `invalidState`, behind those before it. Cold. */
  read$(callId: string, range?: RecordRange): Observable<readonly StoredRecord[]>;
  /** Emits whenever there may be more to read, also what another process has written, within a second. Completes when the store is closed, and never before. Cold. */
  changes$(callId: string): Observable<unknown>;
  /** Emits the calls in batches, the last written first, and completes. With the id of a session, it emits only the calls for which `sessionIn` gave that id, the newest first, and reads no others. A damaged one has no `first` and `last`. Cold. */
  list$(sessionId?: string): Observable<readonly StoredCall[]>;
  /** Deletes a call with its records, and completes; also where it is not there, or is damaged. Errors with `conflict` while somebody has it open. Cold. */
  remove$(callId: string): Observable<unknown>;
}

/** A store of calls, as far as those who read it need it: of `createCallStore`. */
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
    `There is no call '${callId}' in the store. calls$(store) tells which there are.`,
  );

/** Where a journal records calls: a store of calls, or an engine. */
export interface JournalStore {
  /** Opens the journal of a root call as its only writer, emits what `run` emits, and closes it at the end or on unsubscribe. Errors with `conflict` if another writer has it, and with `store`. Cold. */
  open$<T>(callId: string, run: (journal: OpenJournal) => Observable<T>): Observable<T>;
}

/** The journal of one outermost call, and of the calls below it. */
export interface OpenJournal {
  /** Runs a step once: emits what `work` emits once that is recorded, and from then on, in any process, what was recorded. `id` is a position (`callId/iteration`, `callId/iteration/index`), the same on a resumed run. A step emits one value of plain JSON, or none; that, or an error, is not recorded. */
  step$(id: string, work: () => Observable<unknown>): Observable<unknown>;
  /** Tells whether a step is written down. Without it, every step may be. */
  readonly isWritten?: (id: string) => boolean;
  /** The ids of the recorded steps. Without it, an optional step that was not recorded is performed wherever it stands. */
  readonly stepIds?: () => Iterable<string>;
  /** Hears every event of the call, and of the calls below it. */
  readonly listener?: Listener;
  /** The number of the last event that is written down: those of a resumed call go on behind it. Default: 0. */
  readonly lastSeq?: number;
  /** Messages that were begun, and shown, by steps that are not written down. A resumed call begins them again, and takes back what was shown of them. Default: none. */
  readonly cutShort?: ReadonlySet<string>;
  /** Tells, once for each, whether an event was told behind the last step that is written down: a resumed call does not tell it again. Default: nothing was. */
  readonly wasTold?: (callId: string, type: EventType) => boolean;
  /** The call has ended, and told so: nothing is left to be done. Default: false. */
  readonly hasEnded?: boolean;
  /** Closed while events wait to be written down: it pauses the call's sources. Default: always open. */
  readonly demand?: Demand;
}
