import { type MillraceError, restoreAsyncContext } from 'millrace';
import { catchError, EMPTY, merge, mergeMap, type Observable, Subject, takeUntil } from 'rxjs';
import { asError } from './guard.js';

/** The work of a server that continues without the request that caused it. Its errors are reported. */
export interface BackgroundWork {
  /** Runs work in the async context of the caller. */
  readonly run: (work$: Observable<unknown>) => void;
  /** Runs work in the async context of the server, not in that of the user whose call caused it. */
  readonly runOwn: (work$: Observable<unknown>) => void;
  /** Reports an error, and completes. */
  readonly reported$: (cause: unknown, callId?: string) => Observable<never>;
  /** Emits when all work ends. Hot. */
  readonly closed$: Observable<void>;
  readonly close: () => void;
}

export const createBackgroundWork = (
  report: (error: MillraceError, callId?: string) => void,
): BackgroundWork => {
  const work$ = new Subject<Observable<unknown>>();
  const ownWork$ = new Subject<Observable<unknown>>();
  const closed$ = new Subject<void>();
  const reported$: BackgroundWork['reported$'] = (cause, callId) => {
    report(asError(cause), callId);
    return EMPTY;
  };
  merge(work$, ownWork$.pipe(restoreAsyncContext()))
    .pipe(
      mergeMap((it$) => it$.pipe(catchError((cause: unknown) => reported$(cause)))),
      takeUntil(closed$),
    )
    .subscribe();
  return {
    run: (it$) => {
      work$.next(it$);
    },
    runOwn: (it$) => {
      ownWork$.next(it$);
    },
    reported$,
    closed$,
    close: () => {
      closed$.next();
    },
  };
};
