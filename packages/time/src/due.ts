import type { MillraceError } from 'millrace';
import type { CallStoreDriver } from 'millrace/journal';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  race,
  repeat,
  type SchedulerLike,
  startWith,
  Subject,
  switchMap,
  take,
  tap,
  throwError,
  timer as after$,
} from 'rxjs';
import { claimed$, type ClaimedTimer, pending$, type Timer, toMillraceError } from './timers.js';
import { backOffMs, until$ } from './wait.js';

/** The outcome of the work of a timer. */
export type Outcome<T> = DoneOutcome<T> | { readonly type: 'later'; readonly at: number };

interface DoneOutcome<T> {
  readonly type: 'done';
  /** Recorded at the end of the timer. */
  readonly reason: string;
  readonly notice: T;
}

/** The store of the timers, or one of them, cannot be read. */
export type StoreNotice =
  | {
      readonly type: 'unavailable';
      readonly error: MillraceError;
      /** The delay before it is read again, in milliseconds. */
      readonly retryMs: number;
    }
  | {
      /** A damaged timer, or one of another format version. Reported once; it is never due. */
      readonly type: 'unreadable';
      readonly id: string;
      readonly error: MillraceError;
    };

export interface Due<T> {
  readonly driver: CallStoreDriver;
  /** Whether a timer is one of these, by its id. */
  readonly isWanted: (id: string) => boolean;
  readonly scheduler: SchedulerLike;
  readonly pollMs: number;
  readonly parallel: number;
  readonly where: (timer: Timer) => boolean;
  /** Does the work of a timer, which is claimed: emits one outcome. Work that fails is repeated if that may help. `add` takes a stored timer that follows it. */
  readonly work$: (timer: Timer, add: (next: Timer) => void) => Observable<Outcome<T>>;
  /** How often the work is tried if a call fails. A store that fails, or another process, does not count. */
  readonly maxAttempts: number;
  /** The notice of work that failed; without `retryMs`, it is given up. */
  readonly failed: (timer: Timer, error: MillraceError, retryMs?: number) => T;
  /** Called after each look at the store, with the pending timers: emits stored ones to add, or `undefined` if there will be no more. */
  readonly looked$: (
    pending: readonly Timer[],
    isFirst: boolean,
  ) => Observable<readonly Timer[] | undefined>;
}

/**
 * Does the work of the timers of a store when they are due, each under its claim: of many processes, one does it. A timer that another
 * process holds is tried again at the next look, as that may die. The clock of this process alone says what is due, and it may be set
 * forward or back, as may those of others. Never errors. Cold.
 */
export const due$ = <T>(due: Due<T>): Observable<T | StoreNotice> =>
  defer(() => {
    const { scheduler, pollMs } = due;
    const changed$ = new Subject<void>();
    const known = createKnown(due, changed$);
    let failures = 0;
    const look$ = defer(() => known.look$()).pipe(
      tap({ complete: () => (failures = 0) }),
      catchError((cause: unknown) => {
        failures += 1;
        const error = toMillraceError(cause);
        return of<StoreNotice>({ type: 'unavailable', error, retryMs: backOffMs(failures) });
      }),
    );
    const next$ = changed$.pipe(
      startWith(undefined),
      map(() => known.nextAt()),
      // The next look comes before others.
      switchMap((at) => (at - scheduler.now() > pollMs ? NEVER : until$(at, scheduler))),
    );
    // Delays, not times: a clock that is set back does not prolong them.
    const pause$ = defer(() =>
      failures > 0
        ? after$(backOffMs(failures), scheduler)
        : race(after$(pollMs, scheduler), next$).pipe(take(1)),
    );
    return concat(
      look$,
      defer(() => known.takeDue()),
    ).pipe(
      repeat({ delay: () => (known.isOver() ? EMPTY : pause$) }),
      mergeMap(
        (found) => (isPending(found) ? worked$(due, known, found) : of<T | StoreNotice>(found)),
        due.parallel,
      ),
    );
  });

/** A timer that this process knows. */
interface Pending {
  readonly timer: Timer;
  /** When to do its work, or to try it again. */
  at: number;
  /** When it was postponed. A clock that shows an earlier time was set back, so `at` says nothing. */
  postponedAt: number;
  /** Failures of any kind in a row, for the delay. */
  failures: number;
  /** Those that count. */
  attempts: number;
  isRunning: boolean;
}

const isPending = (found: Pending | StoreNotice): found is Pending => 'timer' in found;

/** Clocks of a store's processes rarely differ by more, in milliseconds, nor does a write take longer. */
const overlapMs = 60_000;

/** A long list is read as a whole so rarely that this takes up to 100 calls a second, but every 5 minutes. */
const wholeMs = (calls: number): number => Math.min(calls * 10, 300_000);

type Known = ReturnType<typeof createKnown>;

