import { type MonoTypeOperatorFunction, Observable, type Subscriber } from 'rxjs';

/** Keeps what a foreign source throws in its teardown away from those who leave it: RxJS throws it into whoever unsubscribes, and operators that have more to do then do not get to it. */
export const contained =
  <T>(): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      let inner: Subscriber<T> | undefined;
      const leave = (): void => quietly(() => inner?.unsubscribe());
      // Before the subscription: a source that is synchronous must be left from within it.
      subscriber.add(leave);
      new Observable<T>((own) => {
        inner = own;
        source.subscribe(own);
      }).subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => {
          leave();
          subscriber.error(error);
        },
        complete: () => {
          leave();
          subscriber.complete();
        },
      });
    });

/** Nobody waits for a source that has been left. */
const quietly = (leave: () => void): void => {
  try {
    leave();
  } catch {
    // What it throws is its own.
  }
};

export const made$ = <T>(make: () => T): Observable<T> =>
  new Observable((subscriber) => {
    subscriber.next(make());
    subscriber.complete();
  });
