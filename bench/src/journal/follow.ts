import type { CallStoreDriver, StoredRecord } from 'millrace/journal';
import {
  defer,
  EMPTY,
  exhaustMap,
  mergeMap,
  type Observable,
  of,
  repeat,
  startWith,
  tap,
} from 'rxjs';

/** Emits the events of a call that are there, then those that come, as they can be read. Never completes. */
export const follow$ = (calls: CallStoreDriver, callId: string): Observable<StoredRecord> =>
  defer(() => {
    let after = 0;
    let isChanged = true;
    const read$ = defer(() => {
      isChanged = false;
      return calls.read$(callId, { kind: 'event', after });
    }).pipe(
      mergeMap((records) => records),
      tap(({ position }) => {
        after = position;
      }),
      // What has come meanwhile.
      repeat({ delay: () => (isChanged ? of(undefined) : EMPTY) }),
    );
    return calls.changes$(callId).pipe(
      startWith(undefined),
      tap(() => {
        isChanged = true;
      }),
      exhaustMap(() => read$),
    );
  });
