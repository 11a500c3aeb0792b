import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  endWith,
  finalize,
  firstValueFrom,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  noop,
  of,
  race,
  ReplaySubject,
  share,
  Subject,
  take,
  tap,
  timer,
} from 'rxjs';
import { holdAsyncContext, restoreAsyncContext } from '../../flow/async-context.js';
import type { Agent } from '../../agent.js';
import { toCallable } from '../../call/callable.js';
import type { CallOptions } from '../../call/call-options.js';
import { isMillraceError, MillraceError, misuse } from '../../values/errors.js';
import type { CallStore } from '../../journal/call-store.js';
import { createDraining, type Drainable, type RunningCalls } from '../../journal/draining.js';
import type { AnyRun } from '../../values/reply.js';
import type { Journal } from '../../journal/journal.js';
import { isStoreOfCalls } from '../../journal/call-store-driver.js';
import { isRecord } from '../../values/json.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, defined, having, isFunction, numberFrom } from '../../values/options.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import type { Session, SessionCallOptions, SessionOptions } from './sessions.js';
import { callRules, sessions } from './sessions.js';
import type { ResumableSession, Resuming } from './resume-session.js';
import { resumableSession, saveAfterStream, saveBeforeReply } from './resume-session.js';
import type { SessionState, SessionStore, StoredSession } from './session-state.js';
import { stateVersion } from './session-state.js';
import { contained, failAs } from '../../flow/contained.js';
import { createSemaphore } from '../traffic/limit-concurrency.js';
import { noUsage } from '../../values/usage.js';

export interface KeptSessions<
  out Output = unknown,
  out Run extends AnyRun = AnyRun,
> extends Drainable {
  /** Opens a session: loads its state, and emits a handle. Errors as `loadState$` does, and with `store`. Cold. */
  open$(sessionId: string, options?: SessionOptions): Observable<KeptSession<Output, Run>>;
  open(sessionId: string, options?: SessionOptions): Promise<KeptSession<Output, Run>>;
  /** Drains calls and emits once their sessions are saved. Waits up to `timeoutMs` for a save. Cold. */
  readonly drain$: Drainable['drain$'];
}

/**
 * A session that is saved after each call, before its reply is emitted or its stream completes. If saving fails, the
 * call errors with `conflict` or `store`, unless it failed itself. An aborted call is saved with the next one.
 */
export interface KeptSession<out Output = unknown, out Run extends AnyRun = AnyRun>
  extends Omit<Session<Output, Run>, 'with'>, ResumableSession<Output> {
  /** The version in the store; `undefined` before the first save. */
  readonly version: number | undefined;
  /** Saves it and emits the new version. Errors with `conflict` for another one in the store: then reopen it. Cold. */
  save$(): Observable<number>;
  save(): Promise<number>;
  /** Saves the session, frees its memory in this process, and completes. Errors with `busy` while a call runs. Cold. */
  close$(): Observable<never>;
  close(): Promise<void>;
}

export interface KeepSessionsOptions {
  /** Records the calls of the sessions, so that `resume` can continue those that stopped. Default: none. */
  readonly journal?: Journal<CallStore>;
  /** Creates the memory of an open session. It needs `replace$`. Default: one in this process. */
  readonly memory?: MemoryFactory;
  /** Opening a session closes those without calls for so many milliseconds, or a sixteenth more. Default: 1,800,000 (30 minutes). */
  readonly idleMs?: number;
  readonly scheduler?: Pick<SchedulerLike, 'now'>;
}

/**
 * Persists the sessions of an agent in a store. A memory holds the messages of open sessions only, and needs
 * `replace$`, else it is a `config` error. If several processes use one session, the first to save wins, and the others get a `conflict`.
 */
export const keepSessions = <Output, Run extends AnyRun>(
  agent: Agent<Output, Run>,
  store: SessionStore,
  options: KeepSessionsOptions = {},
): KeptSessions<Output, Run> => {
  if (!having('with', '')[0](agent)) throw misuse('keepSessions() needs an agent.');
  if (!['load$', 'save$'].every((method) => having(method, '')[0](store))) {
    throw misuse('keepSessions() needs a session store, such as inProcessSessions().');
  }
  checkOptions('keepSessions()', options, keepRules);
  const { journal, memory, idleMs = 1_800_000, scheduler = asyncScheduler } = options;
  // A journal drains the calls that it records.
  const running = createDraining();
  const track$: RunningCalls['track$'] =
    journal === undefined ? running.track$ : (open) => defer(() => open(noop));
  const all = sessions(agent, defined({ memory }));
  const saving = createPendingWork();
  const opened$ = createOpenSessions(store, saving, { idleMs, now: () => scheduler.now() });
  const open$: KeptSessions<Output, Run>['open$'] = (sessionId, given) =>
    defer(() => {
      const opened = all.open(sessionId, given);
      const session = journal === undefined ? opened : opened.with(journal);
      if (session.memory.replace$ === undefined) throw misuse(withoutReplace);
      const handle = { agent, session, journal, track$, saved$: saving.track$ };
      return opened$(session).pipe(map((open) => keptSession<Output, Run>(handle, open)));
    });
  const drain$: Drainable['drain$'] = (given = {}) => {
    const { timeoutMs = 30_000, scheduler } = given;
    return (journal ?? running).drain$(given).pipe(
      concatMap((drained) =>
        race(saving.idle$, timer(timeoutMs, scheduler)).pipe(
          take(1),
          map(() => drained),
        ),
      ),
    );
  };
  return {
    open$,
    open: (sessionId, given) => firstValueFrom(open$(sessionId, given)),
    drain$,
    drain: (given) => firstValueFrom(drain$(given)),
  };
};

