import type { MonoTypeOperatorFunction, Observer, OperatorFunction } from 'rxjs';
import { EMPTY, isObservable, Observable, Subscriber, Subscription } from 'rxjs';
import { inAsyncContext } from './async-scope.js';
import { type MillraceErrorCode, toMillraceError } from '../values/errors.js';

// A chain of these operators runs as function calls while its values are there. From the first Observable on, each passes on to the next
// without a subscription in between. Their sources are unsubscribed with the subscriber at the end of the chain, their owner.

/** A value, or an Observable of one. */
export type Eventual<T> = T | Observable<T>;

type Make<T> = (owner: Subscription) => Eventual<T>;

/** An Observable made by a function, which can run on its own. */
// eslint-disable-next-line rxjs-x/no-subclass
class Deferred<T> extends Observable<T> {
  readonly make$: Make<T>;

  constructor(make$: Make<T>) {
    super((subscriber) => lead(() => make$(subscriber), subscriber, subscriber));
    this.make$ = make$;
  }
}

/** An Observable that can run as part of another one. */
// eslint-disable-next-line rxjs-x/no-subclass
export class Part<T> extends Observable<T> {
  readonly run: (to: Observer<T>, owner: Subscription) => void;

  constructor(run: Part<T>['run']) {
    super((subscriber) => run(subscriber, subscriber));
    this.run = run;
  }
}

/** Creates a subscriber that can unsubscribe during `subscribe`, which a synchronous source does not return from. */
const hearing = <T>(observer: Observer<T>): Subscriber<T> =>
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- RxJS 7 has no other way to create one.
  new Subscriber<T>(observer);

/** The functions of an observer, for use without it. */
export const bound = <T>(to: Observer<T>): Observer<T> => ({
  next: (value) => to.next(value),
  error: (cause: unknown) => to.error(cause),
  complete: () => to.complete(),
});

const isDeferred = <T>(value: Eventual<T>): value is Deferred<T> => value instanceof Deferred;

/** Calls what is deferred until there is a value, or an Observable to wait for. Nothing runs for an owner that has gone. */
export const settled = <T>(value: Eventual<T>, owner: Subscription): Eventual<T> => {
  let current = value;
  while (isDeferred(current) && !owner.closed) current = current.make$(owner);
  return owner.closed ? EMPTY : current;
};

/** Emits the result of `work`, a value or an Observable, which is unsubscribed from with its owner. */
export const lead = <T>(work: () => Eventual<T>, to: Observer<T>, owner: Subscription): void => {
  try {
    const made = settled(work(), owner);
    if (owner.closed) return;
    if (made instanceof Part) {
      made.run(to, owner);
    } else if (isObservable(made)) {
      const inner = to instanceof Subscriber ? to : hearing(to);
      owner.add(inner);
      made.subscribe(inner);
    } else {
      to.next(made);
      to.complete();
    }
  } catch (cause) {
    to.error(cause);
  }
};

/** As `defer`, for a value or an Observable of one. */
export const made$ = <T>(make: Make<T>): Observable<T> => new Deferred(make);

/** As `concatMap`, for sources of one value: several would run in parallel. A plain result needs no subscription. */
export const thenMap =
  <In, Out>(work: (value: In) => Eventual<Out>): OperatorFunction<In, Out> =>
  (source) =>
    isDeferred(source)
      ? made$((owner) => {
          const value = settled(source, owner);
          return isObservable(value) ? value.pipe(thenMap(work)) : work(value);
        })
      : new Part((to, owner) => {
          const { next, error, complete: end } = bound(to);
          let running = 0;
          const complete = (): void => {
            running -= 1;
            if (running === 0) end();
          };
          const run = <T>(make: () => Eventual<T>, pass: (value: T) => void): void => {
            running += 1;
            lead(make, { next: pass, error, complete }, owner);
          };
          run(
            () => source,
            (value) => run(() => work(value), next),
          );
        });

/** As `catchError`, for a value or an Observable of one. */
export const recovering =
  <T>(work: (cause: unknown) => Eventual<T>): MonoTypeOperatorFunction<T> =>
  (source) =>
    isDeferred(source)
      ? made$((owner) => {
          try {
            const value = settled(source, owner);
            return isObservable(value) ? value.pipe(recovering(work)) : value;
          } catch (cause) {
            return work(cause);
          }
        })
      : new Part((to, owner) => {
          const own = new Subscription();
          owner.add(own);
          const error = (cause: unknown): void => {
            own.add(() => lead(() => work(cause), to, owner));
            own.unsubscribe();
          };
          const complete = (): void => {
            owner.remove(own);
            to.complete();
          };
          lead(() => source, { ...bound(to), error, complete }, own);
        });

export const failing = <T>(reason: (cause: unknown) => unknown): MonoTypeOperatorFunction<T> =>
  recovering<T>((cause) => {
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
