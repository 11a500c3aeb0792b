import equal from 'fast-deep-equal';
import {
  type Observable,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  map,
  ReplaySubject,
  share,
  take,
  tap,
} from 'rxjs';
import { contained, failAs } from '../../flow/contained.js';
import { holdAsyncContext, restoreAsyncContext } from '../../flow/async-context.js';
import { isMillraceError, MillraceError } from '../../values/errors.js';
import { addedSince, emptyTree, type Entry } from '../../values/message-tree.js';
import { noUsage } from '../../values/usage.js';
import { createSemaphore } from '../traffic/limit-concurrency.js';
import {
  changeSince,
  loadedState$,
  type SessionSnapshot,
  snapshot$,
  stateOf,
} from './session-actions.js';
import type { SessionParts } from './session-layers.js';
import { changedElsewhere, conflictOf, endedCallsIn } from './session-conflict.js';
import { sizeOfEntries } from './session-size.js';
import type { SessionRecord, SessionState, SessionStore } from './session-state.js';
import { stateVersion } from './session-state.js';
import { createUnloadedChanges, type UnloadedChanges } from './unloaded-changes.js';

/** A session of this process and its place in the store. */
export interface OpenSession {
  readonly version: number | undefined;
  assertOpen(): void;
  /** Keeps it open while this is subscribed to. `changesMore`: it changes messages, and no save follows. */
  use$<T>(work$: Observable<T>, changesMore?: boolean): Observable<T>;
  save$(): Observable<number>;
  close$(): Observable<never>;
  /** Its name and its tools, which change without waiting; also while it is not open because it was idle. */
  readonly settable: Settable;
}

/** Setting throws on a session that has been closed by a program or replaced by another process. */
export type Settable = Pick<UnloadedChanges, 'title' | 'rename' | 'toolkit'>;

/** An open session as all of them see it. */
export interface ManagedSession extends OpenSession {
  readonly status: 'open' | 'closed' | 'idle' | 'conflict';
  readonly usedAt: number;
  readonly isUsed: boolean;
  /** About its size with its messages, as of its last save. */
  readonly bytes: number;
  /** Whether messages may have changed since they were measured. */
  readonly isUnmeasured: boolean;
  measure$(): Observable<unknown>;
  /** As `close$`, in the async context of the code that opened it, and saves what has changed only. Its handles open it again. */
  closeIdle$(): Observable<never>;
  /** Completes once it is closed; undefined unless closing. `closingIdle$` only if its handles may open it again. */
  readonly closing$: Observable<never> | undefined;
  readonly closingIdle$: Observable<never> | undefined;
  /** The changes made to it from the beginning of an idle closing until it is open again. */
  readonly unloaded: UnloadedChanges | undefined;
}

/** The functions and settings that an open session shares with the others. */
export interface SessionManager {
  readonly store: SessionStore;
  readonly track$: <T>(work$: Observable<T>) => Observable<T>;
  readonly now: () => number;
  /** The first user has come, or the last one has gone. */
  readonly onUse: (session: ManagedSession) => void;
  readonly onIdle: (session: ManagedSession) => void;
  readonly onEnd: (session: ManagedSession) => void;
}

/** The state in the store and the session with it. Without a version, the store has no state. */
export interface LoadedSession {
  readonly version: number | undefined;
  readonly snapshot: SessionSnapshot;
}