const withoutReplace =
  "keepSessions() needs a memory with 'replace$'. The session store persists the messages: omit 'memory', or wrap inProcessMemory(). A persistent memory does not need keepSessions().";

const isJournal: Rule = [
  (value) => having('resume$', '')[0](value) && isRecord(value) && isStoreOfCalls(value['store']),
  'a journal on a call store: journal(createCallStore(driver))',
];

const keepRules: Readonly<Record<keyof KeepSessionsOptions, Rule>> = {
  journal: isJournal,
  memory: isFunction,
  idleMs: numberFrom(0),
  scheduler: having('now', 'an RxJS scheduler'),
};

const keptSession = <Output, Run extends AnyRun>(
  handle: Omit<Resuming<Output>, 'open'> & Pick<RunningCalls, 'track$'>,
  open: OpenSession,
): KeptSession<Output, Run> => {
  const { session, track$, saved$ } = handle;
  // Calls of another handle would not be saved.
  const { with: _, ...own } = session;
  const save$ = open.save$(session);
  const clear$ = concat(session.clear$(), save$.pipe(ignoreElements()));
  const close$ = open.close$(session);
  const callable = toCallable<Output, Run>(
    (input, options: CallOptions & SessionCallOptions, view) =>
      defer(() => {
        open.assertOpen();
        return view({
          events$: open.use$(
            saved$(track$(() => session.stream$(input, options)).pipe(saveAfterStream(save$))),
          ),
          reply$: open.use$(
            saved$(track$(() => session.call$(input, options)).pipe(saveBeforeReply(save$))),
          ),
        });
      }),
    callRules,
  );
  return {
    ...own,
    ...callable,
    ...resumableSession({ ...handle, open }),
    get title() {
      return session.title;
    },
    get version() {
      return open.version;
    },
    save$: () => save$,
    save: () => firstValueFrom(save$),
    clear$: () => clear$,
    clear: () => lastValueFrom(clear$, { defaultValue: undefined }),
    close$: () => close$,
    close: () => lastValueFrom(close$, { defaultValue: undefined }),
  };
};

interface OpenSession {
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

const createOpenSessions = (
  store: SessionStore,
  saving: PendingWork,
  idling: IdleOptions,
): ((session: Session) => Observable<OpenSession>) => {
  const open = new Map<string, Observable<OpenSession>>();
  const opened = new Map<string, { readonly opened: OpenSession; readonly session: Session }>();
  const openOnce$ = (session: Session): Observable<OpenSession> => {
    const { id } = session;
    const known = open.get(id);
    const closing$ = opened.get(id)?.opened.closing$;
    const again$ = defer(() => openOnce$(session));
    if (closing$ !== undefined) return concat(closing$.pipe(ignoringErrors), again$);
    if (known !== undefined) return known;
    const onEnd = (): void => {
      open.delete(id);
      opened.delete(id);
    };
    const opening$ = defer(() => store.load$(id)).pipe(
      contained(),
      take(1),
      failAs('store', `The state of the session '${id}' could not be loaded`),
      concatMap((stored) => {
        const opened = createOpenSession(store, saving, stored, idling, onEnd);
        return stored === undefined
          ? [opened]
          : session.loadState$(stored.state).pipe(
              endWith(undefined),
              map(() => opened),
            );
      }),
      tap({ next: (handle) => opened.set(id, { opened: handle, session }), error: onEnd }),
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
  onEnd: () => void,
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
  let status: 'open' | 'closed' | 'conflict' = 'open';
  const markEnded = (why: 'closed' | 'conflict'): void => {
    status = why;
    onEnd();
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
        assertOpen();
        return session.saveState$().pipe(
          concatMap((state) => store.save$(session.id, state, version)),
          contained(),
          take(1),
          failAs('store', `The state of the session '${session.id}' could not be saved`),
          tap({
            next: (saved) => {
              version = saved;
            },
            error: (error: unknown) => {
              if (isMillraceError(error) && error.code === 'conflict') markEnded('conflict');
            },
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
      );

interface PendingWork {
  readonly track$: <T>(work$: Observable<T>) => Observable<T>;
  readonly idle$: Observable<void>;
}

const createPendingWork = (): PendingWork => {
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
