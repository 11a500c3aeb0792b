import type { Agent, CallOptions, Input, MillraceError, Reply } from 'millrace';
import {
  createCallStore,
  inProcessCalls,
  type CallStore,
  type CallStoreDriver,
  type Journal,
} from 'millrace/journal';
import type { KeptSession } from 'millrace/sessions';
import { checkOptions, defined, having, isRecord, isText, oneOf, type Rule } from 'millrace/values';
import {
  asyncScheduler,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  ignoreElements,
  last,
  map,
  mergeMap,
  type Observable,
  type ObservableInput,
  of,
  type SchedulerLike,
  tap,
} from 'rxjs';
import { type CronTimes, readCron } from './cron.js';
import { due$, type Outcome, type StoreNotice } from './due.js';
import { isTimerStore, loopRules, type TimerStore } from './options.js';
import { except, isConflict, isRecorded$, isTaken, set$, type Timer } from './timers.js';

/** A time of a schedule. */
export interface Firing {
  /** The time of the schedule, in milliseconds since the epoch. */
  readonly at: number;
  /** The id of its call: the name of the schedule, and the time. */
  readonly callId: string;
  readonly message: Input;
}

/** Makes the call of a firing. What it emits last is the `value` of its notice. */
export type MakeCall<T> = (firing: Firing) => ObservableInput<T>;

export type ScheduleNotice<T = unknown> =
  | { readonly type: 'ended'; readonly at: number; readonly callId: string; readonly value: T }
  /** It was missed, and `missed` is `skip`. */
  | { readonly type: 'skipped'; readonly at: number; readonly callId: string }
  | {
      readonly type: 'failed';
      readonly at: number;
      readonly callId: string;
      readonly error: MillraceError;
      /** The delay before it is tried again, in milliseconds; absent if it is given up: a recorded call can be resumed. */
      readonly retryMs?: number;
    }
  | StoreNotice;

