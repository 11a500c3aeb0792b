import { concat, defer, NEVER, Observable, of, type SchedulerLike, switchMap, timer } from 'rxjs';

/** The lease, or a heartbeat of its current holder: a value that changes while the holder is alive. */
export type LeaseAttempt<Lease> = { readonly lease: Lease } | { readonly holder: string };

/** The last heartbeat of a holder, and how long this process has waited without seeing it change. */
export interface ObservedHolder {
  readonly holder: string;
  readonly forMs: number;
}

export interface LeaseOptions<Lease> {
  readonly attempt: (seen?: ObservedHolder) => PromiseLike<LeaseAttempt<Lease>>;
  readonly release: (lease: Lease) => void;
  /** Creates the error for a lease that another holder keeps. */
  readonly unavailable: (holder: string) => Error;
  readonly leaseMs: number;
  readonly scheduler: SchedulerLike;
}

/**
 * Acquires a lease, emits it once, and releases it on unsubscribe. If another holder has it, waits until that lease
 * expires, up to three times `leaseMs`, or errors as soon as the holder proves to be alive. Cold.
 */
export const acquireLease$ = <Lease>({
  attempt,
  release,
  unavailable,
  leaseMs,
  scheduler,
}: LeaseOptions<Lease>): Observable<Lease> => {
  const try$ = (waited: number, delay: number, known?: string): Observable<Lease> =>
    attempt$(
      () => attempt(known === undefined ? known : { holder: known, forMs: waited }),
      release,
    ).pipe(
      switchMap((outcome) => {
        if ('lease' in outcome) return concat(of(outcome.lease), NEVER);
        const { holder } = outcome;
        const isAlive = known !== undefined && known !== holder;
        if (isAlive || waited > 3 * leaseMs) throw unavailable(holder);
        const next = Math.min(delay * 2, leaseMs / 8);
        return timer(delay, scheduler).pipe(switchMap(() => try$(waited + delay, next, holder)));
      }),
    );
  return defer(() => try$(0, 25));
};

/** Not `from(attempt())`: a lease that arrives after unsubscribe must be released, too. */
const attempt$ = <Lease>(
  attempt: () => PromiseLike<LeaseAttempt<Lease>>,
  release: (lease: Lease) => void,
): Observable<LeaseAttempt<Lease>> =>
  new Observable((subscriber) => {
    attempt().then(
      (outcome) => {
        if (!('lease' in outcome)) {
          subscriber.next(outcome);
          subscriber.complete();
          return;
        }
        subscriber.add(() => release(outcome.lease));
        subscriber.next(outcome);
      },
      (error: unknown) => subscriber.error(error),
    );
  });
