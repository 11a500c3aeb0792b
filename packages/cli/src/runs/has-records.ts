import type { StoreOfCalls } from '@millrace/core/journal';
import { catchError, defaultIfEmpty, filter, map, type Observable, of, take } from 'rxjs';

/** Emits whether the run has a recorded step and can be resumed; false if the store fails. */
export const hasRecords$ = ({ driver }: StoreOfCalls, callId: string): Observable<boolean> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    filter((records) => records.length > 0),
    map(() => true),
    take(1),
    defaultIfEmpty(false),
    catchError(() => of(false)),
  );
