import {
  isObservable,
  type MonoTypeOperatorFunction,
  Observable,
  type Subscriber,
  Subscription,
} from 'rxjs';
import { hear, leaveQuietly } from './contained.js';
import { atOnce, emitWork, type Eventual, unlessLeft } from './eventual.js';
import type { LazyAbort } from './lazy-abort.js';
import type { MillraceError } from '../values/errors.js';

/** Calls `fail` when the time is up, unless its owner has unsubscribed. */
export type TimeLimit = (owner: Subscription, fail: (error: unknown) => void) => void;

/** Watches over work. */
export interface Supervision<Out> {
  /** Aborts unless the work completes, also if its observer had left before it subscribed, as one does whose tool ends the call. */
  readonly abort?: LazyAbort;
  /** Handles an error, or that the time is up, when the work has stopped. */
  readonly handle?: (cause: unknown) => Eventual<Out>;
  readonly limit?: TimeLimit;
  /** Subscribes to it. Default: `hear`. */
  readonly listen?: typeof hear;
}

/** Makes one value of all values of some work. */
export interface Fold<T, State, Out> {
  readonly seed: State;
  readonly add: (state: State, value: T) => State;
  /** When the work completes, and before it is torn down. It may wait only if the work has no time limit. */
  readonly finish: (state: State) => Eventual<Out>;
}

/** Reads the one value of work, or does without: a second value is an error. */
export const oneValue = <T, Out>(
  read: (value: T) => Eventual<Out>,
  several: () => MillraceError,
  none: () => Eventual<Out>,
): Fold<T, readonly T[], Out> => ({
  seed: [],
  add: (before, value) => {
    if (before.length > 0) throw several();
    return [value];
  },
  finish: (values) => {
    for (const value of values) return read(value);
    return none();
  },
});

/** As `catchError`, for work that may need no Observable. */
export const recover = <T>(
  work: () => Eventual<T>,
  handle: (cause: unknown) => Eventual<T>,
): Eventual<T> => {
  try {
    const value = work();
    return isObservable(value) ? value.pipe(supervised({ handle })) : value;
  } catch (cause) {
    return handle(cause);
  }
};

/** Folds what work makes, which may need no Observable, and otherwise one subscription. */
export const gather = <T, State, Out>(
  work: () => Eventual<T>,
  fold: Fold<T, State, Out>,
  supervision: Supervision<Out> = {},
): Eventual<Out> => {
  const { abort, handle } = supervision;
  const start = (): Eventual<T> => atOnce(work());
  try {
    const given = abort === undefined ? start() : unlessLeft(start, () => abort.abort());
    if (!isObservable(given)) return fold.finish(fold.add(fold.seed, given));
    return new Observable((to) => {
      let state = fold.seed;
      const add = (value: T): void => {
        state = fold.add(state, value);
      };
      supervise(given, to, supervision, add, () => fold.finish(state));
    });
  } catch (cause) {
    if (handle === undefined) throw cause;
    return handle(cause);
  }
};

/** Passes on what its source emits, under supervision. */
export const supervised =
  <T>(supervision: Supervision<T>): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((to) => supervise(source, to, supervision, (value: T) => to.next(value)));

const supervise = <T, Out>(
  source: Observable<T>,
  to: Subscriber<Out>,
  { abort, handle, limit, listen = hear }: Supervision<Out>,
  take: (value: T) => void,
  finish?: () => Eventual<Out>,
): void => {
  let isComplete = false;
  const running = new Subscription();
  to.add(running);
  if (abort !== undefined) {
    to.add(() => {
      if (!isComplete) abort.abort();
    });
  }
  const error = (cause: unknown): void => {
    leaveQuietly(running);
    if (handle === undefined) to.error(cause);
    else emitWork(to, () => handle(cause));
  };
  const next = (value: T): void => {
    try {
      take(value);
    } catch (cause) {
      error(cause);
    }
  };
  const complete = (): void => {
    isComplete = true;
    if (finish === undefined) to.complete();
    else emitWork(to, finish, error);
  };
  listen(source, { next, error, complete }, running);
  limit?.(running, error);
};
