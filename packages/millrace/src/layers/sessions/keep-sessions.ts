import {
  type MonoTypeOperatorFunction,
  type Observable,
  type SchedulerLike,
  concat,
  concatMap,
  defer,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  noop,
  of,
  race,
  take,
  timer,
} from 'rxjs';
import type { Agent } from '../../agent.js';
import { backgroundScheduler } from '../../flow/background-scheduler.js';
import { toCallable } from '../../call/callable.js';
import type { CallOptions } from '../../call/call-options.js';
import { misuse } from '../../values/errors.js';
import type { CallStore } from '../../journal/call-store.js';
import { createDraining, type Drainable, type RunningCalls } from '../../journal/draining.js';
import type { AnyRun } from '../../values/reply.js';
import type { Journal } from '../../journal/journal.js';
import { isStoreOfCalls } from '../../journal/call-store-driver.js';
import { defined, isRecord } from '../../values/json.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, having, isFunction, isScheduler, numberFrom } from '../../values/options.js';
import { kept$, type Memory } from '../../values/memory.js';
import { liveToolkit } from '../../tools/toolkit.js';
import { wholeOf } from '../../memories/window-memory.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import type { Session, SessionCallOptions, SessionOptions } from './sessions.js';
import { callRules, checkTitle, openSessions } from './sessions.js';
import type { ResumableSession, Resuming } from './resume-session.js';
import { resumableSession, saveAfterStream, saveBeforeReply } from './resume-session.js';
import type { SessionState, SessionStore } from './session-state.js';
import { cancellable$, claimingResults } from './claim-results.js';
import type { OpenSession } from './open-session.js';
import { createOpenSessions, createPendingWork } from './open-sessions.js';

export interface KeptSessions<
  out Output = unknown,
  out Run extends AnyRun = AnyRun,
