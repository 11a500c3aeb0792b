import { concatMap, defer, map, type Observable, Subject } from 'rxjs';
import type { CallStoreDriver, NewRecord } from './index.js';

/** A process that ends when so many records are written: what comes behind is lost, and nobody hears of it. `end` gives back what it held. */
export const dyingAfter = (driver: CallStoreDriver, records: number) => {
  const ended$ = new Subject<never>();
  let left = records;
  let isDead = false;
  const dying: CallStoreDriver = {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map((claim) => ({
          append$: (batch: readonly NewRecord[]): Observable<unknown> =>
            defer(() => {
              const kept = batch.slice(0, left);
              left -= kept.length;
              const done$ = claim.append$(kept);
              if (kept.length === batch.length) return done$;
              isDead = true;
              return done$.pipe(concatMap(() => ended$));
            }),
        })),
      ),
  };
  return { driver: dying, isDead: () => isDead, end: () => ended$.error(new Error('killed')) };
};
