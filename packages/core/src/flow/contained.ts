import type { MonoTypeOperatorFunction, Observer, OperatorFunction } from 'rxjs';
import { isObservable, noop, Observable, Subscriber, Subscription } from 'rxjs';
import { type MillraceErrorCode, toMillraceError } from '../values/errors.js';

/*
 * Operators made by hand. A chain of them runs as one for the subscriber at its end: each passes on to the next without a subscription in between, and
 * what they subscribe to is left with the subscriber, their owner.
 */

/** An Observable that can also run as a part of another. */
// eslint-disable-next-line rxjs-x/no-subclass
class Made<T> extends Observable<T> {
  readonly run: (to: Observer<T>, owner: Subscription) => void;

  constructor(run: Made<T>['run']) {
    super((subscriber) => {
      const to: Observer<T> = {
        next: (value) => subscriber.next(value),
        error: (cause: unknown) => subscriber.error(cause),
        complete: () => subscriber.complete(),
      };
      run(to, subscriber);
    });
    this.run = run;
  }
}

/** Makes a subscriber that can leave a source while it subscribes to it: `subscribe` itself returns only when a synchronous source has emitted all. */
const hearing = <T>(observer: Observer<T>): Subscriber<T> =>
  // RxJS 7 has no other way to make one.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  new Subscriber<T>(observer);

/** Passes on what work makes, a value or an Observable, which is left with its owner. */
export const lead = <T>(work: () => T | Observable<T>, to: Observer<T>, owner: Subscription) => {
  try {
    const made = work();
    if (made instanceof Made) {
      made.run(to, owner);
    } else if (isObservable(made)) {
      const inner = hearing(to);
      owner.add(inner);
      made.subscribe(inner);
    } else if (!owner.closed) {
      to.next(made);
      to.complete();
    }
  } catch (cause) {
    to.error(cause);
  }
};

/** As `defer`, for a value or an Observable of one. */
export const made$ = <T>(make: () => T | Observable<T>): Observable<T> =>
  new Made((to, owner) => lead(make, to, owner));

/** As `concatMap`, for a source of one value: several would run at once. A result that is no Observable is passed on immediately, without a subscription. */
export const thenMap =
  <In, Out>(work: (value: In) => Out | Observable<Out>): OperatorFunction<In, Out> =>
  (source) =>
    new Made(({ next, error, complete: end }, owner) => {
      let running = 0;
      const complete = (): void => {
        running -= 1;
        if (running === 0) end();
      };
      const run = <T>(make: () => T | Observable<T>, pass: (value: T) => void): void => {
        running += 1;
        lead(make, { next: pass, error, complete }, owner);
      };
      run(
        () => source,
        (value) => run(() => work(value), next),
      );
    });

/** Makes another error of that of the source. */
export const failing =
  <T>(reason: (cause: unknown) => unknown): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Made((to, owner) => {
      const fail = { ...to, next: (made: unknown) => to.error(made), complete: noop };
      const error = (cause: unknown): void => lead(() => reason(cause), fail, owner);
      lead(() => source, { ...to, error }, owner);
    });

/** Marks a seam: an error from beyond it becomes a `MillraceError` with this code, unless it is one. */
export const failAs = <T>(code: MillraceErrorCode, what: string): MonoTypeOperatorFunction<T> =>
  failing((cause) => toMillraceError(cause, code, what));

/** As `finalize`, but before the end is told, which waits for an Observable that `work` returns, however that goes. */
export const ending =
  <T>(work: (cause?: unknown) => unknown): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Made(({ next, error, complete }, owner) => {
      if (owner.closed) return;
      const own = new Subscription();
      const end = (tell: (cause?: unknown) => void) => (cause?: unknown) => {
        if (own.closed) return;
        owner.remove(leave);
        const told = (): void => tell(cause);
        try {
          own.unsubscribe();
        } finally {
          lead(() => work(cause), { next: noop, error: told, complete: told }, new Subscription());
        }
      };
      const leave = end(noop);
      owner.add(leave);
      lead(() => source, { next, error: end(error), complete: end(complete) }, own);
    });

/** Keeps what a foreign source throws in its teardown away from those who leave it: RxJS throws it into whoever unsubscribes, and operators that have more to do then do not get to it. */
export const contained =
  <T>(): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      const inner = hearing<T>({
        next: (value) => subscriber.next(value),
        error: (cause: unknown) => leave(() => subscriber.error(cause)),
        complete: () => leave(() => subscriber.complete()),
      });
      const leave = (tell?: () => void): void => {
        try {
          inner.unsubscribe();
        } catch {
          // Nobody waits for a source that has been left: what it throws is its own.
        }
        tell?.();
      };
      subscriber.add(leave);
      source.subscribe(inner);
    });
