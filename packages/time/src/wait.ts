import { defer, first, map, type Observable, repeat, type SchedulerLike, tap, timer } from 'rxjs';

/** How often a wait looks at the clock, in milliseconds: a clock that jumps, or a machine that slept, delays it by no more. */
const lookMs = 60_000;

/**
 * Emits once a clock shows a time, in milliseconds since the epoch, and completes. The time may be years away: no timer is longer than
 * a minute, so the clock may also be set meanwhile. With `ms`, it emits after so many milliseconds even if the clock was set back. Cold.
 */
export const until$ = (at: number, scheduler: SchedulerLike, ms = Infinity): Observable<void> =>
  defer(() => {
    let left = ms;
    return defer(() => {
      const waitMs = Math.min(Math.max(at - scheduler.now(), 0), left, lookMs);
      return timer(waitMs, scheduler).pipe(tap(() => (left -= waitMs)));
    }).pipe(
      repeat(),
      first(() => left <= 0 || scheduler.now() >= at),
      map(() => undefined),
    );
  });

/** The delay after a number of failures in a row, in milliseconds: 1 s, doubling, up to 5 minutes. */
export const backOffMs = (failures: number): number =>
  Math.min(1_000 * 2 ** Math.min(failures - 1, 20), 300_000);
