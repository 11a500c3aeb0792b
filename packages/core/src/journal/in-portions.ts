import { concatMap, defer, EMPTY, first, map, type Observable, of, repeat, take, tap } from 'rxjs';
import type { Demand } from '../demand.js';
import { failAs } from '../fail-as.js';
import { createQueue } from '../streams/queue.js';
import { queuedMap } from '../streams/queued-map.js';
import { createTrampoline, subscribeOnTrampoline } from '../trampoline.js';
import type { CallStoreDriver, RecordRange, StoredRecord } from './call-store-driver.js';

/** Reads the records of a call in batches and maps each with `project`, in order. Reads the next batch when that is done and `wanted$` emits. */
export const inPortions$ = <T>(
  driver: CallStoreDriver,
  callId: string,
  range: RecordRange,
  project: (record: StoredRecord) => Observable<T>,
  wanted$: Observable<unknown> = of(undefined),
): Observable<T> =>
  defer(() => {
    const inTurn = subscribeOnTrampoline<true>(createTrampoline());
    let { after = 0 } = range;
    let isMore = true;
    const portion$ = defer(() => {
      isMore = false;
      return driver.read$(callId, { ...range, after });
    }).pipe(
      failAs('store', 'The journal could not be read'),
      take(1),
      tap((records) => {
        isMore = records.length > 0;
        after = records.at(-1)?.position ?? after;
      }),
      concatMap((records) => records),
    );
    return wanted$.pipe(
      concatMap(() => portion$),
      queuedMap(project, createQueue<StoredRecord>),
      // Portions that are there at once do not nest.
      repeat({ delay: () => (isMore ? of<true>(true).pipe(inTurn) : EMPTY) }),
    );
  });

/** Emits a value as soon as demand is open. */
export const whenWanted$ = <T>(demand: Demand, value: T): Observable<T> =>
  defer(() =>
    demand.isOpen
      ? of(value)
      : demand.open$.pipe(
          first(Boolean),
          map(() => value),
        ),
  );
