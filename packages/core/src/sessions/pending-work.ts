import { defer, finalize, type Observable, of, Subject, take } from 'rxjs';

/** Work that is under way. */
export interface PendingWork {
  /** Runs a piece of it. */
  readonly track$: <T>(work$: Observable<T>) => Observable<T>;
  /** Emits once when none is under way, and completes. */
  readonly idle$: Observable<void>;
}

/** Keeps count of work. */
export const createPendingWork = (): PendingWork => {
  const ended$ = new Subject<void>();
  let pending = 0;
  return {
    track$: (work$) =>
      defer(() => {
        pending += 1;
        return work$.pipe(
          finalize(() => {
            pending -= 1;
            if (pending === 0) ended$.next();
          }),
        );
      }),
    idle$: defer(() => (pending === 0 ? of(undefined) : ended$.pipe(take(1)))),
  };
};
