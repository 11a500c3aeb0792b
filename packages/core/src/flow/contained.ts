import { catchError, type MonoTypeOperatorFunction, Observable } from 'rxjs';
import { inAsyncContext } from './async-scope.js';
import { hearing } from './hear.js';
import { type MillraceErrorCode, toMillraceError } from '../values/errors.js';

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
    new Observable((subscriber) => {
      const inner = hearing<T>(
        inAsyncContext({
          next: (value) => subscriber.next(value),
          error: (cause: unknown) => leave(() => subscriber.error(cause)),
          complete: () => leave(() => subscriber.complete()),
        }),
      );
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
