import {
  isObservable,
  type MonoTypeOperatorFunction,
  Observable,
  type Observer,
  type OperatorFunction,
  Subscriber,
} from 'rxjs';

/** Keeps what a foreign source throws in its teardown away from those who leave it: RxJS throws it into whoever unsubscribes, and operators that have more to do then do not get to it. */
export const contained =
  <T>(): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      const inner = hearing<T>({
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
      const leave = (): void => quietly(() => inner.unsubscribe());
      subscriber.add(leave);
      source.subscribe(inner);
    });

/** Makes a subscriber that can leave a source while it subscribes to it: `subscribe` itself returns only when a synchronous source has emitted all. */
export const hearing = <T>(observer: Observer<T>): Subscriber<T> =>
  // RxJS 7 has no other way to make one.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  new Subscriber<T>(observer);

/** Nobody waits for a source that has been left. */
const quietly = (leave: () => void): void => {
  try {
    leave();
  } catch {
    // What it throws is its own.
  }
};

/** As `concatMap`, for a source of one value: a result that is no Observable is passed on immediately, without a subscription. */
export const thenMap =
  <In, Out>(work: (value: In) => Out | Observable<Out>): OperatorFunction<In, Out> =>
  (source) =>
    new Observable((subscriber) => {
      let running = 0;
      const complete = (): void => {
        running -= 1;
        if (running === 0) subscriber.complete();
      };
      const error = (cause: unknown): void => subscriber.error(cause);
      const subscribeTo = <T>(source$: Observable<T>, next: (value: T) => void): void => {
        running += 1;
        const inner = hearing<T>({ next, error, complete });
        subscriber.add(inner);
        source$.subscribe(inner);
      };
      const passOn = (result: Out): void => subscriber.next(result);
      subscribeTo(source, (value) => {
        try {
          const made = work(value);
          if (isObservable(made)) subscribeTo(made, passOn);
          else passOn(made);
        } catch (cause) {
          error(cause);
        }
      });
    });

/** As `defer`, for a value or an Observable of one. */
export const made$ = <T>(make: () => T | Observable<T>): Observable<T> =>
  new Observable((subscriber) => {
    const made = make();
    if (isObservable(made)) return made.subscribe(subscriber);
    subscriber.next(made);
    subscriber.complete();
    return undefined;
  });
