import {
  type Observable,
  type SchedulerLike,
  concat,
  concatMap,
  defer,
  EMPTY,
  endWith,
  finalize,
  ignoreElements,
  map,
  mergeMap,
  of,
  ReplaySubject,
  share,
  Subject,
  take,
  tap,
  catchError,
  exhaustMap,
  merge,
  repeat,
  takeUntil,
  timer,
} from 'rxjs';
import { contained, failAs } from '../../flow/contained.js';
import { restoreAsyncContext } from '../../flow/async-context.js';
import {
  createOpenSession,
  emptyState,
  type ManagedSession,
  type OpenSession,
  type SessionManager,
  type Settable,
  unsaved,
} from './open-session.js';
import { loadedState$, snapshot$ } from './session-actions.js';
import type { SessionParts } from './session-layers.js';
import type { SessionStore } from './session-state.js';
import type { UnloadedChanges } from './unloaded-changes.js';
import { longestDelayMs } from '../../values/options.js';

export interface OpenSessionsOptions {
  readonly store: SessionStore;
  readonly saving: PendingWork;
  readonly idleMs: number;
  readonly idleBytes: number;
  readonly scheduler: SchedulerLike;
}

export interface OpenSessions {
  open$(parts: SessionParts): Observable<OpenSession>;
  /** Closes those that are idle; their handles open them again. */
  closeIdle(): void;
}

/** Opens sessions once for all of their handles, and closes idle ones. */
export const createOpenSessions = ({
  store,
  saving: { track$ },
  ...options
}: OpenSessionsOptions): OpenSessions => {
  const opening = new Map<string, Observable<ManagedSession>>();
  const opened = new Map<string, ManagedSession>();
  /** Sessions that another process has saved or removed since they were opened: their messages are still here. */
  const outdated = new Map<string, ManagedSession>();
  /** The changes that programs have made to sessions that are not open. */
  const unloaded = new Map<string, ReadonlySet<UnloadedChanges>>();
  const reopen$ = new Subject<Observable<unknown>>();
  reopen$.pipe(mergeMap((open$) => open$.pipe(ignoreElements(), ignoringErrors))).subscribe();
  const idle = createIdleSessions(options);
  const sessionOf = (id: string): ManagedSession | undefined => opened.get(id) ?? outdated.get(id);
  const end = (id: string, session: ManagedSession): void => {
    const isOutdated = opened.get(id) === session && session.status === 'conflict';
    opening.delete(id);
    opened.delete(id);
    outdated.delete(id);
    if (isOutdated) outdated.set(id, session);
    idle.forget(id, opened.size + outdated.size === 0);
  };
  const managerOf = (id: string): SessionManager => {
    const ifKnown =
      (work: (session: ManagedSession) => void) =>
      (session: ManagedSession): void => {
        if (sessionOf(id) === session) work(session);
      };
    return {
      ...{ store, track$, now: () => options.scheduler.now() },
      onUse: ifKnown(() => idle.remove(id)),
      onIdle: ifKnown((session) => idle.add(id, session)),
      onEnd: ifKnown((session) => end(id, session)),
    };
  };
  const load$ = (parts: SessionParts, manager: SessionManager): Observable<ManagedSession> =>
    defer(() => store.load$(parts.id)).pipe(
      contained(),
      take(1),
      failAs('store', `The state of the session '${parts.id}' could not be loaded`),
      concatMap((stored) => {
        const state = stored?.state ?? (outdated.has(parts.id) ? emptyState : undefined);
        return (state === undefined ? EMPTY : loadedState$(parts, state)).pipe(
          endWith(undefined),
          concatMap(() => snapshot$(parts)),
          map((snapshot) => ({
            version: stored?.version,
            snapshot: stored === undefined ? unsaved(snapshot) : snapshot,
          })),
        );
      }),
      map((loaded) => createOpenSession(parts, manager, loaded)),
    );
  const openOnce$ = (parts: SessionParts): Observable<ManagedSession> => {
    const { id } = parts;
    const known = opening.get(id);
    const closing$ = opened.get(id)?.closing$;
    if (closing$ !== undefined) {
      return concat(
        closing$.pipe(ignoringErrors),
        defer(() => openOnce$(parts)),
      );
    }
    if (known !== undefined) return known;
    // An outdated session must not be freed while the current state is loaded.
    idle.remove(id);
    const opening$ = load$(parts, managerOf(id)).pipe(
      tap({
        next: (session) => {
          outdated.delete(id);
          opened.set(id, session);
          unloaded.get(id)?.forEach((changes) => changes.apply());
          unloaded.delete(id);
        },
        error: () => {
          opening.delete(id);
          const session = outdated.get(id);
          if (session !== undefined) idle.add(id, session);
        },
      }),
      share({
        connector: () => new ReplaySubject<ManagedSession>(1),
        resetOnComplete: false,
        resetOnRefCountZero: false,
      }),
      restoreAsyncContext(),
    );
    opening.set(id, opening$);
    return opening$;
  };
  const open$ = (parts: SessionParts): Observable<ManagedSession> =>
    defer(() => openOnce$(parts)).pipe(concatMap((session) => session.use$(of(session))));
  return {
    open$: (parts) => {
      const { id } = parts;
      /** It opens again soon, so that it is saved with them. */
      const changed = (changes: UnloadedChanges): void => {
        unloaded.set(id, new Set([...(unloaded.get(id) ?? []), changes]));
        reopen$.next(open$(parts));
      };
      return open$(parts).pipe(
        map((session) =>
          createHandle(session, { current: () => opened.get(id), changed }, open$(parts)),
        ),
      );
    },
    closeIdle: () => idle.closeAll(),
  };
};

