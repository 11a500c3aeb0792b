import {
  concatMap,
  defer,
  firstValueFrom,
  lastValueFrom,
  map,
  type Observable,
  race,
  take,
  timer,
} from 'rxjs';
import type { Agent, SessionOptions } from '../agent.js';
import { toCallable } from '../callable.js';
import { misuse } from '../errors.js';
import type { Drainable } from '../journal/draining.js';
import { isStoreOfCalls, type StoreOfCalls } from '../journal/stored-call.js';
import { checkOptions, having } from '../options.js';
import type { Session } from '../session.js';
import { createOpenSessions, type OpenSession } from './open-session.js';
import { createPendingWork } from './pending-work.js';
import { resumableSession, type ResumableSession, type Resuming } from './resumable-session.js';
import { savedBehind, savedWithReply } from './saved.js';
import type { SessionStore } from './session-store.js';

/** The sessions of an agent whose states a store keeps. */
export interface KeptSessions<out Output = unknown> extends Drainable {
  /**
   * Opens a session: loads its state where the store has one, and emits a handle. One that is open already goes on as it is. Errors as `loadState$` does, and with
   * `store` where the store fails. Cold.
   */
  open$(sessionId: string, options?: SessionOptions): Observable<KeptSession<Output>>;
  /** The Promise form of `open$`. */
  open(sessionId: string, options?: SessionOptions): Promise<KeptSession<Output>>;
  /** Drains the agent, and emits when the sessions of its calls are saved, too: the process can end then. A save that takes longer than `timeoutMs` is not waited for. Cold. */
  readonly drain$: Drainable['drain$'];
}

/**
 * A session whose state is saved after each of its calls, whatever their end: a reply is emitted, and a stream completes, when it is saved. A call whose state
 * cannot be saved errors with `conflict` or `store`, but where it has failed itself. A call that is left is not waited for, and is saved with the next one.
 */
export interface KeptSession<out Output = unknown>
  extends Session<Output>, ResumableSession<Output> {
  /** The version that it has in the store; `undefined`, before it is first saved. */
  readonly version: number | undefined;
  /**
   * Saves it as it is now, and emits the new version. Errors with `conflict` where the store has another version by now: this handle is then of no more
   * use, and the session is to be opened again. Cold.
   */
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
  /** The store of calls that is the journal of the agent: with it, sessions can go on with calls that were broken off. Default: none. */
  readonly calls?: StoreOfCalls;
}

/**
 * Keeps the sessions of an agent in a store. The memory of the agent holds the messages of those that are open: it gets them when they are opened, and is emptied when they are closed. The one in
 * this process is enough; the stored ones serve as well, and have each message written twice. One without `replace$` is refused with `config` when a session is opened. Between processes, the last one to save what it has loaded gets a `conflict`: nothing that was saved is lost, and the work of its call is not kept.
 */
export const keepSessions = <Output>(
  agent: Agent<Output>,
  store: SessionStore,
  options: KeepSessionsOptions = {},
): KeptSessions<Output> => {
  if (!having('session', '')[0](agent)) throw misuse('keepSessions() needs an agent.');
  if (!['load$', 'save$'].every((method) => having(method, '')[0](store))) {
    throw misuse('keepSessions() needs a store of sessions, such as inProcessSessions() makes.');
  }
  checkOptions('keepSessions()', options, { calls: isStoreOfCalls });
  const saving = createPendingWork();
  const opened$ = createOpenSessions(store, saving);
  const open$: KeptSessions<Output>['open$'] = (sessionId, given) =>
    defer(() => {
      const session = agent.session(sessionId, given);
      if (session.memory.replace$ === undefined) throw ofFixedMemory();
      const place = { agent, session, calls: options.calls, context: given?.context ?? [] };
      return opened$(session).pipe(map((open) => kept(place, open)));
    });
  const drain$: Drainable['drain$'] = (given = {}) => {
    const { timeoutMs = 30_000, scheduler } = given;
    return agent.drain$(given).pipe(
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
    "keepSessions() needs sessions whose messages can be replaced, and the memory of this agent has no 'replace$'. The store of sessions holds the messages: leave 'memory' out of createAgent(), or put one around inProcessMemory(). A memory that outlasts the process itself needs no keepSessions().",
  );

const kept = <Output>(
  place: Omit<Resuming<Output>, 'open'> & { readonly session: Session<Output> },
  open: OpenSession,
): KeptSession<Output> => {
  const { session } = place;
  const save$ = open.save$(session);
  const close$ = open.close$(session);
  const callable = toCallable<Output>(
    (input, options, view) =>
      defer(() => {
        open.assertOpen();
        return view({
          events$: session.stream$(input, options).pipe(savedBehind(save$)),
          reply$: session.call$(input, options).pipe(savedWithReply(save$)),
        });
      }),
    true,
  );
  return {
    ...session,
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