export const createOpenSession = (
  parts: SessionParts,
  { store, track$, now, onUse, onIdle, onEnd }: SessionManager,
  loaded: LoadedSession,
): ManagedSession => {
  let users = 0;
  let usedAt = now();
  let isUnmeasured = false;
  let unloaded: UnloadedChanges | undefined;
  let closing: { readonly closed$: Observable<never>; why: 'closed' | 'idle' } | undefined;
  let status: ManagedSession['status'] = 'open';
  let { version } = loaded;
  let savedCalls = version === undefined ? [] : endedCallsIn(loaded.snapshot);
  /** The stored state at this version, if it is known. */
  let saved: SessionSnapshot | undefined = loaded.snapshot;
  const size = createSize(loaded.snapshot.tree.entries);

  const use$: ManagedSession['use$'] = (work$, changesMore = false) =>
    defer(() => {
      users += 1;
      if (users === 1) onUse(session);
      let isOver = false;
      return work$.pipe(
        tap({ complete: () => (isOver = true) }),
        finalize(() => {
          users -= 1;
          usedAt = now();
          if (!isOver || changesMore) isUnmeasured = true;
          if (users === 0) onIdle(session);
        }),
      );
    });
  const markEnded = (why: 'closed' | 'idle' | 'conflict'): void => {
    status = why;
    onEnd(session);
  };
  const assertOpen = (): void => {
    if (status !== 'open') throw notOpen(status);
  };
  const whenOpen$ = (work: () => Observable<never>): Observable<never> =>
    defer(() => (status === 'open' ? work() : EMPTY));
  const write$ = (snapshot: SessionSnapshot): Observable<number> => {
    const change = saved && version !== undefined && store.append$ && changeSince(saved, snapshot);
    return change && version !== undefined && store.append$
      ? store.append$(parts.id, change, version)
      : store.save$(parts.id, stateOf(snapshot), version);
  };
  // Saves run one by one: each needs the version of the one before.
  const saves = createSemaphore({ max: 1, maxQueue: Number.MAX_SAFE_INTEGER });
  const inTurn$ = <T>(work: (snapshot: SessionSnapshot) => Observable<T>): Observable<T> =>
    track$(
      saves.hold$(() => {
        if (status === 'closed' || status === 'idle') throw notOpen(status);
        return snapshot$(parts).pipe(concatMap(work));
      }),
    );
  const saveNow$ = (snapshot: SessionSnapshot): Observable<number> => {
    const calls = endedCallsIn(snapshot);
    const unsaved = calls.filter((callId) => !savedCalls.includes(callId));
    if (status === 'conflict') throw conflictOf(parts.id, unsaved);
    return defer(() => write$(snapshot)).pipe(
      contained(),
      take(1),
      failAs('store', `The state of the session '${parts.id}' could not be saved`),
      tap((at) => {
        version = at;
        saved = snapshot;
        savedCalls = calls;
        size.measure(snapshot.tree.entries);
        isUnmeasured = false;
      }),
      catchError((error: unknown) => {
        // The store may have a part of it.
        saved = undefined;
        if (!isMillraceError(error) || error.code !== 'conflict') throw error;
        if (status === 'open') markEnded('conflict');
        throw conflictOf(parts.id, unsaved, error);
      }),
    );
  };
  const save$ = inTurn$(saveNow$);
  const saveChanges$ = inTurn$((snapshot) =>
    isSame(saved, snapshot) ? EMPTY : saveNow$(snapshot),
  );
  const held = holdAsyncContext<never>();
  const closeAs$ = (why: 'closed' | 'idle'): Observable<never> => {
    const clear$ = concat(
      loadedState$(parts, emptyState),
      defer(() => {
        if (status === 'conflict') onEnd(session);
        else markEnded(closing?.why ?? why);
        // Handles may stay for long.
        saved = undefined;
        size.measure([]);
        return EMPTY;
      }),
    );
    // Another handle may own the held state by the time that it is saved.
    const closed$ = concat(
      (why === 'idle' ? saveChanges$ : save$).pipe(ignoreElements()),
      whenOpen$(() => clear$),
    ).pipe(
      finalize(() => {
        closing = undefined;
        if (status === 'idle') return;
        // It could not be saved, and stays open.
        if (status === 'open') unloaded?.apply();
        unloaded = undefined;
      }),
      share({ connector: () => new ReplaySubject(1) }),
      restoreAsyncContext(),
    );
    return defer(() => {
      if (status === 'conflict' && why === 'idle') return use$(clear$);
      if (status !== 'open') return EMPTY;
      if (why === 'idle' && closing === undefined)
        unloaded = createUnloadedChanges(parts.record, parts.record.state);
      closing ??= { closed$: use$(closed$), why };
      if (why === 'closed') closing.why = why;
      return closing.closed$;
    });
  };
  const session: ManagedSession = {
    get version() {
      return version;
    },
    get status() {
      return status;
    },
    get usedAt() {
      return usedAt;
    },
    get isUsed() {
      return users > 0;
    },
    get bytes() {
      return size.bytes;
    },
    get isUnmeasured() {
      return isUnmeasured;
    },
    get unloaded() {
      return unloaded;
    },
    get settable() {
      return settableOf(parts.record, assertOpen);
    },
    get closing$() {
      return closing?.closed$;
    },
    get closingIdle$() {
      return closing?.why === 'idle' ? closing.closed$ : undefined;
    },
    assertOpen,
    use$,
    save$: () => use$(save$),
    measure$: () =>
      snapshot$(parts).pipe(
        map(({ tree }) => {
          size.measure(tree.entries);
          isUnmeasured = false;
        }),
      ),
    close$: () => closeAs$('closed'),
    closeIdle$: () => held(closeAs$('idle')),
  };
  return session;
};

const settableOf = (record: SessionRecord, assertOpen: () => void): Settable => ({
  title: record.state.title,
  rename: (title) => {
    assertOpen();
    record.rename(title);
  },
  toolkit: {
    get current() {
      return record.toolkit.current;
    },
    set current(changed) {
      assertOpen();
      record.toolkit.current = changed;
    },
  },
});

/** An open session without its messages. */
const openBytes = 20_000;

/** Counts the bytes of a session. Messages that were counted before are not looked at again. */
const createSize = (
  first: readonly Entry[],
): { readonly bytes: number; measure(entries: readonly Entry[]): void } => {
  let counted: readonly Entry[] = [];
  let bytes = openBytes;
  const measure = (entries: readonly Entry[]): void => {
    const added = addedSince(counted, entries);
    bytes = added === undefined ? openBytes + sizeOfEntries(entries) : bytes + sizeOfEntries(added);
    counted = entries;
  };
  measure(first);
  return {
    get bytes() {
      return bytes;
    },
    measure,
  };
};

const isSame = (saved: SessionSnapshot | undefined, { tree, rest }: SessionSnapshot): boolean =>
  saved?.tree.head === tree.head &&
  addedSince(saved.tree.entries, tree.entries)?.length === 0 &&
  equal(saved.rest, rest);

/** The snapshot of a session that is in no store: all that it holds has to be saved. */
export const unsaved = ({ rest }: SessionSnapshot): SessionSnapshot => ({ tree: emptyTree, rest });

export const emptyState: SessionState = {
  version: stateVersion,
  messages: [],
  groups: {},
  approvals: [],
  usage: noUsage,
  interrupted: false,
};

const notOpen = (why: 'closed' | 'idle' | 'conflict'): MillraceError =>
  why === 'conflict'
    ? new MillraceError(
        'conflict',
        'Another process has saved the session. Open it again to continue with its current state.',
        { userMessage: changedElsewhere },
      )
    : new MillraceError('invalidState', 'The session has been closed. Open it again.');