interface Sessions {
  readonly current: () => ManagedSession | undefined;
  readonly changed: (changes: UnloadedChanges) => void;
}

/** Opens the session again if it was closed because it was idle. */
const createHandle = (
  first: ManagedSession,
  sessions: Sessions,
  open$: Observable<ManagedSession>,
): OpenSession => {
  let current = first;
  /** Another handle may have opened it again. */
  const now = (): ManagedSession =>
    current.status === 'idle' ? (current = sessions.current() ?? current) : current;
  const with$ = <T>(work: (session: ManagedSession) => Observable<T>): Observable<T> =>
    defer(() => {
      const session = now();
      const { closingIdle$, status } = session;
      if (closingIdle$ !== undefined) {
        return concat(
          closingIdle$.pipe(ignoringErrors),
          defer(() => with$(work)),
        );
      }
      if (status !== 'idle') return work(session);
      return open$.pipe(concatMap((again) => work((current = again))));
    });
  return {
    get version() {
      return now().version;
    },
    assertOpen: () => {
      if (now().status !== 'idle') current.assertOpen();
    },
    use$: (work$, changesMore) => with$((session) => session.use$(work$, changesMore)),
    save$: () => with$((session) => session.save$()),
    close$: () => defer(() => now().close$()),
    get settable() {
      const { unloaded, settable } = now();
      return unloaded === undefined ? settable : watched(unloaded, sessions.changed);
    },
  };
};

const watched = (
  changes: UnloadedChanges,
  changed: (changes: UnloadedChanges) => void,
): Settable => ({
  title: changes.title,
  rename: (title) => {
    changes.rename(title);
    changed(changes);
  },
  toolkit: {
    get current() {
      return changes.toolkit.current;
    },
    set current(toolkit) {
      changes.toolkit.current = toolkit;
      changed(changes);
    },
  },
});

export interface PendingWork {
  readonly track$: <T>(work$: Observable<T>) => Observable<T>;
  readonly idle$: Observable<void>;
}

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

interface IdleOptions {
  readonly idleMs: number;
  readonly idleBytes: number;
  readonly scheduler: SchedulerLike;
}

interface IdleSessions {
  /** A session that is idle from now on. */
  add(id: string, session: ManagedSession): void;
  /** A session that is used again. */
  remove(id: string): void;
  /** Closes all that are idle now. */
  closeAll(): void;
  /** A session that has ended. `isLast`: none is open. */
  forget(id: string, isLast: boolean): void;
}

type Idle = readonly [id: string, session: ManagedSession];

/** Closes sessions that are idle for too long, and those that were used least recently if all take too much memory. */
const createIdleSessions = ({ idleMs, idleBytes, scheduler }: IdleOptions): IdleSessions => {
  /** The one that was used least recently comes first. */
  const idle = new Map<string, { readonly session: ManagedSession; readonly bytes: number }>();
  /** Those that are about to be closed, or could not be. */
  const due = new Set<string>();
  const due$ = new Subject<Idle>();
  const unmeasured$ = new Subject<Idle>();
  const added$ = new Subject<void>();
  const noneOpen$ = new Subject<void>();
  let bytes = 0;

  const leave = (id: string): void => {
    bytes -= idle.get(id)?.bytes ?? 0;
    idle.delete(id);
  };
  const closeWhile = (isDue: (session: ManagedSession) => boolean): void => {
    const found: Idle[] = [];
    for (const [id, { session }] of idle) {
      if (!isDue(session)) break;
      leave(id);
      due.add(id);
      found.push([id, session]);
    }
    // One that cannot be closed is idle again immediately.
    found.forEach((it) => due$.next(it));
  };
  const put = ([id, session]: Idle): void => {
    if (session.isUsed || session.status === 'closed' || session.status === 'idle') return;
    leave(id);
    idle.set(id, { session, bytes: session.bytes });
    bytes += session.bytes;
    // One that could not be closed waits for the next that is idle.
    if (!due.delete(id)) closeWhile(() => bytes > idleBytes && idle.size > 1);
    added$.next();
  };
  const close$ = ([id, session]: Idle): Observable<never> =>
    defer(() => {
      const isUsedSince = session.isUsed || idle.has(id);
      if (isUsedSince) due.delete(id);
      return isUsedSince ? EMPTY : session.closeIdle$();
    }).pipe(ignoringErrors);
  const measureAndPut$ = (it: Idle): Observable<never> =>
    it[1].measure$().pipe(
      concatMap(() => EMPTY),
      ignoringErrors,
      finalize(() => put(it)),
    );
  const untilOneIsDue$ = (): Observable<unknown> => {
    const [first] = idle.values();
    if (first === undefined) return EMPTY;
    const waitMs = first.session.usedAt + idleMs - scheduler.now();
    return timer(Math.min(Math.max(waitMs, 0), longestDelayMs), scheduler);
  };
  const watch$ = defer(() => {
    closeWhile(({ usedAt }) => usedAt + idleMs <= scheduler.now());
    return EMPTY;
  }).pipe(repeat({ delay: untilOneIsDue$ }), takeUntil(noneOpen$));
  merge(
    due$.pipe(mergeMap(close$, 4)),
    unmeasured$.pipe(mergeMap(measureAndPut$)),
    added$.pipe(exhaustMap(() => watch$)),
  ).subscribe();
  return {
    add: (id, session) => {
      if (session.isUnmeasured) unmeasured$.next([id, session]);
      else put([id, session]);
    },
    remove: leave,
    closeAll: () => closeWhile(() => true),
    forget: (id, isLast) => {
      leave(id);
      due.delete(id);
      if (isLast) noneOpen$.next();
    },
  };
};

/** A session that cannot be closed stays open. */
const ignoringErrors = catchError<never, Observable<never>>(() => EMPTY);