/** Options of `schedule`. */
export interface ScheduleOptions {
  /** The name of the schedule in the store, the same in all processes. Required with a `journal` or a `store`. Default: `schedule`. */
  readonly name?: string | undefined;
  /** Such as `Europe/Berlin`: the clock times of the expression are those of the zone, through all changes. Default: that of the process. */
  readonly timeZone?: string | undefined;
  /**
   * Records the calls, and the times of the schedule with them: a call that was left is resumed, and of many processes one makes it. For kept sessions, that of
   * `keepSessions`. Default: none, and times are forgotten when it is unsubscribed.
   */
  readonly journal?: Journal<CallStore> | undefined;
  /**
   * Only the times, for calls of an engine or of kept sessions with a journal: their store of calls. The call of an agent that nothing records is made again as a
   * whole after a crash, with its tool calls: give `journal` instead. Default: that of the journal.
   */
  readonly store?: TimerStore | undefined;
  /** Times at which no process ran lead to one call for all of them (`once`), one for each (`all`), or none (`skip`: up to a minute late is not missed). Default: `once`. */
  readonly missed?: 'once' | 'all' | 'skip' | undefined;
  /** How often the store is read for what other processes have left, in milliseconds, from 100. Default: 10,000. */
  readonly pollMs?: number | undefined;
  /** How many of its calls run at the same time. Default: 1, so a time during a call waits for its end, and several of them count as missed. */
  readonly parallel?: number | undefined;
  /** How often a call is tried that fails with a `retryable` error, with a growing delay. Default: 1. Failures of the store, `busy` and lost claims do not count. */
  readonly maxAttempts?: number | undefined;
  /** Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

/** A session whose calls have the memory of earlier ones. */
export type ScheduledSession<out Output = unknown> = Pick<KeptSession<Output>, 'call$' | 'resume$'>;

/**
 * Makes a call at each time of a cron expression: of an agent, of a kept session, or by a function, for an engine. Emits what becomes of each; an error of a call does
 * not end it. Completes if the expression has no further times; never errors. Cold: unsubscribing ends the schedule in this process, and aborts what runs. Throws
 * `config` for an expression, a time zone or an option that is not valid.
 *
 * @example
 * ```ts
 * schedule(agent, '0 9 * * 1-5', 'Summarize the news.', { name: 'news', timeZone: 'Europe/Berlin', journal: durable });
 * schedule(({ message, callId }) => engine.start$('support', message, { callId }), '@hourly', 'Look for new tickets.', { name: 'tickets', store: engine.store.calls });
 * ```
 */
export function schedule<Output>(
  target: Agent<Output> | ScheduledSession<Output>,
  cron: string,
  message: Input,
  options?: ScheduleOptions,
): Observable<ScheduleNotice<Reply<Output>>>;
export function schedule<T>(
  target: MakeCall<T>,
  cron: string,
  message: Input,
  options?: ScheduleOptions,
): Observable<ScheduleNotice<T>>;
// eslint-disable-next-line rxjs-x/finnish -- a function, which returns an Observable, or another target
export function schedule(
  target: Target,
  cron: string,
  message: Input,
  options: ScheduleOptions = {},
): Observable<ScheduleNotice> {
  checkOptions('schedule()', { ...options, target, message }, rules, requiredOf(options));
  const { timeZone, journal, missed = 'once', pollMs = 10_000, maxAttempts = 1 } = options;
  const { name = 'schedule', parallel = 1, scheduler = asyncScheduler } = options;
  const times = readCron(cron, timeZone);
  return defer(() => {
    const store =
      options.store ?? journal?.store ?? createCallStore(inProcessCalls(() => scheduler.now()));
    const { driver } = store;
    const plan: Plan = {
      driver,
      name,
      times,
      scheduler,
      data: { cron, timeZone: timeZone ?? '' },
    };
    // eslint-disable-next-line rxjs-x/finnish -- a function, which returns an Observable, or another target
    const made = { target, journal, missed, given: defined({ scheduler: options.scheduler }) };
    const firingOf = ({ at }: Timer): Firing => ({ at, callId: `${name}:${iso(at)}`, message });
    const named = (timer: Timer) => ({ at: timer.at, callId: firingOf(timer).callId });
    return due$<ScheduleNotice>({
      ...{ driver, isWanted: isTimerOf(name), scheduler, pollMs, parallel, maxAttempts },
      where: () => true,
      work$: (timer, add) => fired$(plan, made, timer, firingOf(timer), add),
      failed: (timer, error, retryMs) => ({
        ...{ type: 'failed', ...named(timer), error },
        ...(retryMs !== undefined && { retryMs }),
      }),
      looked$: (pending, isFirst) => planned$(plan, pending, isFirst),
    });
  });
}

type Target = Pick<Agent, 'call$' | 'with' | 'name'> | ScheduledSession | MakeCall<unknown>;

const timerPrefix = 'schedule:';

const requiredOf = ({ journal, store }: ScheduleOptions): readonly string[] =>
  journal === undefined && store === undefined
    ? ['target', 'message']
    : ['target', 'message', 'name'];

const rules: Readonly<Record<keyof ScheduleOptions | 'target' | 'message', Rule>> = {
  ...loopRules,
  target: [
    (value) => typeof value === 'function' || having('call$', '')[0](value),
    'an agent, a kept session or a function',
  ],
  message: [
    (value) => value !== undefined && value !== null && value !== '',
    'a message for the agent',
  ],
  name: [
    // The id of its calls would be that of a timer.
    (value) => typeof value === 'string' && !value.startsWith(timerPrefix),
    `a string that does not start with '${timerPrefix}'`,
  ],
  timeZone: isText,
  journal: [
    (value) => isRecord(value) && isTimerStore(value['store']),
    'a journal on a store of calls',
  ],
  store: [isTimerStore, 'a store of calls'],
  missed: oneOf('once', 'all', 'skip'),
};

const iso = (ms: number): string => new Date(ms).toISOString();

const idOf = (name: string, at: number): string => `${timerPrefix}${name}:${iso(at)}`;

/** Whether a timer is one of a schedule. The name of another one may begin with its name and a colon, so the rest has to be a time. */
const isTimerOf =
  (name: string) =>
  (id: string): boolean => {
    const prefix = `${timerPrefix}${name}:`;
    const at = Date.parse(id.slice(prefix.length));
    return id.startsWith(prefix) && Number.isFinite(at) && id === idOf(name, at);
  };

interface Plan {
  readonly driver: CallStoreDriver;
  readonly name: string;
  readonly times: CronTimes;
  readonly scheduler: SchedulerLike;
  readonly data: Readonly<Record<'cron' | 'timeZone', string>>;
}

/** Stores the first time after another one, and emits it; `undefined` after the last one. */
const setAfter$ = (
  { driver, name, times, data }: Plan,
  ms: number,
): Observable<Timer | undefined> => {
  const at = times.after(ms);
  if (at === undefined) return of(undefined);
  const timer: Timer = { id: idOf(name, at), at, about: `Scheduled for ${iso(at)}`, data };
  return set$(driver, timer).pipe(
    // Another process stores it or makes its call.
    except(isConflict, () => of(timer)),
  );
};

/**
 * Stores the next time if no time is pending, or only later ones: those of a clock that was set back since. At the start, times of another expression that are to
 * come are removed: a later expression may have them again.
 */
const planned$ = (
  plan: Plan,
  pending: readonly Timer[],
  isFirst: boolean,
): Observable<readonly Timer[] | undefined> => {
  const { driver, scheduler, times, data } = plan;
  const now = scheduler.now();
  const isOther = (timer: Timer): boolean =>
    timer.data['cron'] !== data.cron || timer.data['timeZone'] !== data.timeZone;
  const replaced = pending.filter((timer) => isFirst && timer.at > now && isOther(timer));
  const next = times.after(now) ?? Infinity;
  const isPlanned = pending.some(
    (timer) => !replaced.includes(timer) && (timer.at <= next || isOther(timer)),
  );
  const removed$ = from(replaced).pipe(
    mergeMap(({ id }) => driver.remove$(id).pipe(except(isConflict, () => EMPTY))),
    ignoreElements(),
  );
  if (isPlanned) return concat(removed$, of([]));
  return concat(
    removed$,
    setAfter$(plan, now).pipe(map((timer) => (timer === undefined ? undefined : [timer]))),
  );
};

interface Made {
  // eslint-disable-next-line rxjs-x/finnish -- a function, which returns an Observable, or another target
  readonly target: Target;
  readonly journal: Journal<CallStore> | undefined;
  readonly missed: 'once' | 'all' | 'skip';
  /** Options of the calls. */
  readonly given: Pick<CallOptions, 'scheduler'>;
}

/** A call may start so late, in milliseconds, before its time counts as missed. */
const graceMs = 60_000;

/** Stores the next time, then makes the call or resumes it: the schedule continues even if the process ends. */
const fired$ = (
  plan: Plan,
  made: Made,
  timer: Timer,
  firing: Firing,
  add: (next: Timer) => void,
): Observable<Outcome<ScheduleNotice>> => {
  const { driver, scheduler } = plan;
  const { at } = timer;
  const { callId } = firing;
  const isLate = scheduler.now() - at > graceMs;
  return setAfter$(plan, made.missed === 'all' ? at : Math.max(at, scheduler.now())).pipe(
    tap((next) => next && add(next)),
    concatMap(() =>
      isRecorded$(driver, callId).pipe(
        concatMap((isBegun): Observable<Outcome<ScheduleNotice>> => {
          if (made.missed === 'skip' && isLate && !isBegun) {
            const notice = { type: 'skipped', at, callId } as const;
            return of({ type: 'done', reason: 'skipped', notice });
          }
          return made$(made, firing, isBegun).pipe(
            last(undefined, undefined),
            map((value) => ({
              ...{ type: 'done', reason: 'ended' },
              notice: { type: 'ended', at, callId, value },
            })),
          );
        }),
      ),
    ),
  );
};

const made$ = (
  { target, journal, given }: Made,
  firing: Firing,
  isBegun: boolean,
): Observable<unknown> => {
  const { callId, message } = firing;
  if (typeof target === 'function') {
    // An engine may have the call already.
    return defer(() => target(firing)).pipe(except(isTaken, () => EMPTY));
  }
  if ('resume$' in target) {
    return isBegun ? target.resume$(callId, given) : target.call$(message, { ...given, callId });
  }
  if (journal === undefined) return target.call$(message, { ...given, callId });
  return isBegun
    ? journal.resume$(target, callId, given)
    : // A layer of the agent: an option of the call would be needed again to resume it.
      target.with(journal).call$(message, { ...given, callId });
};
