import { MillraceError } from 'millrace';
import type { CallStoreDriver, NewRecord } from 'millrace/journal';
import type { SessionStore } from 'millrace/sessions';
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
import type { StoredMemory, StoredMemoryFactory } from './memory/stored-memory.js';

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

type Work<Given extends readonly unknown[], T> = (...given: Given) => Observable<T>;

/** Whether the store is open, and the writes that are pending. */
interface Gate extends Pick<Closing, 'whileOpen$' | 'close$'> {
  /** Emits when the store is closed. */
  readonly closed$: Observable<void>;
  /** Work that errors if the store is closed. */
  readonly open: <Given extends readonly unknown[], T>(work: Work<Given, T>) => Work<Given, T>;
  /** The same for work that `close$` waits for. */
  readonly writing: Gate['open'];
}

export const createClosing = (): Closing => {
  const gate = createGate();
  return {
    whileOpen$: gate.whileOpen$,
    close$: gate.close$,
    calls: (driver) => guardedCalls(gate, driver),
    memory: (factory) => (sessionId) => guardedMemory(gate, factory(sessionId)),
    sessions: (store) => guardedSessions(gate, store),
  };
};

const createGate = (): Gate => {
  const closed$ = new Subject<void>();
  const writing$ = new BehaviorSubject(0);
  let isClosed = false;
  const whileOpen$: Gate['whileOpen$'] = (work) =>
    defer(() => {
      if (isClosed) throw closed();
      return work();
    });
  const open: Gate['open'] =
    (work) =>
    (...given) =>
      whileOpen$(() => work(...given));
  return {
    closed$,
    whileOpen$,
    open,
    writing: (work) =>
      open((...given) => {
        writing$.next(writing$.value + 1);
        return work(...given).pipe(finalize(() => writing$.next(writing$.value - 1)));
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

const guardedCalls = (
  { open, writing, closed$ }: Gate,
  driver: CallStoreDriver,
): CallStoreDriver => {
  const lost$ = closed$.pipe(
    map((): never => {
      throw closed();
    }),
  );
  return {
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
  };
};

const guardedMemory = ({ open, writing }: Gate, memory: StoredMemory): StoredMemory => ({
  load$: open((...given) => memory.load$(...given)),
  append$: writing((...given) => memory.append$(...given)),
  last$: open((...given) => memory.last$(...given)),
  branches$: open((at) => memory.branches$(at)),
  moveHead$: writing((to) => memory.moveHead$(to)),
  remove$: writing((at) => memory.remove$(at)),
  all$: open(() => memory.all$()),
  replace$: writing((tree) => memory.replace$(tree)),
});

const guardedSessions = ({ open, writing }: Gate, store: SessionStore): SessionStore => ({
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
});
