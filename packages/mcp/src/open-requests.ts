import { BehaviorSubject, defer, filter, finalize, map, type Observable } from 'rxjs';

/** The open requests of a connection. A question of the server belongs to one of them, which not every transport names. */
export interface OpenRequests {
  /** Counts as a request while it is subscribed to. */
  readonly during$: <T>(work$: Observable<T>) => Observable<T>;
  /** Emits once none of the requests that were open at the subscription is; synchronously without any. Never completes. */
  readonly over$: Observable<void>;
  /** Emits whenever no request is open. */
  readonly idle$: Observable<void>;
}

export const createOpenRequests = (): OpenRequests => {
  const open$ = new BehaviorSubject<ReadonlySet<object>>(new Set());
  const emptied = map(() => undefined);
  return {
    during$: (work$) =>
      defer(() => {
        const request = {};
        open$.next(new Set([...open$.value, request]));
        return work$.pipe(
          finalize(() => open$.next(new Set([...open$.value].filter((it) => it !== request)))),
        );
      }),
    over$: defer(() => {
      const before = [...open$.value];
      return open$.pipe(
        filter((open) => !before.some((it) => open.has(it))),
        emptied,
      );
    }),
    idle$: open$.pipe(
      filter(({ size }) => size === 0),
      emptied,
    ),
  };
};
