import type { MonoTypeOperatorFunction, Observer, OperatorFunction } from 'rxjs';
import { isObservable, noop, Observable, Subscriber, Subscription } from 'rxjs';
import { type MillraceErrorCode, toMillraceError } from '../values/errors.js';

/*
 * Operators made by hand. A chain of them runs as one for the subscriber at its end: each passes on to the next without a subscription in between, and
 * what they subscribe to is left with the subscriber, their owner.
 */

/** An Observable that can also run as part of another one. */
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

/** Creates a subscriber that can unsubscribe during `subscribe`, which a synchronous source does not return from. */
const hearing = <T>(observer: Observer<T>): Subscriber<T> =>
  // RxJS 7 has no other way to create one.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  new Subscriber<T>(observer);

/** Emits the result of `work`, a value or an Observable, which is unsubscribed from with its owner. */
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

/** As `concatMap`, for sources of one value: several would run in parallel. A plain result needs no subscription. */
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

export const failing =
  <T>(reason: (cause: unknown) => unknown): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Made((to, owner) => {
      const fail = { ...to, next: (made: unknown) => to.error(made), complete: noop };
      const error = (cause: unknown): void => lead(() => reason(cause), fail, owner);
      lead(() => source, { ...to, error }, owner);
    });

/** Wraps errors of the source in a `MillraceError` with this code, unless they are one. */
export const failAs = <T>(code: MillraceErrorCode, what: string): MonoTypeOperatorFunction<T> =>
  failing((cause) => toMillraceError(cause, code, what));

/** As `finalize`, but the source's end waits for an Observable that `work` returns, even a failing one. */
export const ending =
  <T>(work: (cause?: unknown) => unknown): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Made(({ next, error, complete }, owner) => {
      if (owner.closed) return;
      const own = new Subscription();
      const end = (notify: (cause?: unknown) => void) => (cause?: unknown) => {
        if (own.closed) return;
        owner.remove(leave);
        const passOn = (): void => notify(cause);
        try {
          own.unsubscribe();
        } finally {
          const observer = { next: noop, error: passOn, complete: passOn };
          lead(() => work(cause), observer, new Subscription());
        }
      };
      const leave = end(noop);
      owner.add(leave);
      lead(() => source, { next, error: end(error), complete: end(complete) }, own);
    });

/** Swallows errors of a foreign source's teardown: RxJS would throw them at the unsubscriber and skip later teardowns. */
export const contained =
  <T>(): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      const inner = hearing<T>({
        next: (value) => subscriber.next(value),
        error: (cause: unknown) => leave(() => subscriber.error(cause)),
        complete: () => leave(() => subscriber.complete()),
      });
      const leave = (notify?: () => void): void => {
        try {
          inner.unsubscribe();
        } catch {
          // No one waits for a source after unsubscribing.
        }
        notify?.();
      };
      subscriber.add(leave);
      source.subscribe(inner);
    });
