import type { CallStoreDriver, RemovedCall } from '@millrace/core/journal';
import { isMillraceError } from '@millrace/core';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  ignoreElements,
  type Observable,
  of,
} from 'rxjs';

/** Removes calls one by one; skips open ones. */
export const removeEach =
  (remove$: CallStoreDriver['remove$']): CallStoreDriver['removeAll$'] =>
  (callIds) =>
    from(callIds).pipe(
      concatMap((callId): Observable<readonly RemovedCall[]> =>
        concat(defer(() => remove$(callId)).pipe(ignoreElements()), of([{ callId }])).pipe(
          catchError((error: unknown) => {
            if (isMillraceError(error) && error.code === 'conflict') return EMPTY;
            throw error;
          }),
        ),
      ),
    );
