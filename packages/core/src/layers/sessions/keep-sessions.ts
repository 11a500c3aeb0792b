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
import type { Agent } from '../../agent.js';
import { toCallable } from '../../call/callable.js';
import type { CallOptions } from '../../call/call-options.js';
import { isMillraceError, MillraceError, misuse } from '../../values/errors.js';
import type { CallStore } from '../../journal/call-store.js';
import { createDraining, type Drainable, type RunningCalls } from '../../journal/draining.js';
import type { Journal } from '../../journal/journal.js';
import { isStoreOfCalls } from '../../journal/call-store-driver.js';
import { isRecord } from '../../values/json.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, defined, having, isFunction, numberFrom } from '../../values/options.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import type { Session, SessionCallOptions, SessionOptions } from './sessions.js';
import { callRules, sessions } from './sessions.js';
import type { ResumableSession, Resuming } from './resume-session.js';
import { resumableSession, savedBehind, savedWithReply } from './resume-session.js';
import type { SessionState, SessionStore, StoredSession } from './session-state.js';
import { stateVersion } from './session-state.js';
import { contained, failAs } from '../../flow/contained.js';
import { createSemaphore } from '../traffic/limit-concurrency.js';
import { noUsage } from '../../values/usage.js';

/** The sessions of an agent whose states a store keeps. */
export interface KeptSessions<out Output = unknown> extends Drainable {
  /** Opens a session: loads its state if the store has one, and emits a handle. Errors as `loadState$` does, and with `store`. Cold. */
  open$(sessionId: string, options?: SessionOptions): Observable<KeptSession<Output>>;
  /** The Promise form of `open$`. */
  open(sessionId: string, options?: SessionOptions): Promise<KeptSession<Output>>;
  /** Drains the calls of the sessions, and emits when these are saved, too: the process can end then. A save that takes longer than `timeoutMs` is not waited for. Cold. */
  readonly drain$: Drainable['drain$'];
}

/** A session whose state is saved after each call: a reply is emitted, and a stream completes, once it is saved. If saving fails, the call errors with `conflict` or `store`, unless it failed itself. An aborted call is saved with the next one. */
export interface KeptSession<out Output = unknown>
  extends Omit<Session<Output>, 'with'>, ResumableSession<Output> {
  /** The version that it has in the store; `undefined`, before it is first saved. */
  readonly version: number | undefined;
  /** Saves it and emits the new version. Errors with `conflict` if the store has another version: then open the session again. Cold. */
  save$(): Observable<number>;
  /** The Promise form of `save$`. */
  save(): Promise<number>;
  /** Saves it, frees what this process holds of it, and completes. Errors with `busy` while a call runs. Cold. */
  close$(): Observable<never>;
  /** The Promise form of `close$`. */
  close(): Promise<void>;
}

/** What keeping sessions may need beside an agent and a store. */
export interface KeepSessionsOptions {
  /** Records the calls of the sessions in a store of calls, so that `resume` can continue those that stopped. Default: none. */
  readonly journal?: Journal<CallStore>;
  /** Makes the memory that holds the messages of an open session. It needs `replace$`. Default: one in this process. */
  readonly memory?: MemoryFactory;
  /** How long a session may be idle, in milliseconds. When one is opened, those that have been idle for longer are saved and closed; never with a call running or waiting. Default: 1,800,000 (30 minutes). */
  readonly idleMs?: number;
  /** What tells the time. Default: `asyncScheduler`. */
  readonly scheduler?: Pick<SchedulerLike, 'now'>;
}

