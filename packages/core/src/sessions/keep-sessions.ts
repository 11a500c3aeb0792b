import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  throwError,
} from 'rxjs';
import type { Agent, SessionOptions } from '../agent.js';
import { toCallable } from '../callable.js';
import { misuse, toMillraceError } from '../errors.js';
import { having } from '../options.js';
import type { Session } from '../session.js';
import { createOpenSessions, type OpenSession } from './open-session.js';
import type { SessionStore } from './session-store.js';

/** The sessions of an agent whose states a store keeps. */
export interface KeptSessions<out Output = unknown> {
  /**
   * Opens a session: loads its state where the store has one, and emits a handle. One that is open already goes on as it is. Errors as `loadState$` does, and with
   * `store` where the store fails. Cold.
   */
  open$(sessionId: string, options?: SessionOptions): Observable<KeptSession<Output>>;
  /** The Promise form of `open$`. */
  open(sessionId: string, options?: SessionOptions): Promise<KeptSession<Output>>;
}

/**
 * A session whose state is saved after each of its calls, whatever their end: a reply is emitted, and a stream completes, when it is saved. A call whose state
 * cannot be saved errors with `conflict` or `store`, but where it has failed itself. A call that is left is not waited for, and is saved with the next one.
 */
export interface KeptSession<out Output = unknown> extends Session<Output> {
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

/**
 * Keeps the sessions of an agent in a store. The memory of the agent holds the messages of those that are open, and is emptied when they are closed: leave it to be the one in
 * this process. Between processes, the last one to save what it has loaded gets a `conflict`: nothing that was saved is lost, and the work of its call is not kept.
 */
export const keepSessions = <Output>(
  agent: Agent<Output>,
  store: SessionStore,
): KeptSessions<Output> => {
  if (!having('session', '')[0](agent)) throw misuse('keepSessions() needs an agent.');
  if (!['load$', 'save$'].every((method) => having(method, '')[0](store))) {
    throw misuse('keepSessions() needs a store of sessions, such as inProcessSessions() makes.');
  }
  const opened$ = createOpenSessions(store);
  const open$: KeptSessions<Output>['open$'] = (sessionId, options) =>
    defer(() => {
      const session = agent.session(sessionId, options);
      return opened$(session).pipe(map((open) => kept(session, open)));
    });
  return {
    open$,
    open: (sessionId, options) => firstValueFrom(open$(sessionId, options)),
  };
};

const kept = <Output>(session: Session<Output>, open: OpenSession): KeptSession<Output> => {
  const save$ = open.save$(session);
  const close$ = open.close$(session);
  const callable = toCallable<Output>(
    (input, options, view) =>
      defer(() => {
        open.assertOpen();
        return view({
          events$: session
            .stream$(input, options)
            .pipe((event$) => concat(event$, save$.pipe(ignoreElements())), savedWhenFailed(save$)),
          reply$: session.call$(input, options).pipe(
            concatMap((reply) => save$.pipe(map(() => reply))),
            savedWhenFailed(save$),
          ),
        });
      }),
    true,
  );
  return {
    ...session,
    ...callable,
    get version() {
      return open.version;
    },
    save$: () => save$,
    save: () => firstValueFrom(save$),
    close$: () => close$,
    close: () => lastValueFrom(close$, { defaultValue: undefined }),
  };
};

/** What a failed call has left in memory is a part of the session. The call's own error is the one to hear of. */
const savedWhenFailed =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (seen$) =>
    seen$.pipe(
      catchError((cause: unknown) => {
        const error = toMillraceError(cause);
        const error$ = throwError(() => error);
        if (hasNoPart.includes(error.code)) return error$;
        return concat(
          save$.pipe(
            ignoreElements(),
            catchError(() => EMPTY),
          ),
          error$,
        );
      }),
    );

/** It has never run, or could not be saved. */
const hasNoPart: readonly string[] = ['busy', 'queueFull', 'conflict', 'store'];
