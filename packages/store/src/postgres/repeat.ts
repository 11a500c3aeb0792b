import type { MillraceError } from 'millrace';
import {
  defer,
  from,
  fromEvent,
  lastValueFrom,
  merge,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  retry,
  type SchedulerLike,
  takeUntil,
  throwIfEmpty,
  timer,
} from 'rxjs';
import { sqlFailure } from '../sql/sql-error.js';

export interface RepeatOptions {
  readonly retryMs: number;
  readonly scheduler: SchedulerLike;
  /** Maps the last error, which came after so many milliseconds of attempts. */
  readonly failed: (error: unknown, forMs: number) => MillraceError;
}

export interface Repeat {
  /** Runs work, and runs it again while it fails because of something that passes. An abort ends the wait. */
  <T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Ends all waits, now and later: their work rejects with its last error. */
  readonly stop: () => void;
}

/** Delays between attempts, in milliseconds, before jitter: they double from the first one to the last one. */
const outage = { firstMs: 50, lastMs: 1_000 };
const contention = { firstMs: 10, lastMs: 200 };

/** Contention is over as soon as the other transactions are, so it is repeated without `retryMs`, too. */
const contentionAttempts = 20;

/** Work repeats after serialization failures and deadlocks, and while the server is unavailable for `retryMs`. */
export const createRepeat = ({ retryMs, scheduler, failed }: RepeatOptions): Repeat => {
  const stopped$ = new ReplaySubject<void>(1);
  const wait$ = (
    error: unknown,
    attempt: number,
    forMs: number,
    signal: AbortSignal | undefined,
  ): Observable<unknown> => {
    const delay = delayAfter(error, attempt, retryMs - forMs);
    if (delay === undefined) throw failed(error, forMs);
    return timer(delay, scheduler).pipe(
      takeUntil(merge(stopped$, aborted$(signal))),
      throwIfEmpty(() => failed(error, forMs)),
    );
  };
  const repeat: Repeat = Object.assign(
    <T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
      let since: number | undefined;
      const delay = (error: unknown, attempt: number): Observable<unknown> => {
        const now = scheduler.now();
        // A clock that is set back starts the time again.
        since = Math.min(since ?? now, now);
        return wait$(error, attempt, now - since, signal);
      };
      return lastValueFrom(defer(() => from(work())).pipe(retry({ delay })));
    },
    { stop: () => stopped$.next() },
  );
  return repeat;
};

/** How long to wait before the next attempt, in milliseconds, or undefined if there is no next one. */
const delayAfter = (error: unknown, attempt: number, left: number): number | undefined => {
  const failure = sqlFailure(error);
  if (failure === 'other') return undefined;
  const isFree = failure === 'contention' && attempt <= contentionAttempts;
  if (left <= 0 && !isFree) return undefined;
  const { firstMs, lastMs } = failure === 'contention' ? contention : outage;
  const delay = Math.min(lastMs, firstMs * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
  // The last attempt is at the end of the time.
  return isFree ? delay : Math.min(left, delay);
};

const aborted$ = (signal: AbortSignal | undefined): Observable<unknown> => {
  if (signal === undefined) return NEVER;
  return signal.aborted ? of(undefined) : fromEvent(signal, 'abort');
};
