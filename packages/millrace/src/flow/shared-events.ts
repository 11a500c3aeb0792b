import { Observable, type Observer, type Operator, Subscriber, type Subscription } from 'rxjs';

type Next<T> = (value: T) => void;

interface Handlers<T> {
  readonly next?: Next<T> | null | undefined;
  readonly error?: Next<unknown> | null | undefined;
  readonly complete?: (() => void) | null | undefined;
}

/** Returns the function that reports an error of a subscriber, for the value that is delivered now. */
type Failing = () => (cause: unknown) => void;

/**
 * A hot source that unrelated subscribers share. One that throws, or rejects, is unsubscribed, and its error is reported;
 * RxJS would throw it at the process. The same applies after operators, whose errors need no handler.
 */
// eslint-disable-next-line rxjs-x/no-subclass -- Operators make the Observables that subscribers get with `lift`.
class SharedEvents<T> extends Observable<T> {
  readonly failing: Failing;

  constructor(source$: Observable<T>, failing: Failing) {
    super((subscriber) => source$.subscribe(subscriber));
    this.failing = failing;
  }

  // eslint-disable-next-line @typescript-eslint/no-deprecated -- As Subject does it.
  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    const lifted = new SharedEvents<R>(new Observable(), this.failing);
    return Object.assign(lifted, { source: this, operator });
  }

  override subscribe(
    given?: Partial<Observer<T>> | Next<T> | null,
    error?: Next<unknown> | null,
    complete?: (() => void) | null,
  ): Subscription {
    // An operator, or a Promise, has a use for the error.
    if (given instanceof Subscriber) return super.subscribe(given);
    const own: Handlers<T> =
      typeof given === 'function'
        ? { next: given, error, complete }
        : (given ?? { error, complete });
    const dropping = (): ((cause: unknown) => void) => {
      const failed = this.failing();
      return (cause) => {
        subscriber.unsubscribe();
        failed(cause);
      };
    };
    const guarded = (work: () => unknown): void => {
      try {
        const returned = work();
        if (returned instanceof Promise) returned.catch(dropping());
      } catch (cause) {
        dropping()(cause);
      }
    };
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- RxJS 7 has no other way to create one.
    const subscriber = new Subscriber<T>({
      next: (value: T) => guarded(() => own.next?.(value)),
      error: (cause: unknown) =>
        guarded(() => (own.error ? own.error(cause) : this.failing()(cause))),
      complete: () => guarded(() => own.complete?.()),
    });
    return super.subscribe(subscriber);
  }
}

/** Shares a hot source, so that a subscriber that throws affects neither the process nor the others. */
export const sharedEvents = <T>(source$: Observable<T>, failing: Failing): Observable<T> =>
  new SharedEvents(source$, failing);

/** Shares what is derived from shared events, also by operators that make Observables of their own. */
export const sharedAs = <T>(of$: Observable<unknown>, derived$: Observable<T>): Observable<T> =>
  of$ instanceof SharedEvents ? new SharedEvents<T>(derived$, of$.failing) : derived$;
