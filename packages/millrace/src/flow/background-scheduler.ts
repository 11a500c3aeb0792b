import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs';
import { isRecord } from '../values/json.js';

type Work<T> = (this: SchedulerAction<T>, state?: T) => void;

/** For housekeeping, without a caller that waits: its timers do not keep the process running, if the runtime has such timers. */
export const backgroundScheduler: SchedulerLike = {
  now: () => Date.now(),
  schedule: <T>(work: Work<T>, delay = 0, state?: T): Subscription =>
    new BackgroundAction(work).schedule(state, delay),
};

class BackgroundAction<T> extends Subscription implements SchedulerAction<T> {
  readonly #work: Work<T>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** How often it was scheduled. */
  #times = 0;

  constructor(work: Work<T>) {
    super(() => {
      clearTimeout(this.#timer);
    });
    this.#work = work;
  }

  schedule(state?: T, delay = 0): Subscription {
    if (this.closed) return this;
    clearTimeout(this.#timer);
    const times = (this.#times += 1);
    this.#timer = setTimeout(() => {
      this.#work(state);
      // Work that has not scheduled itself again is over.
      if (this.#times === times) this.unsubscribe();
    }, delay);
    if (isUnreferenceable(this.#timer)) this.#timer.unref();
    return this;
  }
}

const isUnreferenceable = (timer: unknown): timer is { readonly unref: () => void } =>
  isRecord(timer) && typeof timer['unref'] === 'function';
