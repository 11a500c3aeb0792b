import type { StoreOfCalls } from '@millrace/core/journal';
import { catchError, defaultIfEmpty, filter, map, type Observable, of, take } from 'rxjs';

/** Emits whether anything is written down of a run that could be gone on with; false, too, where the store does not tell. */
export const isWritten$ = ({ driver }: StoreOfCalls, callId: string): Observable<boolean> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    filter((records) => records.length > 0),
    map(() => true),
    take(1),
    defaultIfEmpty(false),
    catchError(() => of(false)),
  );
