import { Observable, type Observer, type Operator, Subscriber, type Subscription } from 'rxjs';

type Next<T> = (value: T) => void;

interface Handlers<T> {
  readonly next?: Next<T> | null | undefined;
  readonly error?: Next<unknown> | null | undefined;
  readonly complete?: (() => void) | null | undefined;
}

/**
 * A hot source that unrelated subscribers share. One that throws, or rejects, is unsubscribed and passed to `failed`; RxJS
 * would throw its error at the process. The same applies after operators, whose errors need no handler.
 */
// eslint-disable-next-line rxjs-x/no-subclass -- Operators make the Observables that subscribers get with `lift`.
class SharedEvents<T> extends Observable<T> {
  readonly failed: (cause: unknown) => void;

  constructor(source$: Observable<T>, failed: SharedEvents<T>['failed']) {
    super((subscriber) => source$.subscribe(subscriber));
    this.failed = failed;
  }

  // eslint-disable-next-line @typescript-eslint/no-deprecated -- As Subject does it.
  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    const lifted = new SharedEvents<R>(new Observable(), this.failed);
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
    const drop = (cause: unknown): void => {
      subscriber.unsubscribe();
      this.failed(cause);
    };
    const guarded = (work: () => unknown): void => {
      try {
        const returned = work();
        if (returned instanceof Promise) returned.catch(drop);
      } catch (cause) {
        drop(cause);
      }
    };
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- RxJS 7 has no other way to create one.
    const subscriber = new Subscriber<T>({
      next: (value: T) => guarded(() => own.next?.(value)),
      error: (cause: unknown) => guarded(() => (own.error ? own.error(cause) : this.failed(cause))),
      complete: () => guarded(() => own.complete?.()),
    });
    return super.subscribe(subscriber);
  }
}

/** Shares a hot source, so that a subscriber that throws affects neither the process nor the others. */
export const sharedEvents = <T>(
  source$: Observable<T>,
  failed: (cause: unknown) => void,
): Observable<T> => new SharedEvents(source$, failed);

/** Shares what is derived from shared events, also by operators that make Observables of their own. */
export const sharedAs = <T>(of$: Observable<unknown>, derived$: Observable<T>): Observable<T> =>
  of$ instanceof SharedEvents ? new SharedEvents<T>(derived$, of$.failed) : derived$;
