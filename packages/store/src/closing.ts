import { MillraceError } from '@millrace/core';
import type { CallStoreDriver, NewRecord } from '@millrace/core/journal';
import type { SessionStore } from '@millrace/core/sessions';
import {
  BehaviorSubject,
  defer,
  finalize,
  first,
  ignoreElements,
  map,
  merge,
  type Observable,
  ReplaySubject,
  takeUntil,
} from 'rxjs';
import type { StoredMemoryFactory } from './memory/stored-memory.js';

/** What the parts of a store know of its end. */
export interface Closing {
  /** Does work that is refused when the store is closed. Cold. */
  whileOpen$<T>(work: () => Observable<T>): Observable<T>;
  /** The same calls, for as long as the store is open. */
  calls(driver: CallStoreDriver): CallStoreDriver;
  /** The same conversations. */
  memory(factory: StoredMemoryFactory): StoredMemoryFactory;
  /** The same sessions. */
  sessions(store: SessionStore): SessionStore;
  /** Ends what is held, and completes when what was being written is written. Cold. */
  readonly close$: () => Observable<never>;
}

/** The error of who uses a store that is closed. */
export const closed = (): MillraceError =>
  new MillraceError('store', 'The store was closed: open another one.');

/** Makes the end of a store that is open. */
export const createClosing = (): Closing => {
  const closed$ = new ReplaySubject<void>(1);
  const writing$ = new BehaviorSubject(0);
  const state = { isClosed: false };
  const whileOpen$: Closing['whileOpen$'] = (work) =>
    defer(() => {
      if (state.isClosed) throw closed();
      return work();
    });
  const lost$ = closed$.pipe(
    map((): never => {
      throw closed();
    }),
  );
  const counted$ = <T>(work$: Observable<T>): Observable<T> =>
    defer(() => {
      writing$.next(writing$.value + 1);
      return work$.pipe(finalize(() => writing$.next(writing$.value - 1)));
    });
  return {
    whileOpen$,
    calls: (driver) => ({
      claim$: (callId) =>
        whileOpen$(() =>
          merge(
            driver.claim$(callId).pipe(
              map((claim) => ({
                append$: (records: readonly NewRecord[]) =>
                  whileOpen$(() => counted$(claim.append$(records))),
              })),
            ),
            lost$,
          ),
        ),
      read$: (callId, range) => whileOpen$(() => driver.read$(callId, range)),
      changes$: (callId) => whileOpen$(() => driver.changes$(callId).pipe(takeUntil(closed$))),
      list$: () => whileOpen$(() => driver.list$()),
      remove$: (callId) => whileOpen$(() => counted$(driver.remove$(callId))),
    }),
    memory: (factory) => (sessionId) => {
      const memory = factory(sessionId);
      return {
        load$: () => whileOpen$(() => memory.load$()),
        append$: (...given) => whileOpen$(() => counted$(memory.append$(...given))),
        replace$: (messages) => whileOpen$(() => counted$(memory.replace$(messages))),
      };
    },
    sessions: (store) => ({
      load$: (sessionId) => whileOpen$(() => store.load$(sessionId)),
      save$: (...saved) => whileOpen$(() => counted$(store.save$(...saved))),
      list$: () => whileOpen$(() => store.list$()),
      remove$: (sessionId) => whileOpen$(() => counted$(store.remove$(sessionId))),
    }),
    close$: () =>
      defer(() => {
        state.isClosed = true;
        closed$.next();
        return writing$.pipe(
          first((count) => count === 0),
          ignoreElements(),
        );
      }),
  };
};
