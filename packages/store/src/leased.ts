import { concat, defer, NEVER, Observable, of, type SchedulerLike, switchMap, timer } from 'rxjs';

/** What came of trying to get a lease: the lease, or a sign of who has it, which changes when that one shows to be alive. */
export type Attempt<Lease> =
  { readonly lease: Lease } | { readonly holder: string; readonly isAlive?: boolean };

/** A sign of who has a lease, and how long it has been the same: time that was waited, whatever a clock says. */
export interface Seen {
  readonly holder: string;
  readonly forMs: number;
}

/** How a lease is got. */
export interface LeaseOptions<Lease> {
  readonly attempt: (seen?: Seen) => PromiseLike<Attempt<Lease>>;
  readonly giveBack: (lease: Lease) => void;
  /** The error of who does not get it. */
  readonly taken: (holder: string) => Error;
  readonly leaseMs: number;
  /** How long it is waited for one who gives no sign of life, in milliseconds. Default: three times `leaseMs`. */
  readonly patienceMs?: number;
  readonly scheduler: SchedulerLike;
}

/**
 * Gets a lease, emits it once, and gives it back when it is left. Where somebody has it, it waits: until the lease of one who is gone
 * has run out, or until one shows to be alive, which is an error. Cold.
 */
export const leased$ = <Lease>({
  attempt,
  giveBack,
  taken,
  leaseMs,
  patienceMs = 3 * leaseMs,
  scheduler,
}: LeaseOptions<Lease>): Observable<Lease> => {
  const try$ = (waited: number, delay: number, known?: string): Observable<Lease> =>
    attempted$(
      () => attempt(known === undefined ? known : { holder: known, forMs: waited }),
      giveBack,
    ).pipe(
      switchMap((outcome) => {
        if ('lease' in outcome) return concat(of(outcome.lease), NEVER);
        const { holder, isAlive = known !== undefined && known !== holder } = outcome;
        if (isAlive || waited > patienceMs) throw taken(holder);
        const next = Math.min(delay * 2, leaseMs / 8);
        return timer(delay, scheduler).pipe(switchMap(() => try$(waited + delay, next, holder)));
      }),
    );
  return defer(() => try$(0, 25));
};

/** An Observable of its own making: what is got after all have left must be given back, too. */
const attempted$ = <Lease>(
  attempt: () => PromiseLike<Attempt<Lease>>,
  giveBack: (lease: Lease) => void,
): Observable<Attempt<Lease>> =>
  new Observable((subscriber) => {
    attempt().then(
      (outcome) => {
        if (!('lease' in outcome)) {
          subscriber.next(outcome);
          subscriber.complete();
          return;
        }
        subscriber.add(() => giveBack(outcome.lease));
        subscriber.next(outcome);
      },
      (error: unknown) => subscriber.error(error),
    );
  });
