import {
  type Observable,
  type SchedulerLike,
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
  of,
  repeat,
  take,
  takeLast,
  takeWhile,
  tap,
  throwError,
  timeout,
  catchError,
  reduce,
  timer,
} from 'rxjs';
import type { Demand } from '../flow/demand.js';
import type { AgentEvent } from '../events.js';
import { isRecord } from '../values/json.js';
import {
  checkOptions,
  isDelay,
  isScheduler,
  longestDelayMs,
  type Rule,
  wholeNumber,
  isFunction,
  numberFrom,
} from '../values/options.js';
import { records$ } from './call-store.js';
import {
  type CallStoreDriver,
  type RecordRange,
  type StoredRecord,
  type StoreOfCalls,
  assertStored$,
  checkStored,
  isStored$,
  notStored,
} from './call-store-driver.js';
import { isEnd, storedEvent } from './record-json.js';
import { failAs } from '../flow/contained.js';
import { MillraceError } from '../values/errors.js';
import { createFifo, type Fifo } from '../flow/fifo.js';
import { queuedMap } from '../operators/bounded.js';
import { createTrampoline, subscribeOnTrampoline } from '../flow/trampoline.js';

export interface AttachOptions {
  /** The `seq` of the last received event: only later ones are emitted. Default: 0. */
  readonly afterSeq?: number | undefined;
  /** How long to wait for a call that is not in the store yet, in milliseconds. Default: 0. */
  readonly waitMs?: number | undefined;
  /** Pauses reading while it is closed. Default: always open. */
  readonly demand?: Demand | undefined;
  /** The scheduler for `waitMs`. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

const attachRules: Readonly<Record<keyof AttachOptions, Rule>> = {
  afterSeq: wholeNumber(0),
  waitMs: isDelay,
  demand: [(value) => isRecord(value) && isObservable(value['open$']), 'a demand: createDemand()'],
  scheduler: isScheduler,
};

/**
 * Follows a call of any process: emits its recorded events, then new ones, each once, in order and frozen. Completes after
 * `postCall`, or after `error` if the call has not been resumed by then; attaching after that `error` waits for a resume. Waits for a call that stopped.
 * Unsubscribing does not affect the call. Emits the events that the option `events` of `createCallStore` records. Errors with
 * `invalidResume` if there is no such call within `waitMs`, `invalidState` at an unreadable event, and `store` if the store fails or is closed. Cold.
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
      // Includes the last received event, which may be the end.
      const range = { kind: 'event', after, afterSeq: afterSeq - 1 } as const;
      if (demand === undefined) return records$(driver, callId, range);
      const wanted = <T>(value: T) => whenWanted$(demand, value);
      return readInBatches$(driver, callId, range, wanted, wanted(undefined));
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
    // Neither later events nor the last received one exist: the call may have ended.
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

const isEndOf = (callId: string, record: StoredRecord): boolean => {
  try {
    return isEnd(storedEvent(callId, record), callId);
  } catch {
    return false;
  }
};

const lookAgain$ = <T>(
  driver: CallStoreDriver,
  callId: string,
  look: () => Observable<T>,
): Observable<T> =>
  merge(
    // Subscribed first: no change between the first read and the first hint is missed.
    concat(
      defer(() => driver.changes$(callId)),
      closed$,
    ).pipe(failAs('store', 'Attaching to the journal failed')),
    of(undefined),
  ).pipe(
    map(() => hint),
    queuedMap(look, oneHint),
  );

const closed$ = throwError(
  () =>
    new MillraceError(
      'store',
      'The store was closed, which ends attached calls. Attach again with an open store.',
    ),
);

const hint = {};

const oneHint = (): Fifo<object> => {
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

export const readInBatches$ = <T>(
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
      queuedMap(project, createFifo<StoredRecord>),
      // Batches that are available synchronously do not nest.
      repeat({ delay: () => (isMore ? of<true>(true).pipe(inTurn) : EMPTY) }),
    );
  });

const whenWanted$ = <T>(demand: Demand, value: T): Observable<T> =>
  defer(() =>
    demand.isOpen
      ? of(value)
      : demand.open$.pipe(
          first(Boolean),
          map(() => value),
        ),
  );

export interface ReplayOptions {
  /** The factor of the original speed; `Infinity` for no pauses. Default: 1. */
  readonly speed?: number | undefined;
  /** Maximum original pause between two events, in milliseconds. Default: Infinity. */
  readonly maxGapMs?: number | undefined;
  readonly events?: ((event: AgentEvent) => boolean) | undefined;
  /** The scheduler for pauses. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

const replayRules: Readonly<Record<keyof ReplayOptions, Rule>> = {
  speed: [(value) => typeof value === 'number' && value > 0, 'a number above 0, or Infinity'],
  maxGapMs: [
    (value) => value === Infinity || numberFrom(0)[0](value),
    'a number of milliseconds of at least 0, or Infinity',
  ],
  events: isFunction,
  scheduler: isScheduler,
};

/**
 * Plays a call back: emits its recorded events, frozen, with their original pauses, the first immediately, and completes after the last. Nothing
 * runs again, and later events are not included: see `attach$`. Reads in batches. Errors with `invalidResume` if there is no such call, and `invalidState` at an unreadable event. Cold.
 */
export const replay$ = (
  store: StoreOfCalls,
  callId: string,
  options: ReplayOptions = {},
): Observable<AgentEvent> => {
  checkStored('replay$()', store, callId);
  checkOptions('replay$()', options, replayRules);
  const { events = () => true } = options;
  const { driver } = store;
  const played$ = (last: number): Observable<AgentEvent | typeof end> => {
    const due = clockOf(options);
    return readInBatches$<AgentEvent | typeof end>(driver, callId, eventsOnly, (record) => {
      if (record.position > last) return of(end);
      const event = storedEvent(callId, record);
      return events(event) ? due(event) : EMPTY;
    });
  };
  return concat(
    assertStored$(driver, callId),
    lastPosition$(driver, callId).pipe(
      concatMap(played$),
      takeWhile((event) => event !== end),
    ),
  );
};

const eventsOnly = { kind: 'event' } as const;

const lastPosition$ = (driver: CallStoreDriver, callId: string): Observable<number> =>
  records$(driver, callId, eventsOnly).pipe(
    reduce((_, { position }) => position, 0),
    catchError(() => of(Infinity)),
  );

/** Returns when each event is due, counted from the first one: rounding does not accumulate. */
const clockOf = ({
  speed = 1,
  maxGapMs = Infinity,
  scheduler = asyncScheduler,
}: ReplayOptions): ((event: AgentEvent) => Observable<AgentEvent>) => {
  let before: number | undefined;
  let dueAt = scheduler.now();
  return (event) => {
    const gapMs = Math.min(Math.max(0, event.at - (before ?? event.at)), maxGapMs);
    before = event.at;
    dueAt += gapMs / speed;
    const waitMs = Math.min(dueAt - scheduler.now(), longestDelayMs);
    return waitMs > 0 ? timer(waitMs, scheduler).pipe(map(() => event)) : of(event);
  };
};
