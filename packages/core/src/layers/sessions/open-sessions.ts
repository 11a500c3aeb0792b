import {
  type Observable,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  endWith,
  finalize,
  from,
  ignoreElements,
  map,
  of,
  ReplaySubject,
  share,
  Subject,
  take,
  tap,
} from 'rxjs';
import { holdAsyncContext, restoreAsyncContext } from '../../flow/async-context.js';
import { isMillraceError, MillraceError } from '../../values/errors.js';
import type { Session } from './sessions.js';
import type { SessionState, SessionStore, StoredSession } from './session-state.js';
import { isRecord } from '../../values/json.js';
import { stateVersion } from './session-state.js';
import { contained, failAs } from '../../flow/contained.js';
import { createSemaphore } from '../traffic/limit-concurrency.js';
import { noUsage } from '../../values/usage.js';

/** A session of this process and its place in the store. */
export interface OpenSession {
  readonly version: number | undefined;
  assertOpen(): void;
  use$<T>(work$: Observable<T>): Observable<T>;
  isIdle(): boolean;
  save$(session: Session): Observable<number>;
  close$(session: Session): Observable<never>;
  /** As `close$`, in the async context of the code that opened it: another user may be the one who closes it. */
  closeIdle$(session: Session): Observable<never>;
  /** Completes once it is closed; undefined unless closing. */
  readonly closing$: Observable<never> | undefined;
}

type IdleOptions = Readonly<{ idleMs: number; now: () => number }>;

export const createOpenSessions = (
  store: SessionStore,
  saving: PendingWork,
  idling: IdleOptions,
): ((session: Session) => Observable<OpenSession>) => {
  const open = new Map<string, Observable<OpenSession>>();
  const opened = new Map<string, { readonly opened: OpenSession; readonly session: Session }>();
  /** Sessions that another process has saved or removed since they were opened. */
  const outdated = new Set<string>();
  const openOnce$ = (session: Session): Observable<OpenSession> => {
    const { id } = session;
    const known = open.get(id);
    const closing$ = opened.get(id)?.opened.closing$;
    const again$ = defer(() => openOnce$(session));
    if (closing$ !== undefined) return concat(closing$.pipe(ignoringErrors), again$);
    if (known !== undefined) return known;
    const onEnd = (why?: 'closed' | 'conflict'): void => {
      open.delete(id);
      opened.delete(id);
      if (why === 'conflict') outdated.add(id);
    };
    const opening$ = defer(() => store.load$(id)).pipe(
      contained(),
      take(1),
      failAs('store', `The state of the session '${id}' could not be loaded`),
      concatMap((stored) => {
        const opened = createOpenSession(store, saving, stored, idling, onEnd);
        const state = stored?.state ?? (outdated.has(id) ? emptyState : undefined);
        const loaded$ = state === undefined ? EMPTY : session.loadState$(state);
        return loaded$.pipe(
          endWith(undefined),
          map(() => opened),
        );
      }),
      tap({
        next: (handle) => {
          outdated.delete(id);
          opened.set(id, { opened: handle, session });
        },
        error: () => onEnd(),
      }),
      share({
        connector: () => new ReplaySubject<OpenSession>(1),
        resetOnComplete: false,
        resetOnRefCountZero: false,
      }),
      restoreAsyncContext(),
    );
    open.set(id, opening$);
    return opening$;
  };
  let lookAt = 0;
  return (session) => {
    const known = idling.now() < lookAt ? [] : [...opened.values()];
    if (known.length > 0) lookAt = idling.now() + idling.idleMs / 16;
    const idle = known.filter(({ opened }) => opened.isIdle());
    return concat(
      from(idle).pipe(
        concatMap((it) => it.opened.closeIdle$(it.session).pipe(ignoringErrors)),
        restoreAsyncContext(),
      ),
      defer(() => openOnce$(session)).pipe(concatMap((opened) => opened.use$(of(opened)))),
    );
  };
};

/** A session that cannot be closed stays open. */
const ignoringErrors = catchError<never, Observable<never>>(() => EMPTY);

