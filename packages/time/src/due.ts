import type { MillraceError } from 'millrace';
import type { CallStoreDriver } from 'millrace/journal';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  mergeMap,
  type Observable,
  of,
  race,
  repeat,
  type SchedulerLike,
  Subject,
  take,
  tap,
  throwError,
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
  /** Of the ids of the timers. */
  readonly prefix: string;
  readonly scheduler: SchedulerLike;
  readonly pollMs: number;
  readonly parallel: number;
  readonly where: (timer: Timer) => boolean;
  /** Does the work of a timer, which is claimed: emits one outcome. Work that fails is repeated if that may help. `add` takes a stored timer that follows it. */
  readonly work$: (timer: Timer, add: (next: Timer) => void) => Observable<Outcome<T>>;
  /** How often the work is repeated if a call fails. A store that fails, or another process, does not count. */
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
 * process holds is tried again at the next look, as that may die. Never errors. Cold.
 */
export const due$ = <T>(due: Due<T>): Observable<T | StoreNotice> =>
  defer(() => {
    const { scheduler, pollMs } = due;
    const known = createKnown(due);
    const added$ = new Subject<void>();
    let failures = 0;
    const look$ = defer(() => known.look$()).pipe(
      tap({ complete: () => (failures = 0) }),
      catchError((cause: unknown) => {
        failures += 1;
        const error = toMillraceError(cause);
        return of<StoreNotice>({ type: 'unavailable', error, retryMs: backOffMs(failures) });
      }),
    );
    const pause$ = defer(() => {
      const now = scheduler.now();
      if (failures > 0) return until$(now + backOffMs(failures), scheduler);
      return race(until$(Math.min(now + pollMs, known.nextAt()), scheduler), added$).pipe(take(1));
    });
    return concat(
      look$,
      defer(() => known.takeDue()),
    ).pipe(
      repeat({ delay: () => (known.isOver() ? EMPTY : pause$) }),
      mergeMap(
        (found) =>
          isPending(found) ? worked$(due, known, added$, found) : of<T | StoreNotice>(found),
        due.parallel,
      ),
    );
  });

/** A timer that this process knows. */
interface Pending {
  readonly timer: Timer;
  /** When to do its work, or to try it again. */
  at: number;
  failures: number;
  isRunning: boolean;
}

const isPending = (found: Pending | StoreNotice): found is Pending => 'timer' in found;

/** The claims of stores may be written so long before they are listed, in milliseconds. */
const overlapMs = 60_000;

type Known = ReturnType<typeof createKnown>;

const createKnown = <T>({ driver, prefix, scheduler, where, looked$ }: Due<T>) => {
  const all = new Map<string, Pending>();
  const unreadable = new Set<string>();
  let since = -Infinity;
  let isFirst = true;
  let isOver = false;
  const add = (timer: Timer): void => {
    if (all.has(timer.id) || !where(timer)) return;
    all.set(timer.id, { timer, at: timer.at, failures: 0, isRunning: false });
  };
  const listed$ = (): Observable<StoreNotice> => {
    let latest = since;
    // A list is read back to what was read before: it costs what is new.
    return pending$(driver, prefix, since - overlapMs).pipe(
      mergeMap(({ id, updatedAt, timer, error }): readonly StoreNotice[] => {
        latest = Math.max(latest, updatedAt);
        if (timer !== undefined) add(timer);
        if (error === undefined || unreadable.has(id)) return [];
        unreadable.add(id);
        return [{ type: 'unreadable', id, error }];
      }),
      tap({ complete: () => (since = latest) }),
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
    look$: (): Observable<StoreNotice> => concat(listed$(), completed$),
    isOver: (): boolean => isOver,
    nextAt: (): number =>
      [...all.values()].reduce((at, it) => (it.isRunning ? at : Math.min(at, it.at)), Infinity),
    takeDue: (): readonly Pending[] => {
      const now = scheduler.now();
      const found = [...all.values()].filter(({ at, isRunning }) => !isRunning && at <= now);
      for (const pending of found) pending.isRunning = true;
      return found.sort((a, b) => a.timer.at - b.timer.at);
    },
  };
};

const worked$ = <T>(
  due: Due<T>,
  known: Known,
  added$: Subject<void>,
  pending: Pending,
): Observable<T> => {
  const { driver, scheduler, pollMs, failed } = due;
  let isClaimed = false;
  const add = (next: Timer): void => {
    known.add(next);
    added$.next();
  };
  const postponed = (at: number): void => {
    pending.at = at;
    pending.isRunning = false;
  };
  return claimed$(driver, pending.timer.id, (claimed) => {
    isClaimed = true;
    return ended$(due, pending, claimed, add);
  }).pipe(
    concatMap((outcome): readonly T[] => {
      if (outcome?.type === 'later') {
        postponed(outcome.at);
        return [];
      }
      known.remove(pending);
      return outcome === undefined ? [] : [outcome.notice];
    }),
    catchError((cause: unknown): Observable<T> => {
      const error = toMillraceError(cause);
      if (!isClaimed && error.code === 'conflict') {
        postponed(scheduler.now() + pollMs);
        return EMPTY;
      }
      pending.failures += 1;
      const retryMs = backOffMs(pending.failures);
      postponed(scheduler.now() + retryMs);
      return of(failed(pending.timer, error, retryMs));
    }),
  );
};

/** Does the work and ends the timer, also if the work is given up. Errors if it shall be repeated. */
const ended$ = <T>(
  { work$, maxAttempts, failed }: Due<T>,
  { failures }: Pending,
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
      const isRepeated = isElsewhere || (isPassing && failures + 1 < maxAttempts);
      return isRepeated
        ? throwError(() => error)
        : of({ type: 'done', reason: `failed: ${code}`, notice: failed(timer, error) });
    }),
    concatMap((outcome) =>
      outcome.type === 'later' ? of(outcome) : concat(end$(outcome.reason), of(outcome)),
    ),
  );
