import { firstValueFrom, lastValueFrom, ReplaySubject } from 'rxjs';
import type { CallStoreDriver, Claim } from '../journal/call-store-driver.js';

/** A call that is held for writing. */
export interface Hold {
  readonly claim: Claim;
  /** Rejects when the call is lost. */
  readonly lost: Promise<unknown>;
  /** Gives it back. */
  leave(): void;
}

/** Claims a call and holds it until it is left. */
export const holdCall = async (driver: CallStoreDriver, callId: string): Promise<Hold> => {
  const claim$ = new ReplaySubject<Claim>(1);
  const held = driver.claim$(callId).subscribe(claim$);
  const lost = lastValueFrom(claim$);
  // Only those who ask want to know.
  lost.catch(() => undefined);
  return { claim: await firstValueFrom(claim$), lost, leave: () => held.unsubscribe() };
};
