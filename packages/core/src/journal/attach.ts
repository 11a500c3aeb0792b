import {
  asyncScheduler,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  first,
  ignoreElements,
  isObservable,
  map,
  merge,
  type Observable,
  of,
  repeat,
  type SchedulerLike,
  take,
  takeLast,
  takeWhile,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import type { Demand } from '../demand.js';
import type { AgentEvent } from '../events.js';
import { isRecord } from '../json.js';
import { checkOptions, isDelay, isScheduler, type Rule, wholeNumber } from '../options.js';
import { records$ } from './call-store.js';
import type { CallStoreDriver, RecordRange, StoredRecord } from './call-store-driver.js';
import {
  assertStored$,
  checkStored,
  isStored$,
  notStored,
  type StoreOfCalls,
} from './stored-call.js';
import { isEnd, storedEvent } from './stored-event.js';
import { MillraceError } from '../errors.js';
import { failAs } from '../fail-as.js';
import { createQueue, type Queue } from '../streams/queue.js';
import { queuedMap } from '../streams/queued-map.js';
import { createTrampoline, subscribeOnTrampoline } from '../trampoline.js';

/** How a call is followed. */
export interface AttachOptions {
  /** Only events behind this one: the `seq` of the last that was seen. Default: 0. */
  readonly afterSeq?: number;
  /** How long a call may take to begin of which nothing is written down yet, in milliseconds. Default: 0. */
  readonly waitMs?: number;
  /** Pauses the reading while it is closed. Default: events are read as they come. */
  readonly demand?: Demand;
  /** What `waitMs` runs on. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

const attachRules: Readonly<Record<keyof AttachOptions, Rule>> = {
  afterSeq: wholeNumber(0),
  waitMs: isDelay,
  demand: [(value) => isRecord(value) && isObservable(value['open$']), 'a demand: createDemand()'],
  scheduler: isScheduler,
};

/**
 * Follows a call, whichever process runs it: emits its recorded events, then new ones, each once, in order and frozen. Completes after `postCall`, or after `error` if the call has not been resumed by then; who
 * attaches after that `error` waits for the call to be resumed. A call that stopped is waited for. Unsubscribing does nothing to the call. Errors with `invalidResume` if there is no such call within
 * `waitMs`, `invalidState` at an unreadable event, and `store` if the store fails or is closed. Sees what `events` of `createCallStore` lets it record. Cold.
 */
export const attach$ = (
  store: StoreOfCalls,
  callId: string,
  options: AttachOptions = {},
): Observable<AgentEvent> => {
  checkStored('attach$()', store, callId);
  checkOptions('attach$()', options, attachRules);
  const { waitMs = 0, scheduler = asyncScheduler } = options;
  const { driver } = store;
  const unknown$ = throwError(() => notStored(callId));
  const isThere = (): Observable<boolean> => isStored$(driver, callId);
  const begun$ = defer(() =>
    waitMs === 0
      ? assertStored$(driver, callId)
      : lookAgain$(driver, callId, isThere).pipe(
          first(Boolean),
          timeout({ first: waitMs, scheduler, with: () => unknown$ }),
        ),
  ).pipe(ignoreElements());
  return concat(begun$, followed$(driver, callId, options));
};

/** The end of what is followed, which is no event. */
const end = Symbol('end');

const followed$ = (
  driver: CallStoreDriver,
  callId: string,
  { afterSeq = 0, demand }: AttachOptions,
): Observable<AgentEvent> =>
  defer(() => {
    let after = 0;
    let isOver = false;
    const read$ = (): Observable<StoredRecord> => {
      // The one that was seen last is looked at, too: it may be the end.
      const range = { kind: 'event', after, afterSeq: afterSeq - 1 } as const;
      if (demand === undefined) return records$(driver, callId, range);
      const wanted = <T>(value: T) => whenWanted$(demand, value);
      return inPortions$(driver, callId, range, wanted, wanted(undefined));
    };
    const seen$ = (record: StoredRecord): Observable<AgentEvent> => {
      after = record.position;
      if (record.seq > afterSeq) {
        const event = storedEvent(callId, record);
        isOver = isEnd(event, callId);
        return of(event);
      }
      isOver = record.name === 'postCall' && isEndOf(callId, record);
      return EMPTY;
    };
    // Nothing is behind what is said to be seen, nor is that there: then the call may be over.
    const ended$ = (): Observable<typeof end> =>
      records$(driver, callId, { kind: 'event' }).pipe(
        takeLast(1),
        filter((last) => last.name === 'postCall' && isEndOf(callId, last)),
        map(() => end),
      );
    const look = (): Observable<AgentEvent | typeof end> =>
      concat(
        defer(read$).pipe(concatMap(seen$)),
        defer(() => (isOver ? of(end) : after === 0 && afterSeq > 0 ? ended$() : EMPTY)),
      );
    return lookAgain$(driver, callId, look).pipe(takeWhile((event) => event !== end));
  });

/** Who has seen an event need not be told that it cannot be read. */
const isEndOf = (callId: string, record: StoredRecord): boolean => {
  try {
    return isEnd(storedEvent(callId, record), callId);
  } catch {
    return false;
  }
};

/** Looks at what is stored of a call, and again whenever there may be more: one look after the other, and one for all hints that come during a look. Errors with `store` when the store is closed. */
const lookAgain$ = <T>(
  driver: CallStoreDriver,
  callId: string,
  look: () => Observable<T>,
): Observable<T> =>
  merge(
    // First, so that nothing is missed between the first look and the first hint.
    concat(
      defer(() => driver.changes$(callId)),
      closed$,
    ).pipe(failAs('store', 'The journal could not be followed')),
    of(undefined),
  ).pipe(
    map(() => hint),
    queuedMap(look, oneHint),
  );

const closed$ = throwError(
  () =>
    new MillraceError(
      'store',
      'The store was closed, and with it what is followed. Attach again where it is open.',
    ),
);

const hint = {};

const oneHint = (): Queue<object> => {
  let waiting: object | undefined;
  return {
    get size() {
      return waiting === undefined ? 0 : 1;
    },
    push: (value) => {
      waiting = value;
    },
    shift: () => {
      const value = waiting;
      waiting = undefined;
      return value;
    },
  };
};

/** Reads the records of a call in batches and maps each with `project`, in order. Reads the next batch when that is done and `wanted$` emits. */
export const inPortions$ = <T>(
  driver: CallStoreDriver,
  callId: string,
  range: RecordRange,
  project: (record: StoredRecord) => Observable<T>,
  wanted$: Observable<unknown> = of(undefined),
): Observable<T> =>
  defer(() => {
    const inTurn = subscribeOnTrampoline<true>(createTrampoline());
    let { after = 0 } = range;
    let isMore = true;
    const portion$ = defer(() => {
      isMore = false;
      return driver.read$(callId, { ...range, after });
    }).pipe(
      failAs('store', 'The journal could not be read'),
      take(1),
      tap((records) => {
        isMore = records.length > 0;
        after = records.at(-1)?.position ?? after;
      }),
      concatMap((records) => records),
    );
    return wanted$.pipe(
      concatMap(() => portion$),
      queuedMap(project, createQueue<StoredRecord>),
      // Portions that are there at once do not nest.
      repeat({ delay: () => (isMore ? of<true>(true).pipe(inTurn) : EMPTY) }),
    );
  });

/** Emits a value as soon as demand is open. */
const whenWanted$ = <T>(demand: Demand, value: T): Observable<T> =>
  defer(() =>
    demand.isOpen
      ? of(value)
      : demand.open$.pipe(
          first(Boolean),
          map(() => value),
        ),
  );
