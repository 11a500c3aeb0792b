import {
  catchError,
  concat,
  concatMap,
  EMPTY,
  ignoreElements,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  throwError,
} from 'rxjs';
import { toMillraceError } from '../errors.js';

/** A stream completes when the session is saved. */
export const savedBehind =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (seen$) =>
    concat(seen$, save$.pipe(ignoreElements())).pipe(savedWhenFailed(save$));

/** A reply is emitted when the session is saved. */
export const savedWithReply =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (reply$) =>
    reply$.pipe(
      concatMap((reply) => save$.pipe(map(() => reply))),
      savedWhenFailed(save$),
    );

/** What a failed call has left in memory is a part of the session. The call's own error is the one to hear of. */
const savedWhenFailed =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (seen$) =>
    seen$.pipe(
      catchError((cause: unknown) => {
        const error = toMillraceError(cause);
        const error$ = throwError(() => error);
        if (hasNoPart.includes(error.code)) return error$;
        return concat(
          save$.pipe(
            ignoreElements(),
            catchError(() => EMPTY),
          ),
          error$,
        );
      }),
    );

/** It has never run, or could not be saved. */
const hasNoPart: readonly string[] = ['busy', 'queueFull', 'conflict', 'store', 'invalidResume'];
