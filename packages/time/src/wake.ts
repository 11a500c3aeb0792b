import {
  type CallOptions,
  type MillraceError,
  type Reply,
  type ToolOutput,
  toolResults,
  suspensionsIn,
  toolOutput,
} from 'millrace';
import type { CallStoreDriver } from 'millrace/journal';
import type { KeptSession } from 'millrace/sessions';
import { checkOptions, defined, having, isFunction, isRecord, parsedJson } from 'millrace/values';
import {
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  ignoreElements,
  last,
  map,
  type Observable,
  type ObservableInput,
  of,
  reduce,
  type SchedulerLike,
  throwError,
} from 'rxjs';
import { due$, type Outcome, type StoreNotice } from './due.js';
import { driverOf, loopRules, type TimerStore } from './options.js';
import { isSleepId, sleepIn$, slept } from './sleep.js';
import { except, isConflict, isRecorded$, isTaken, type Timer } from './timers.js';
import { backOffMs } from './wait.js';

/** A suspended call whose sleep is over. */
export interface Sleep {
  /** The suspended call. */
  readonly callId: string;
  readonly sessionId: string;
  /** The name of its agent. */
  readonly agent: string;
  /** The end of the sleep, in milliseconds since the epoch. */
  readonly at: number;
}

/** A suspended call that is due, and the results that continue it. */
export interface Waking extends Sleep {
  /** The id for the call that continues it: always the same, so that a second one is refused. */
  readonly nextId: string;
  /** The results of its tool calls, for `toolResults` or the method of an engine. */
  readonly results: Readonly<Record<string, ToolOutput>>;
}

/** Continues a suspended call. What it emits last is the `value` of its notice. */
export type Resume<T> = (waking: Waking) => ObservableInput<T>;

export type WakeNotice<T = unknown> =
  | { readonly type: 'woken'; readonly sleep: Sleep; readonly value: T }
  | {
      readonly type: 'over';
      readonly sleep: Sleep;
      /**
       * `answered`: cancelled by a message, answered by someone else, or removed. `mixed`: other tool calls of the same message wait, too, and results come
       * together. Who brings those brings one for the sleep.
       */
      readonly why: 'answered' | 'mixed';
    }
  | {
      readonly type: 'failed';
      readonly sleep: Sleep;
      readonly error: MillraceError;
      /** The delay before it is tried again, in milliseconds; absent if it is given up: a recorded call can be resumed. */
      readonly retryMs?: number;
    }
  | StoreNotice;