> extends Drainable {
  /** Opens a session: loads its state, and emits a handle. Errors as `loadState$` does, and with `store`. Cold. */
  open$(sessionId: string, options?: SessionOptions): Observable<KeptSession<Output, Run>>;
  open(sessionId: string, options?: SessionOptions): Promise<KeptSession<Output, Run>>;
  /**
   * Drains calls and emits once their sessions are saved. Waits up to `timeoutMs` for a save. Closes the sessions, which
   * frees their memory; their handles open them again. Cold.
   */
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
  readonly journal?: Journal<CallStore> | undefined;
  /** Creates the memory of an open session. It needs `replace$`. Default: one in this process. */
  readonly memory?: MemoryFactory | undefined;
  /** Closes a session that was not used for so many milliseconds; its handles open it again. Default: 1,800,000 (30 minutes). */
  readonly idleMs?: number | undefined;
  /**
   * If the messages of idle sessions take more memory than so many bytes, about, closes those that were used least recently; their
   * handles open them again. The one that was used last stays open, of any size. Default: 16,000,000.
   */
  readonly idleBytes?: number | undefined;
  /** Has the clock and the timer for idle sessions. Default: one whose timer does not keep the process running. */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Persists the sessions of an agent in a store. A memory holds the messages of open sessions only, and needs
 * `replace$`, else it is a `config` error. If several processes use one session, the first to save wins, and the others get a `conflict`,
 * which names their calls: close the session, open it again and resume it. A call that brings results for tools that wait, or cancels
 * them, also saves before it does so: the others error with `conflict` and have no effect, until it has ended or, if it was aborted or its
 * process has stopped, until it is resumed. Without a journal, this holds only for calls that begin at the same time.
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
  const { journal, memory, idleMs = 1_800_000, idleBytes = 16_000_000 } = options;
  const { scheduler = backgroundScheduler } = options;
  // A journal drains the calls that it records.
  const running = createDraining();
  const track$: RunningCalls['track$'] =
    journal === undefined ? running.track$ : (open) => defer(() => open(noop));
  const openParts = openSessions(agent, defined({ memory }));
  const saving = createPendingWork();
  const sessions = createOpenSessions({ store, saving, idleMs, idleBytes, scheduler });
  const open$: KeptSessions<Output, Run>['open$'] = (sessionId, given) =>
    defer(() => {
      const { session: opened, parts } = openParts(sessionId, given);
      const session = journal === undefined ? opened : opened.with(journal);
      if (session.memory.replace$ === undefined) throw misuse(withoutReplace);
      const isHere = (callId: string): boolean => parts.queue.runningAs(callId) !== undefined;
      const handle = { agent, session, journal, track$, saved$: saving.track$, isHere };
      return sessions.open$(parts).pipe(map((open) => keptSession<Output, Run>(handle, open)));
    });
  const drain$: Drainable['drain$'] = (given = {}) => {
    const { timeoutMs = 30_000, scheduler: ownScheduler } = given;
    return (journal ?? running).drain$(given).pipe(
      concatMap((drained) => {
        sessions.closeIdle();
        return race(saving.idle$, timer(timeoutMs, ownScheduler)).pipe(
          take(1),
          map(() => drained),
        );
      }),
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
  idleBytes: numberFrom(0),
  scheduler: isScheduler,
};

const keptSession = <Output, Run extends AnyRun>(
  handle: Omit<Resuming<Output>, 'open'> &
    Pick<RunningCalls, 'track$'> & { readonly isHere: (callId: string) => boolean },
  open: OpenSession,
): KeptSession<Output, Run> => {
  const { agent, journal, track$, saved$ } = handle;
  const save$ = open.save$();
  const calls = journal !== undefined && isStoreOfCalls(journal.store) ? journal.store : undefined;
  const claiming = { agent, session: handle.session, calls, save$ };
  const session = handle.session.with(claimingResults(claiming));
  // Calls of another handle would not be saved.
  const { with: _, ...own } = session;
  const clear$ = open.use$(concat(session.clear$(), save$.pipe(ignoreElements())));
  const close$ = open.close$();
  const saveState$ = (): Observable<SessionState> => open.use$(session.saveState$());
  const loadState$ = (state: unknown): Observable<never> =>
    open.use$(session.loadState$(state), true);
  const cancelSuspended$ = (reason?: string): Observable<number> =>
    defer(() => {
      open.assertOpen();
      const free$ = cancellable$(claiming, handle.isHere);
      const cancel$ = concat(free$, session.cancelSuspended$(reason));
      return open.use$(saved$(cancel$.pipe(savedIfAny(save$))));
    });
  const callable = toCallable<Output, Run>(
    (input, options: CallOptions & SessionCallOptions, view) => {
      // Made once: what subscribes again asks again with the same message.
      const stream$ = session.stream$(input, options);
      const call$ = session.call$(input, options);
      return defer(() => {
        open.assertOpen();
        return view({
          events$: open.use$(saved$(track$(() => stream$).pipe(saveAfterStream(save$)))),
          reply$: open.use$(saved$(track$(() => call$).pipe(saveBeforeReply(save$)))),
        });
      });
    },
    callRules,
  );
  return {
    ...own,
    ...callable,
    ...resumableSession({ ...handle, session, open }),
    memory: openMemory(session.memory, open),
    get title() {
      return open.settable.title;
    },
    rename: (title) => {
      checkTitle(title);
      open.settable.rename(title);
    },
    toolkit: liveToolkit({
      get current() {
        return open.settable.toolkit.current;
      },
      set current(toolkit) {
        open.settable.toolkit.current = toolkit;
      },
    }),
    saveState$,
    saveState: () => firstValueFrom(saveState$()),
    loadState$,
    loadState: (state) => lastValueFrom(loadState$(state), { defaultValue: undefined }),
    get version() {
      return open.version;
    },
    save$: () => save$,
    save: () => firstValueFrom(save$),
    cancelSuspended$,
    cancelSuspended: (reason) => firstValueFrom(cancelSuspended$(reason)),
    clear$: () => clear$,
    clear: () => lastValueFrom(clear$, { defaultValue: undefined }),
    close$: () => close$,
    close: () => lastValueFrom(close$, { defaultValue: undefined }),
  };
};

/** The memory of a session that is opened again if it was closed because it was idle. */
const openMemory = (memory: Memory, open: OpenSession): Memory => {
  const { last$, branches$, moveHead$, remove$, replace$ } = wholeOf(memory);
  const read$ = <T>(work: () => Observable<T>): Observable<T> => open.use$(defer(work));
  const change$ = <T>(work: () => Observable<T>): Observable<T> => open.use$(defer(work), true);
  return {
    load$: (options) => read$(() => memory.load$(options)),
    append$: (messages, options) => change$(() => memory.append$(messages, options)),
    ...(last$ && { last$: (options) => read$(() => last$(options)) }),
    ...(branches$ && { branches$: (at) => read$(() => branches$(at)) }),
    ...(moveHead$ && { moveHead$: (to) => change$(() => moveHead$(to)) }),
    ...(remove$ && { remove$: (at) => change$(() => remove$(at)) }),
    all$: () => read$(() => kept$(memory)),
    ...(replace$ && { replace$: (tree) => change$(() => replace$(tree)) }),
  };
};

const savedIfAny = (save$: Observable<unknown>): MonoTypeOperatorFunction<number> =>
  concatMap((count: number) => (count === 0 ? of(0) : save$.pipe(map(() => count))));
