import { Observable, type SchedulerLike, type Subscription } from 'rxjs';

/** The clocks of all who share a limit. There is mostly one; of several, one may stand still. */
export interface Clocks {
  /**
   * The time in milliseconds when, and by whose clock, one was read last: one has come, gone or
   * rung.
   */
  readonly now: number;
  read(scheduler: SchedulerLike): number;
  /**
   * Whoever subscribes is there until it unsubscribes. When the last one of a scheduler goes, so
   * does its timer.
   */
  during$<T>(scheduler: SchedulerLike, source$: Observable<T>): Observable<T>;
  /**
   * Rings in at most so many milliseconds, by the clock of each who is there. Whoever still waits
   * sets it again.
   */
  ringIn(ms: number): void;
}

interface Clock {
  present: number;
  ringing: { readonly at: number; readonly timer: Subscription } | undefined;
}

/** A longer wait would be over at once. */
const longestWait = 2 ** 31 - 1;

/** Reads clocks, and calls a function when one rings. */
export const createClocks = (ring: () => void): Clocks => {
  const clocks = new Map<SchedulerLike, Clock>();
  let now = 0;
  const read = (scheduler: SchedulerLike): number => {
    now = scheduler.now();
    return now;
  };
  const come = (scheduler: SchedulerLike): Clock => {
    read(scheduler);
    const clock = clocks.get(scheduler) ?? { present: 0, ringing: undefined };
    clock.present += 1;
    clocks.set(scheduler, clock);
    return clock;
  };
  const go = (scheduler: SchedulerLike, clock: Clock): void => {
    read(scheduler);
    clock.present -= 1;
    if (clock.present > 0) return;
    clock.ringing?.timer.unsubscribe();
    clocks.delete(scheduler);
  };
  return {
    get now() {
      return now;
    },
    read,
    during$: (scheduler, source$) =>
      new Observable((subscriber) => {
        const clock = come(scheduler);
        subscriber.add(() => go(scheduler, clock));
        source$.subscribe(subscriber);
      }),
    ringIn: (ms) => {
      const delay = Math.min(ms, longestWait);
      clocks.forEach((clock, scheduler) => {
        const at = scheduler.now() + delay;
        if (clock.ringing !== undefined && clock.ringing.at <= at) return;
        clock.ringing?.timer.unsubscribe();
        const timer = scheduler.schedule(() => {
          clock.ringing = undefined;
          read(scheduler);
          ring();
        }, delay);
        clock.ringing = { at, timer };
      });
    },
  };
};
