import { MillraceError } from '@millrace/core';
import type { CallStoreDriver, NewRecord } from '@millrace/core/journal';
import type { SessionStore } from '@millrace/core/sessions';
import {
  BehaviorSubject,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  map,
  merge,
  type Observable,
  Subject,
  takeUntil,
  takeWhile,
} from 'rxjs';
import type { StoredMemoryFactory } from './memory/stored-memory.js';

/** Wraps the parts of a store to error once it is closed. */
export interface Closing {
  /** Runs the work, or errors if the store is closed. Cold. */
  whileOpen$<T>(work: () => Observable<T>): Observable<T>;
  calls(driver: CallStoreDriver): CallStoreDriver;
  memory(factory: StoredMemoryFactory): StoredMemoryFactory;
  sessions(store: SessionStore): SessionStore;
  /** Errors all claims, and completes when pending writes are done. Cold. */
  readonly close$: () => Observable<never>;
}

/** The error for using a closed store. */
export const closed = (): MillraceError =>
  new MillraceError('store', 'The store is closed. Open it again.');

/** The error for claiming a call that another writer holds, or for writing to one that was lost to another writer. */
export const callInUse = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The call '${callId.slice(0, 100)}' is running elsewhere: a call has a single writer. Follow it with attach$(), or wait until it has ended.`,
    { retryable: true },
  );

export const createClosing = (): Closing => {
  const closed$ = new Subject<void>();
  const writing$ = new BehaviorSubject(0);
  let isClosed = false;
  const whileOpen$: Closing['whileOpen$'] = (work) =>
    defer(() => {
      if (isClosed) throw closed();
      return work();
    });
  const lost$ = closed$.pipe(
    map((): never => {
      throw closed();
    }),
  );
  const open =
    <Given extends readonly unknown[], T>(work: (...given: Given) => Observable<T>) =>
    (...given: Given): Observable<T> =>
      whileOpen$(() => work(...given));
  /** Work that `close$` waits for. */
  const writing = <Given extends readonly unknown[], T>(work: (...given: Given) => Observable<T>) =>
    open((...given: Given) => {
      writing$.next(writing$.value + 1);
      return work(...given).pipe(finalize(() => writing$.next(writing$.value - 1)));
    });
  return {
    whileOpen$,
    calls: (driver) => ({
      claim$: open((callId) =>
        merge(
          driver.claim$(callId).pipe(
            map((claim) => ({
              append$: writing((records: readonly NewRecord[]) => claim.append$(records)),
            })),
          ),
          lost$,
        ),
      ),
      read$: open((...range) => driver.read$(...range)),
      changes$: open((callId) => driver.changes$(callId).pipe(takeUntil(closed$))),
      list$: open((query) => driver.list$(query)),
      remove$: writing((callId) => driver.remove$(callId)),
      removeAll$: writing((callIds) => driver.removeAll$(callIds)),
    }),
    memory: (factory) => (sessionId) => {
      const memory = factory(sessionId);
      return {
        load$: open((...given) => memory.load$(...given)),
        append$: writing((...given) => memory.append$(...given)),
        last$: open((...given) => memory.last$(...given)),
        branches$: open((at) => memory.branches$(at)),
        moveHead$: writing((to) => memory.moveHead$(to)),
        remove$: writing((at) => memory.remove$(at)),
        all$: open(() => memory.all$()),
        replace$: writing((tree) => memory.replace$(tree)),
      };
    },
    sessions: (store) => ({
      ...(store.append$ !== undefined && {
        append$: writing(
          (...given: Parameters<NonNullable<SessionStore['append$']>>) =>
            store.append$?.(...given) ?? EMPTY,
        ),
      }),
      load$: open((sessionId) => store.load$(sessionId)),
      save$: writing((...saved) => store.save$(...saved)),
      find$: open((query) => store.find$(query)),
      remove$: writing((sessionId) => store.remove$(sessionId)),
    }),
    close$: () =>
      defer(() => {
        isClosed = true;
        closed$.next();
        return writing$.pipe(
          takeWhile((count) => count > 0),
          ignoreElements(),
        );
      }),
  };
};