const createOpenSession = (
  store: SessionStore,
  { track$ }: PendingWork,
  stored: StoredSession | undefined,
  { idleMs, now }: IdleOptions,
  onEnd: (why: 'closed' | 'conflict') => void,
): OpenSession => {
  let users = 0;
  let usedAt = now();
  let closing$: Observable<never> | undefined;
  const use$ = <T>(work$: Observable<T>): Observable<T> =>
    defer(() => {
      users += 1;
      return work$.pipe(
        finalize(() => {
          users -= 1;
          usedAt = now();
        }),
      );
    });
  let version = stored?.version;
  let savedCalls = endedCallsIn(stored?.state);
  let status: 'open' | 'closed' | 'conflict' = 'open';
  const markEnded = (why: 'closed' | 'conflict'): void => {
    status = why;
    onEnd(why);
  };
  const assertOpen = (): void => {
    if (status !== 'open') throw notOpen(status);
  };
  const whenOpen$ = (work: () => Observable<never>): Observable<never> =>
    defer(() => (status === 'open' ? work() : EMPTY));
  // Saves run one by one: each needs the version of the one before.
  const saves = createSemaphore({ max: 1, maxQueue: Number.MAX_SAFE_INTEGER });
  const save$ = (session: Session): Observable<number> =>
    track$(
      saves.hold$(() => {
        if (status === 'closed') throw notOpen(status);
        return session.saveState$().pipe(
          concatMap((state) => {
            const calls = endedCallsIn(state);
            const unsaved = calls.filter((callId) => !savedCalls.includes(callId));
            if (status === 'conflict') throw conflictOf(session.id, unsaved);
            return defer(() => store.save$(session.id, state, version)).pipe(
              contained(),
              take(1),
              failAs('store', `The state of the session '${session.id}' could not be saved`),
              tap((saved) => {
                version = saved;
                savedCalls = calls;
              }),
              catchError((error: unknown) => {
                if (!isMillraceError(error) || error.code !== 'conflict') throw error;
                if (status === 'open') markEnded('conflict');
                throw conflictOf(session.id, unsaved, error);
              }),
            );
          }),
        );
      }),
    );
  const held = holdAsyncContext<never>();
  const close$ = (session: Session): Observable<never> => {
    const clear$ = concat(
      session.loadState$(emptyState),
      defer(() => {
        markEnded('closed');
        return EMPTY;
      }),
    );
    // Another handle may own the held state by the time that it is saved.
    const closed$ = concat(
      save$(session).pipe(ignoreElements()),
      whenOpen$(() => clear$),
    ).pipe(
      finalize(() => (closing$ = undefined)),
      share({ connector: () => new ReplaySubject(1) }),
      restoreAsyncContext(),
    );
    return whenOpen$(() => (closing$ ??= use$(closed$)));
  };
  return {
    get version() {
      return version;
    },
    get closing$() {
      return closing$;
    },
    assertOpen,
    use$,
    isIdle: () => users === 0 && now() - usedAt >= idleMs,
    save$: (session) => use$(save$(session)),
    close$,
    closeIdle$: (session) => held(close$(session)),
  };
};

const emptyState: SessionState = {
  version: stateVersion,
  messages: [],
  groups: {},
  approvals: [],
  usage: noUsage,
  interrupted: false,
};

const notOpen = (why: 'closed' | 'conflict'): MillraceError =>
  why === 'closed'
    ? new MillraceError('invalidState', 'The session has been closed. Open it again.')
    : new MillraceError(
        'conflict',
        'Another process has saved the session. Open it again to continue with its current state.',
        { userMessage: changedElsewhere },
      );

/** The calls of a state of which it contains all. */
const endedCallsIn = (state: unknown): readonly string[] => {
  const { lastCall, earlierCalls } = isRecord(state) ? state : {};
  const earlier: readonly unknown[] = Array.isArray(earlierCalls) ? earlierCalls : [];
  return [...earlier, lastCall].flatMap((call) =>
    isRecord(call) && call['hasEnded'] === true && typeof call['callId'] === 'string'
      ? [call['callId']]
      : [],
  );
};

const conflictOf = (
  sessionId: string,
  unsaved: readonly string[],
  cause?: MillraceError,
): MillraceError => {
  const calls = unsaved.map((callId) => `'${callId}'`).join(', ');
  const isOne = unsaved.length === 1;
  const why = `another process has saved the session '${sessionId}' meanwhile`;
  return unsaved.length === 0
    ? new MillraceError(
        'conflict',
        `The session is not saved: ${why}. Open it again to continue with its current state.`,
        { cause, userMessage: changedElsewhere },
      )
    : new MillraceError(
        'conflict',
        `The ${isOne ? 'call' : 'calls'} ${calls} ended, but ${why}. Do not repeat ${isOne ? 'it' : 'them'}: open the session again and call resume(), which adds ${isOne ? 'it' : 'them'} to the conversation.`,
        {
          cause,
          userMessage:
            'Your request was completed, but the conversation was changed elsewhere meanwhile. Load it again.',
        },
      );
};

const changedElsewhere = 'The conversation has changed. Load it again.';

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
