import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs';

/** A scheduler that can stand still: its time stops, and what is scheduled waits for as long. */
export interface Clock extends SchedulerLike {
  /** Stops it, until the returned function is called. Several may stop it: it starts again after the last one. */
  readonly stop: () => () => void;
}

/** Creates a clock over a scheduler. While it is not stopped, it is that scheduler, with an earlier time. */
export const createClock = (base: SchedulerLike): Clock => {
  const waiting = new Set<Waiting>();
  const { now, stop, isStopped } = createStops(base, waiting);
  const schedule: SchedulerLike['schedule'] = <T>(
    work: (this: SchedulerAction<T>, state?: T) => void,
    delay = 0,
    state?: T,
  ): Subscription => {
    const action: SchedulerAction<T> = Object.assign(new Subscription(), {
      schedule: (next?: T, later = 0): Subscription => {
        plan(next, later);
        return action;
      },
    });
    let pending: Waiting | undefined;
    const drop = (): void => {
      if (pending === undefined) return;
      pending.pause();
      waiting.delete(pending);
      pending = undefined;
    };
    const plan = (given: T | undefined, ms: number): void => {
      drop();
      if (action.closed) return;
      const due = now() + ms;
      const own = createWaiting((): Subscription => {
        const left = Math.max(0, due - now());
        return base.schedule(() => {
          waiting.delete(own);
          pending = undefined;
          Reflect.apply(work, action, [given]);
        }, left);
      });
      pending = own;
      waiting.add(own);
      if (!isStopped()) own.go();
    };
    action.add(drop);
    plan(state, delay);
    return action;
  };
  return { now, schedule, stop };
};

/** The time of a clock, which stands still while something stops it, and so does the work that waits. */
const createStops = (base: SchedulerLike, waiting: ReadonlySet<Waiting>) => {
  let stops = 0;
  let stoppedAt = 0;
  let lost = 0;
  const now = (): number => (stops > 0 ? stoppedAt : base.now() - lost);
  const stop = (): (() => void) => {
    if (stops === 0) {
      stoppedAt = now();
      for (const each of waiting) each.pause();
    }
    stops += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      stops -= 1;
      if (stops > 0) return;
      lost = base.now() - stoppedAt;
      // The work may stop it again, or unsubscribe other work.
      for (const each of [...waiting]) if (stops === 0 && waiting.has(each)) each.go();
    };
  };
  return { now, stop, isStopped: () => stops > 0 };
};

interface Waiting {
  readonly go: () => void;
  readonly pause: () => void;
}

const createWaiting = (start: () => Subscription): Waiting => {
  let timer: Subscription | undefined;
  return {
    go: () => {
      timer ??= start();
    },
    pause: () => {
      timer?.unsubscribe();
      timer = undefined;
    },
  };
};