/** Options of `wake$`. */
export interface WakeOptions {
  /** Which sleeps to end: `({ agent }) => agent === 'support'`. Default: all. */
  readonly where?: ((sleep: Sleep) => boolean) | undefined;
  /**
   * How often the store is read for new sleeps, in milliseconds, from 100. Sleeps that it knows end on time. With over a thousand unfinished calls, a new sleep of a
   * process whose clock is more than a minute slow is found later, within 5 minutes. Default: 10,000.
   */
  readonly pollMs?: number | undefined;
  /** How many calls run at the same time. Default: 4. */
  readonly parallel?: number | undefined;
  /** How often a call is tried that fails with a `retryable` error, with a growing delay. Default: 10. Failures of the store, `busy` and lost claims do not count. */
  readonly maxAttempts?: number | undefined;
  /** Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

/** Opens the sessions of the sleeping calls: `keepSessions(agent, store.sessions, { journal })`. */
export interface WokenSessions<out Output = unknown> {
  open$(sessionId: string): Observable<WokenSession<Output>>;
}

/** A kept session, or what does the same. `close$` is called after a conflict, so that the session is loaded again. */
export type WokenSession<Output = unknown> = Pick<
  KeptSession<Output>,
  'call$' | 'resume$' | 'memory'
> &
  Partial<Pick<KeptSession, 'close$'>>;

/**
 * Continues sleeping calls when their time has come, in this process: with the sessions of `keepSessions`, or with a function, for an engine. Any
 * number of processes may run it on one store: each sleep is continued once, also after a crash, when the next process resumes the call that continues it. What
 * was due while no process ran is continued at the start. Emits what becomes of each sleep; neither completes nor errors. Cold; unsubscribing aborts what runs, which can be resumed.
 *
 * @example
 * ```ts
 * wake$(store.calls, keepSessions(agent, store.sessions, { journal: journal(store.calls) }));
 * wake$(engine.store.calls, ({ callId, results }) => engine.answer$(callId, results)); // of `@millrace/dbos`
 * ```
 */
export function wake$<Output>(
  store: TimerStore,
  sessions: WokenSessions<Output>,
  options?: WakeOptions,
): Observable<WakeNotice<Reply<Output>>>;
export function wake$<T>(
  store: TimerStore,

  resume: Resume<T>,
  options?: WakeOptions,
): Observable<WakeNotice<T>>;
export function wake$(
  store: TimerStore,
  target: WokenSessions | Resume<unknown>,
  options: WakeOptions = {},
): Observable<WakeNotice> {
  const driver = driverOf('wake$()', store);
  checkOptions('wake$()', { ...options, target }, rules, ['target']);
  const { where = () => true, pollMs = 10_000, parallel = 4, maxAttempts = 10 } = options;
  const { scheduler = asyncScheduler } = options;
  // eslint-disable-next-line rxjs-x/finnish -- a function, which returns an Observable, or another target
  const wakes = { driver, target, scheduler, given: defined({ scheduler: options.scheduler }) };
  return due$<WakeNotice>({
    ...{ driver, isWanted: isSleepId, scheduler, pollMs, parallel, maxAttempts },
    where: (timer) => where(sleepOf(timer)),
    work$: (timer) => woken$(wakes, timer),
    failed: (timer, error, retryMs) => ({
      ...{ type: 'failed', sleep: sleepOf(timer), error },
      ...(retryMs !== undefined && { retryMs }),
    }),
    looked$: () => of([]),
  });
}

const rules = {
  ...loopRules,
  where: isFunction,
  target: [
    (value: unknown) => typeof value === 'function' || having('open$', '')[0](value),
    'kept sessions, or a function',
  ],
} as const;

const sleepOf = ({ at, data }: Timer): Sleep => {
  const { callId = '', sessionId = '', agent = '' } = data;
  return { callId, sessionId, agent, at };
};

interface Wakes {
  readonly driver: CallStoreDriver;
  // eslint-disable-next-line rxjs-x/finnish -- a function, which returns an Observable, or another target
  readonly target: WokenSessions | Resume<unknown>;
  readonly scheduler: SchedulerLike;
  /** Options of the calls. */
  readonly given: Pick<CallOptions, 'scheduler'>;
}

const woken$ = (wakes: Wakes, timer: Timer): Observable<Outcome<WakeNotice>> => {
  const { driver, target, given } = wakes;
  const sleep = sleepOf(timer);
  const { callId, sessionId } = sleep;
  if (typeof target === 'function') {
    return continued$(wakes, timer, (waking) => brought$(timer, from(target(waking))));
  }
  const nextId = nextIdOf(callId);
  return defer(() => target.open$(sessionId)).pipe(
    concatMap((session) =>
      isRecorded$(driver, nextId).pipe(
        concatMap((isBegun) =>
          isBegun
            ? brought$(timer, session.resume$(nextId, given))
            : continued$(
                wakes,
                timer,
                (waking) => answered$(session, timer, waking, given),
                session,
              ),
        ),
        // Another process has saved the session: it is loaded again.
        except(isConflict, (error) =>
          concat(
            closed$(session),
            throwError(() => error),
          ),
        ),
      ),
    ),
  );
};

/** A session that is in use stays open. */
const closed$ = (session: WokenSession): Observable<never> =>
  session.close$?.().pipe(catchError(() => EMPTY)) ?? EMPTY;

/** Brings the results of a suspended call, once it is recorded as such. */
const continued$ = (
  { driver, scheduler, given }: Wakes,
  timer: Timer,
  bring$: (waking: Waking) => Observable<Outcome<WakeNotice>>,
  session?: WokenSession,
): Observable<Outcome<WakeNotice>> => {
  const sleep = sleepOf(timer);
  const { callId } = sleep;
  const resumed$ = (waits: Waits): Observable<Outcome<WakeNotice>> => {
    const now = scheduler.now();
    const ids = Object.keys(waits.sleeps);
    if (!ids.some((id) => waits.sleeps[id]?.id === timer.id)) return of(over(timer));
    const at = Math.max(...Object.values(waits.sleeps).map((it) => it.at));
    if (waits.others > 0) return of(over(timer, 'mixed'));
    // All results come together, so the last sleep counts, and others bring theirs with it.
    if (at > now) return of({ type: 'later', at });
    const results = Object.fromEntries(
      Object.entries(waits.sleeps).map(([id, { at: end }]) => [
        id,
        toolOutput({ content: slept(end, now) }),
      ]),
    );
    return bring$({ ...sleep, nextId: nextIdOf(callId), results });
  };
  return waitsOf$(driver, callId).pipe(
    concatMap((waits) => {
      if (waits.status === 'ended') return resumed$(waits);
      if (waits.status === 'unknown') return of(over(timer));
      // The call was left before it was suspended. An engine resumes its calls itself.
      return session === undefined
        ? of<Outcome<WakeNotice>>({ type: 'later', at: scheduler.now() + backOffMs(5) })
        : session
            .resume$(callId, given)
            .pipe(
              ignoreElements(),
              (done$) => concat(done$, waitsOf$(driver, callId)),
              concatMap(resumed$),
            );
    }),
  );
};

const brought$ = (timer: Timer, value$: Observable<unknown>): Observable<Outcome<WakeNotice>> =>
  value$.pipe(
    last(undefined, undefined),
    map((value) => done(timer, value)),
    except(isRefused, () => of(over(timer))),
  );

const answered$ = (
  session: WokenSession,
  timer: Timer,
  { callId, nextId, results }: Waking,
  given: Wakes['given'],
): Observable<Outcome<WakeNotice>> => {
  const isAwaited$ = defer(() => session.memory.load$()).pipe(
    map((messages) => suspensionsIn(messages).some(({ toolCall }) => toolCall.id in results)),
  );
  const call$ = brought$(timer, session.call$(toolResults(results), { ...given, callId: nextId }));
  return isAwaited$.pipe(
    concatMap((isAwaited) =>
      isAwaited
        ? call$
        : // It was cancelled, or its process ended before it saved the session with the suspended call.
          concat(session.resume$(callId, given).pipe(ignoreElements()), isAwaited$).pipe(
            concatMap((isSaved) => (isSaved ? call$ : of(over(timer)))),
          ),
    ),
  );
};

const done = (timer: Timer, value: unknown): Outcome<WakeNotice> => ({
  ...{ type: 'done', reason: 'woken' },
  notice: { type: 'woken', sleep: sleepOf(timer), value },
});

const over = (timer: Timer, why: 'answered' | 'mixed' = 'answered'): Outcome<WakeNotice> => ({
  ...{ type: 'done', reason: why },
  notice: { type: 'over', sleep: sleepOf(timer), why },
});

/** Nothing waits for these results. */
const isUnawaited = ({ code }: MillraceError): boolean => code === 'invalidResume';

const isRefused = (error: MillraceError): boolean => isUnawaited(error) || isTaken(error);

/** `order-7` is continued by `order-7~woken1`, and that by `order-7~woken2`. */
const nextIdOf = (callId: string): string => {
  const [, base = callId, count = '0'] = /^(.*)~woken(\d{1,9})$/su.exec(callId) ?? [];
  return `${base}~woken${Number(count) + 1}`;
};

interface Waits {
  readonly status: 'unknown' | 'unfinished' | 'ended';
  /** The sleeps for which it is suspended, by the ids of their tool calls. */
  readonly sleeps: Readonly<Record<string, { readonly id: string; readonly at: number }>>;
  /** The number of other tool calls for whose results it waits. */
  readonly others: number;
}

/** Reads from its record for which results a call waits. */
const waitsOf$ = (driver: CallStoreDriver, callId: string): Observable<Waits> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    concatMap((records) => records),
    last(undefined, undefined),
    concatMap((record) => {
      if (record === undefined) return of(noWaits('unknown'));
      return record.name === `${callId}/reply`
        ? waitsIn$(driver, record.text)
        : of(noWaits('unfinished'));
    }),
  );

const noWaits = (status: Waits['status']): Waits => ({ status, sleeps: {}, others: 0 });

const waitsIn$ = (driver: CallStoreDriver, text: string): Observable<Waits> => {
  const reply = parsedJson(text);
  const given = isRecord(reply) ? reply['suspensions'] : undefined;
  const suspensions: readonly unknown[] = Array.isArray(given) ? given : [];
  return from(suspensions.filter(isRecord)).pipe(
    concatMap((suspension) => sleepIn$(driver, suspension)),
    reduce(
      ({ status, sleeps, others }: Waits, sleep): Waits =>
        sleep === undefined
          ? { status, sleeps, others: others + 1 }
          : { status, sleeps: { ...sleeps, [sleep.toolCallId]: sleep }, others },
      noWaits('ended'),
    ),
  );
};
