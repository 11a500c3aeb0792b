import {
  catchError,
  type MonoTypeOperatorFunction,
  Observable,
  type Observer,
  Subscriber,
  Subscription,
} from 'rxjs';
import { inAsyncContext } from './async-scope.js';
import { type MillraceErrorCode, toMillraceError } from '../values/errors.js';

/** Creates a subscriber that can unsubscribe during `subscribe`, which a synchronous source does not return from. */
const hearing = <T>(observer: Observer<T>): Subscriber<T> =>
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- RxJS 7 has no other way to create one.
  new Subscriber<T>(observer);

/** Subscribes an observer, until its owner unsubscribes. */
export const hear = <T>(
  source$: Observable<T>,
  observer: Observer<T>,
  owner: Subscription,
): void => {
  const subscriber = hearing(observer);
  owner.add(subscriber);
  source$.subscribe(subscriber);
};

/** As `finalize`, but also for an observer that leaves while the source emits synchronously: the work does not wait until the source returns. */
export const finalizeNow =
  <T>(work: () => void): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((to) => {
      const running = new Subscription();
      to.add(running);
      to.add(work);
      hear(source, to, running);
    });

export const failing = <T>(reason: (cause: unknown) => unknown): MonoTypeOperatorFunction<T> =>
  catchError((cause: unknown) => {
    throw reason(cause);
  });

/** Wraps errors of the source in a `MillraceError` with this code, unless they are one. */
export const failAs = <T>(code: MillraceErrorCode, what: string): MonoTypeOperatorFunction<T> =>
  failing((cause) => toMillraceError(cause, code, what));

/**
 * Takes a foreign source in: its values and its end arrive in the async context of the subscription. Swallows errors of its
 * teardown: RxJS would throw them at the unsubscriber and skip later teardowns.
 */
export const contained =
  <T>(): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((to) => hearContained(source, to, to));

/** Unsubscribes from a source whose teardown may throw: no one waits for it any more. */
export const leaveQuietly = (running: Subscription): void => {
  try {
    running.unsubscribe();
  } catch {
    // RxJS throws what teardowns throw.
  }
};

/** Subscribes an observer to a foreign source, until its owner unsubscribes. */
export const hearContained = <T>(
  source$: Observable<T>,
  to: Observer<T>,
  owner: Subscription,
): void => {
  const inner = hearing<T>(
    inAsyncContext({
      next: (value) => to.next(value),
      error: (cause: unknown) => leave(() => to.error(cause)),
      complete: () => leave(() => to.complete()),
    }),
  );
  const leave = (notify?: () => void): void => {
    leaveQuietly(inner);
    notify?.();
  };
  owner.add(leave);
  // Nothing runs for a subscriber that has gone.
  if (!owner.closed) source$.subscribe(inner);
};
