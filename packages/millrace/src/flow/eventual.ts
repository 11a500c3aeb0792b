import {
  EMPTY,
  isObservable,
  Observable,
  type OperatorFunction,
  of,
  type Subscriber,
  type Subscription,
} from 'rxjs';
import { hear } from './contained.js';

// The kernel composes functions. A value that is there needs no Observable, and its work continues in the same stack frame. An Observable is
// made only if there is something to wait for, or if one is seen from outside.

/** A value, or an Observable of one. */
export type Eventual<T> = T | Observable<T>;

export const toObservable = <T>(value: Eventual<T>): Observable<T> =>
  isObservable(value) ? value : of(value);

/** The subscriber for which work is done, in this very moment. */
let owner: Pick<Subscription, 'closed' | 'add' | 'remove'> | undefined;

const doFor = <T>(subscriber: typeof owner, work: () => T): T => {
  const before = owner;
  owner = subscriber;
  try {
    return work();
  } finally {
    owner = before;
  }
};

/** Whether the subscriber for which work is done has left: then nothing continues. */
export const hasLeft = (): boolean => owner?.closed === true;

/** Does work, and calls `leave` if the subscriber for which it is done leaves meanwhile. */
export const unlessLeft = <T>(work: () => T, leave: () => void): T => {
  owner?.add(leave);
  try {
    return work();
  } finally {
    owner?.remove(leave);
  }
};

/** Continues with a value: immediately if it is there, otherwise when it arrives. For use within work. */
export const andThen = <In, Out>(
  value: Eventual<In>,
  work: (value: In) => Eventual<Out>,
): Eventual<Out> => {
  if (!isObservable(value)) return hasLeft() ? EMPTY : work(value);
  const source$: Made<In> = value;
  return source$[ofNext]?.(work) ?? continued$(value, work);
};

/** As `concatMap`, for a source of one value. */
export const continueWith =
  <In, Out>(work: (value: In) => Eventual<Out>): OperatorFunction<In, Out> =>
  (source) =>
    toObservable(andThen(source, work));

/** As `mergeMap`. A value that is there needs no subscription, and neither do a promise and work that continues this. */
export const continued$ = <In, Out>(
  source: Observable<In> | PromiseLike<In>,
  work: (value: In) => Eventual<Out>,
): Observable<Out> => {
  const made$ = new Observable<Out>((to) => {
    let running = 1;
    const error = (cause: unknown): void => to.error(cause);
    const complete = (): void => {
      running -= 1;
      if (running === 0) to.complete();
    };
    const next = (value: In): void => {
      // Before the work, in which the source may complete.
      running += 1;
      try {
        const made = doFor(to, () => atOnce(work(value)));
        if (isObservable(made)) hear(made, { next: (it) => to.next(it), error, complete }, to);
        else {
          to.next(made);
          complete();
        }
      } catch (cause) {
        error(cause);
      }
    };
    const settled = (value: In): void => {
      if (to.closed) return;
      next(value);
      complete();
    };
    if (isObservable(source)) hear(source, { next, error, complete }, to);
    else source.then(settled, error);
  });
  return Object.assign(made$, {
    [ofNext]: <Next>(next: (value: Out) => Eventual<Next>) =>
      continued$(source, (value) => andThen(work(value), next)),
  });
};

/** It says what work emits its value, and how other work continues it. */
interface Made<T> extends Observable<T> {
  readonly [ofWork]?: () => Eventual<T>;
  readonly [ofNext]?: <Next>(next: (value: T) => Eventual<Next>) => Observable<Next>;
}

const ofWork = Symbol('work');
const ofNext = Symbol('next');

/** Makes work an Observable, which does it for each subscriber. */
export const deferWork = <T>(work: () => Eventual<T>): Observable<T> =>
  Object.assign(new Observable<T>((to) => emitWork(to, work)), { [ofWork]: work });

/** Does work for a subscriber, which gets what it makes. `fail` gets what it throws. */
export const emitWork = <T>(
  to: Subscriber<T>,
  work: () => Eventual<T>,
  fail = (cause: unknown): void => to.error(cause),
): void => {
  // Nothing runs for a subscriber that has gone.
  if (to.closed) return;
  const before = owner;
  owner = to;
  let made: Eventual<T>;
  try {
    made = atOnce(work());
  } catch (cause) {
    owner = before;
    fail(cause);
    return;
  }
  owner = before;
  if (isObservable(made)) made.subscribe(to);
  else {
    to.next(made);
    to.complete();
  }
};

/** Does the work of an Observable that `deferWork` made, like a function call: its value may be there. Any other Observable stays one. */
export const atOnce = <T>(given: Eventual<T>): Eventual<T> => {
  let value = given;
  while (isObservable(value)) {
    const { [ofWork]: work }: Made<T> = value;
    if (work === undefined) return value;
    value = hasLeft() ? EMPTY : work();
  }
  return value;
};