/** Persists the sessions of an agent in a store. A memory holds the messages of open sessions only; it needs `replace$`. If several processes use one session, the first to save wins, and the other gets a `conflict`. */
export const keepSessions = <Output>(
  agent: Agent<Output>,
  store: SessionStore,
  options: KeepSessionsOptions = {},
): KeptSessions<Output> => {
  if (!having('with', '')[0](agent)) throw misuse('keepSessions() needs an agent.');
  if (!['load$', 'save$'].every((method) => having(method, '')[0](store))) {
    throw misuse('keepSessions() needs a store of sessions, such as inProcessSessions() makes.');
  }
  checkOptions('keepSessions()', options, keepRules);
  const { journal, memory, idleMs = 1_800_000, scheduler = asyncScheduler } = options;
  // A journal drains what it records.
  const running = createDraining();
  const track$: RunningCalls['track$'] =
    journal === undefined ? running.track$ : (open) => defer(() => open(noop));
  const all = sessions(agent, defined({ memory }));
  const saving = createPendingWork();
  const opened$ = createOpenSessions(store, saving, { idleMs, now: () => scheduler.now() });
  const open$: KeptSessions<Output>['open$'] = (sessionId, given) =>
    defer(() => {
      const opened = all.open(sessionId, given);
      const session = journal === undefined ? opened : opened.with(journal);
      if (session.memory.replace$ === undefined) throw ofFixedMemory();
      const place = { agent, session, journal, track$, saved$: saving.track$ };
      return opened$(session).pipe(map((open) => kept(place, open)));
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

const ofFixedMemory = () =>
  misuse(
    "keepSessions() needs sessions whose messages can be replaced, and this 'memory' has no 'replace$'. The store of sessions holds the messages: leave 'memory' out, or put one around inProcessMemory(). A memory that outlasts the process itself needs no keepSessions().",
  );

const isJournal: Rule = [
  (value) => having('resume$', '')[0](value) && isRecord(value) && isStoreOfCalls(value['store']),
  'a journal on a store of calls: journal(createCallStore(driver))',
];

const keepRules: Readonly<Record<keyof KeepSessionsOptions, Rule>> = {
  journal: isJournal,
  memory: isFunction,
  idleMs: numberFrom(0),
  scheduler: having('now', 'a scheduler of RxJS'),
};

const kept = <Output>(
  place: Omit<Resuming<Output>, 'open'> & Pick<RunningCalls, 'track$'>,
  open: OpenSession,
): KeptSession<Output> => {
  const { session, track$, saved$ } = place;
  // Calls of another handle would not be saved.
  const { with: _, ...own } = session;
  const save$ = open.save$(session);
  const close$ = open.close$(session);
  const callable = toCallable<Output>(
    (input, options: CallOptions & SessionCallOptions, view) =>
      defer(() => {
        open.assertOpen();
        return view({
          events$: open.use$(
            saved$(track$(() => session.stream$(input, options)).pipe(savedBehind(save$))),
          ),
          reply$: open.use$(
            saved$(track$(() => session.call$(input, options)).pipe(savedWithReply(save$))),
          ),
        });
      }),
    callRules,
  );
  return {
    ...own,
    ...callable,
    ...resumableSession({ ...place, open }),
    get version() {
      return open.version;
    },
    save$: () => save$,
    save: () => firstValueFrom(save$),
    close$: () => close$,
    close: () => lastValueFrom(close$, { defaultValue: undefined }),
  };
};

interface OpenSession {
  readonly version: number | undefined;
  assertOpen(): void;
  /** Does work during which the session is not idle. */
  use$<T>(work$: Observable<T>): Observable<T>;
  isIdle(): boolean;
  save$(session: Session): Observable<number>;
  close$(session: Session): Observable<never>;
  /** Completes when it is closed, if that is under way. */
  readonly closing$: Observable<never> | undefined;
}

type Idling = Readonly<{ idleMs: number; now: () => number }>;

const createOpenSessions = (
  store: SessionStore,
  saving: PendingWork,
  idling: Idling,
): ((session: Session) => Observable<OpenSession>) => {
  const open = new Map<string, Observable<OpenSession>>();
  const held = new Map<string, { readonly opened: OpenSession; readonly session: Session }>();
  const known$ = (session: Session): Observable<OpenSession> => {
    const { id } = session;
    const known = open.get(id);
    const closing$ = held.get(id)?.opened.closing$;
    const again$ = defer(() => known$(session));
    if (closing$ !== undefined) return concat(closing$.pipe(orOpen), again$);
    if (known !== undefined) return known;
    const onEnd = (): void => {
      open.delete(id);
      held.delete(id);
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
      tap({ next: (opened) => held.set(id, { opened, session }), error: onEnd }),
      // Two who open it at once load it once.
      share({
        connector: () => new ReplaySubject<OpenSession>(1),
        resetOnComplete: false,
        resetOnRefCountZero: false,
      }),
    );
    open.set(id, opening$);
    return opening$;
  };
  return (session) => {
    const idle = [...held.values()].filter(({ opened }) => opened.isIdle());
    return concat(
      from(idle).pipe(concatMap((it) => it.opened.close$(it.session).pipe(orOpen))),
      defer(() => known$(session)).pipe(concatMap((opened) => opened.use$(of(opened)))),
    );
  };
};

/** A session that could not be closed stays open. */
const orOpen = catchError<never, Observable<never>>(() => EMPTY);

const createOpenSession = (
  store: SessionStore,
  { track$ }: PendingWork,
  stored: StoredSession | undefined,
  { idleMs, now }: Idling,
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
  const end = (why: 'closed' | 'conflict'): void => {
    status = why;
    onEnd();
  };
  const assertOpen = (): void => {
    if (status !== 'open') throw noMoreOpen(status);
  };
  const whenOpen$ = (work: () => Observable<never>): Observable<never> =>
    defer(() => (status === 'open' ? work() : EMPTY));
  // One save follows the other: each has to know the version of the one before it.
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
              if (isMillraceError(error) && error.code === 'conflict') end('conflict');
            },
          }),
        );
      }),
    );
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
    close$: (session) => {
      const free$ = concat(
        session.loadState$(emptyState),
        defer(() => {
          end('closed');
          return EMPTY;
        }),
      );
      // What is held may be another handle's by the time that it is saved.
      const close$ = concat(
        save$(session).pipe(ignoreElements()),
        whenOpen$(() => free$),
      ).pipe(
        finalize(() => (closing$ = undefined)),
        share({ connector: () => new ReplaySubject(1) }),
      );
      return whenOpen$(() => (closing$ ??= use$(close$)));
    },
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

const noMoreOpen = (why: 'closed' | 'conflict'): MillraceError =>
  why === 'closed'
    ? new MillraceError('invalidState', 'The session has been closed. Open it again.')
    : new MillraceError(
        'conflict',
        'Somebody else has saved the session. Open it again to go on with what is there now.',
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
