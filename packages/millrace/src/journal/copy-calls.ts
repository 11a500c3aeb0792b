import {
  bufferCount,
  concat,
  concatMap,
  count,
  defer,
  ignoreElements,
  map,
  mergeAll,
  mergeMap,
  type Observable,
  of,
  skip,
  take,
  toArray,
} from 'rxjs';
import { checkStored, type NewRecord, type StoreOfCalls } from './call-store-driver.js';

/**
 * Copies all calls of a store to another one, the first begun first, and emits the id of each when it is durable there; then
 * completes. Calls that have ended there stay ended. A call that is there already is completed, so copying can be repeated
 * after an error or a stop. The times of a copied call are those of the copy. Run it while nothing is being recorded: a call
 * that continues errors with `conflict`. Cold.
 */
export const copyCalls$ = (source: StoreOfCalls, target: StoreOfCalls): Observable<string> => {
  checkStored('copyCalls$()', source);
  checkStored('copyCalls$()', target);
  const calls$ = (query: { readonly isUnfinished?: true }) =>
    defer(() => source.driver.list$(query)).pipe(mergeAll());
  return calls$({ isUnfinished: true }).pipe(
    map(({ callId }) => callId),
    toArray(),
    map((callIds) => new Set(callIds)),
    mergeMap((unfinished) =>
      calls$({}).pipe(
        map(({ callId, createdAt }) => ({ callId, createdAt })),
        toArray(),
        // The order in which a session sees its calls is that in which a store gets them.
        mergeMap((calls) => calls.sort((a, b) => a.createdAt - b.createdAt)),
        concatMap(({ callId }) => copyCall$(source, target, callId, !unfinished.has(callId))),
      ),
    ),
  );
};

/** How many records are appended at a time. */
const portion = 100;

const copyCall$ = (
  source: StoreOfCalls,
  target: StoreOfCalls,
  callId: string,
  ends: boolean,
): Observable<string> =>
  target.driver.claim$(callId).pipe(
    concatMap((claim) =>
      concat(
        target.driver.read$(callId).pipe(
          mergeAll(),
          count(),
          mergeMap((copied) => source.driver.read$(callId).pipe(mergeAll(), skip(copied))),
          map(({ kind, name, seq, text }): NewRecord => ({ kind, name, seq, text, ends })),
          bufferCount(portion),
          concatMap((records) => claim.append$(records)),
          ignoreElements(),
        ),
        of(callId),
      ),
    ),
    take(1), // releases the claim
  );
