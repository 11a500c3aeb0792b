import { catchError, EMPTY, isObservable, Observable, of, type Subscription } from 'rxjs';
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
  if (isObservable(value)) return continued$(value, work);
  return hasLeft() ? EMPTY : work(value);
};

/** As `mergeMap`. A value that is there needs no subscription. */
const continued$ = <In, Out>(
  source$: Observable<In>,
  work: (value: In) => Eventual<Out>,
): Observable<Out> =>
  new Observable((to) => {
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
        const made = doFor(to, () => work(value));
        if (isObservable(made)) hear(made, { next: (it) => to.next(it), error, complete }, to);
        else {
          to.next(made);
          complete();
        }
      } catch (cause) {
        error(cause);
      }
    };
    hear(source$, { next, error, complete }, to);
  });

/** As `catchError`, for work that may need no Observable. */
export const recover = <T>(
  work: () => Eventual<T>,
  handle: (cause: unknown) => Eventual<T>,
): Eventual<T> => {
  try {
    const value = work();
    return isObservable(value)
      ? value.pipe(catchError((cause: unknown) => deferWork(() => handle(cause))))
      : value;
  } catch (cause) {
    return handle(cause);
  }
};

/** Makes work an Observable, which does it for each subscriber. */
export const deferWork = <T>(work: () => Eventual<T>): Observable<T> =>
  Object.assign(
    new Observable<T>((to) => {
      // Nothing runs for a subscriber that has gone.
      if (to.closed) return undefined;
      const value = doFor(to, () => atOnce(work()));
      if (isObservable(value)) return value.subscribe(to);
      to.next(value);
      to.complete();
      return undefined;
    }),
    { [ofWork]: work },
  );

const ofWork = Symbol('work');

interface Observed<T> extends Observable<T> {
  readonly [ofWork]: () => Eventual<T>;
}

const isObserved = <T>(value: Eventual<T>): value is Observed<T> =>
  isObservable(value) && ofWork in value;

/** Does the work of an Observable that `deferWork` made, like a function call: its value may be there. Any other Observable stays one. */
export const atOnce = <T>(given: Eventual<T>): Eventual<T> => {
  let value = given;
  while (isObserved(value)) value = hasLeft() ? EMPTY : value[ofWork]();
  return value;
};
