import { catchError, defer, first, map, mergeMap, type Observable, of } from 'rxjs';
import { failAs } from '../fail-as.js';
import { createQueue } from '../streams/queue.js';
import { queuedMap } from '../streams/queued-map.js';
import { callStep } from './call-record.js';
import { records$ } from './call-store.js';
import type { CallStoreDriver, StoredCall, StoredRecord } from './call-store-driver.js';
import { type CallSummary, summaryOf, unreadableCall } from './call-summary.js';
import { checkStored, type StoreOfCalls } from './stored-call.js';

/**
 * Emits the calls of a store one by one, the one that was last written to first, frozen, and completes: `take(20)` reads no more than that many. One that cannot be read is `unreadable`, and says
 * why. Errors with `store` where the store fails. Cold.
 */
export const calls$ = (store: StoreOfCalls): Observable<CallSummary> => {
  checkStored('calls$()', store);
  const { driver } = store;
  return defer(() => driver.list$()).pipe(
    failAs('store', 'The calls could not be listed'),
    mergeMap((calls) => calls),
    queuedMap(
      (call) =>
        beginningOf$(driver, call).pipe(
          map((beginning) => summaryOf(call, beginning)),
          catchError((error: unknown) => of(unreadableCall(call, error))),
        ),
      createQueue<StoredCall>,
    ),
  );
};

/** Its own step: a call that has waited for its turn has told of that before, and one may have been interrupted by then. */
const beginningOf$ = (
  driver: CallStoreDriver,
  { callId, first: stored }: StoredCall,
): Observable<StoredRecord | undefined> =>
  stored === undefined || isBeginning(callId, stored)
    ? of(stored)
    : records$(driver, callId, { kind: 'step' }).pipe(
        first((record) => isBeginning(callId, record), undefined),
      );

const isBeginning = (callId: string, { name }: StoredRecord): boolean =>
  name === `${callId}/${callStep}`;