const createKnown = <T>(
  { driver, isWanted, scheduler, where, looked$ }: Due<T>,
  changed$: Subject<void>,
) => {
  const all = new Map<string, Pending>();
  const unreadable = new Set<string>();
  /** The last list that was read as a whole, and the start of the last look, by the clock of this process. */
  let whole = { at: Infinity, calls: 0 };
  let lookedAt = 0;
  let isFirst = true;
  let isOver = false;
  const add = (timer: Timer): void => {
    if (all.has(timer.id) || !where(timer)) return;
    const state = { postponedAt: -Infinity, failures: 0, attempts: 0, isRunning: false };
    all.set(timer.id, { timer, at: timer.at, ...state });
    changed$.next();
  };
  const listed$ = (): Observable<StoreNotice> => {
    const now = scheduler.now();
    const isWhole = now < whole.at || now - whole.at >= wholeMs(whole.calls);
    let calls = 0;
    // The next whole list finds what the clock of another process has dated too early.
    return pending$(driver, isWanted, isWhole ? -Infinity : lookedAt - overlapMs).pipe(
      mergeMap(({ id, timer, error }): readonly StoreNotice[] => {
        calls += 1;
        if (timer !== undefined) add(timer);
        if (error === undefined || unreadable.has(id)) return [];
        unreadable.add(id);
        return [{ type: 'unreadable', id, error }];
      }),
      tap({
        complete: () => {
          lookedAt = now;
          if (isWhole) whole = { at: now, calls };
        },
      }),
    );
  };
  const completed$ = defer(() =>
    looked$(
      [...all.values()].map(({ timer }) => timer),
      isFirst,
    ),
  ).pipe(
    tap((more) => {
      isFirst = false;
      isOver = more === undefined;
      more?.forEach(add);
    }),
    ignoreElements(),
  );
  return {
    add,
    remove: ({ timer }: Pending): void => void all.delete(timer.id),
    postpone: (pending: Pending, at: number): void => {
      Object.assign(pending, { at, postponedAt: scheduler.now(), isRunning: false });
      changed$.next();
    },
    look$: (): Observable<StoreNotice> => concat(listed$(), completed$),
    isOver: (): boolean => isOver,
    nextAt: (): number =>
      [...all.values()].reduce((at, it) => (it.isRunning ? at : Math.min(at, it.at)), Infinity),
    takeDue: (): readonly Pending[] => {
      const now = scheduler.now();
      const found = [...all.values()].filter(
        ({ at, postponedAt, isRunning }) => !isRunning && (at <= now || now < postponedAt),
      );
      for (const pending of found) pending.isRunning = true;
      return found.sort((a, b) => a.timer.at - b.timer.at);
    },
  };
};

const worked$ = <T>(due: Due<T>, known: Known, pending: Pending): Observable<T> => {
  const { driver, scheduler, pollMs, failed } = due;
  let isClaimed = false;
  return claimed$(driver, pending.timer.id, (claimed) => {
    isClaimed = true;
    return ended$(due, pending, claimed, known.add);
  }).pipe(
    concatMap((outcome): readonly T[] => {
      if (outcome?.type === 'later') {
        known.postpone(pending, outcome.at);
        return [];
      }
      known.remove(pending);
      return outcome === undefined ? [] : [outcome.notice];
    }),
    catchError((cause: unknown): Observable<T> => {
      const error = toMillraceError(cause);
      if (!isClaimed && error.code === 'conflict') {
        known.postpone(pending, scheduler.now() + pollMs);
        return EMPTY;
      }
      pending.failures += 1;
      const retryMs = backOffMs(pending.failures);
      known.postpone(pending, scheduler.now() + retryMs);
      return of(failed(pending.timer, error, retryMs));
    }),
  );
};

/** Does the work and ends the timer, also if the work is given up. Errors if it shall be repeated. */
const ended$ = <T>(
  { work$, maxAttempts, failed }: Due<T>,
  pending: Pending,
  { timer, end$ }: ClaimedTimer,
  add: (next: Timer) => void,
): Observable<Outcome<T>> =>
  defer(() => work$(timer, add)).pipe(
    take(1),
    catchError((cause: unknown): Observable<Outcome<T>> => {
      const error = toMillraceError(cause);
      const { code, retryable } = error;
      // Neither the store nor another process says anything about the work.
      const isElsewhere = code === 'store' || code === 'busy' || (code === 'conflict' && retryable);
      const isPassing = code === 'aborted' || retryable;
      if (!isElsewhere) pending.attempts += 1;
      const isRepeated = isElsewhere || (isPassing && pending.attempts < maxAttempts);
      return isRepeated
        ? throwError(() => error)
        : of({ type: 'done', reason: `failed: ${code}`, notice: failed(timer, error) });
    }),
    concatMap((outcome) =>
      outcome.type === 'later' ? of(outcome) : concat(end$(outcome.reason), of(outcome)),
    ),
  );
