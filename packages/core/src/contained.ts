import { type MonoTypeOperatorFunction, Observable, Subject, takeUntil } from 'rxjs';

/**
 * Keeps what a foreign source throws in its teardown away from those who leave it: RxJS throws it into
 * whoever unsubscribes, and operators that have more to do then do not get to it.
 */
export const contained =
  <T>(): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      const left$ = new Subject<void>();
      // Before the subscription: a source that is synchronous must be left from within it.
      subscriber.add(() => {
        try {
          left$.next();
        } catch {
          // Nobody waits for a source that has been left.
        }
      });
      source.pipe(takeUntil(left$)).subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
