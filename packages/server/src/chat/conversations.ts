import {
  type Agent,
  type AgentEvent,
  type Demand,
  type Input,
  isEvent,
  isMillraceError,
  type Message,
  MillraceError,
} from '@millrace/core';
import {
  attach$,
  type CallStore,
  calls$,
  journal,
  prune$,
  type ReadableCall,
  replay$,
} from '@millrace/core/journal';
import {
  keepSessions,
  type KeptSession,
  type SessionState,
  type SessionStore,
} from '@millrace/core/sessions';
import {
  AsyncSubject,
  catchError,
  concat,
  concatMap,
  defer,
  distinct,
  EMPTY,
  filter,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  pairwise,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { asked$, questionOf, type Run } from './question.js';

/** The fate of a call whose last reader has gone: it continues, it is interrupted, or it is cut and forgotten. */
export type OnDisconnect = 'continue' | 'interrupt' | 'abort';

export interface ConversationsOptions {
  readonly store: { readonly calls: CallStore; readonly sessions: SessionStore };
  readonly onDisconnect: OnDisconnect;
  readonly maxCalls: number;
  /** Ended calls are removed from the store this long after their end, in milliseconds. */
  readonly keepCallsMs: number;
  /** Called with the error of a call, once, even if it has no reader, and with errors of the store. */
  readonly report: (error: MillraceError, callId?: string) => void;
}

/** A request of a client for a call. */
export interface Asked {
  readonly input: Input;
  /** The call that the conversation continues after: later messages are taken back. `''`: all are. */
  readonly after?: string | undefined;
  /** The place of the answer in the client, for clients that follow the call later. */
  readonly client?: Run['client'];
}

/** The conversations of an agent. Their calls run on their own: readers come and go. */
export interface Conversations {
  /** Starts a call, and emits its id once it runs or waits in the queue of its session. */
  start$(sessionId: string, asked: Asked): Observable<string>;
  /** Follows a call of a session from its first event. Errors with `invalidResume` (404) if it has no such call. */
  follow$(sessionId: string, callId: string, demand: Demand): Observable<AgentEvent>;
  /** Emits the events of a call that took back what was shown before: discarded attempts, and errors before it was resumed. */
  takenBack$(callId: string): Observable<readonly AgentEvent[]>;
  /** Emits the calls of a session that have not ended, or are not saved yet, the running one first. */
  runs$(sessionId: string): Observable<readonly Run[]>;
  /** Interrupts the calls of a session; returns their number. */
  stop(sessionId: string): number;
  /** Adds a message to the running call, and emits whether it was delivered. */
  steer$(sessionId: string, input: Input): Observable<boolean>;
  /** The messages of the calls that have ended. */
  messages$(sessionId: string): Observable<readonly Message[]>;
  /** Drains the calls, and completes. They are resumed when the store is opened again. */
  close$(timeoutMs?: number): Observable<never>;
}

interface OpenRun extends Run {
  question: readonly Message[];
  readonly session: KeptSession;
  readonly stop$: Subject<void>;
  readonly over$: AsyncSubject<void>;
  readers: number;
  /** Whether its last event has come. It is saved after that. */
  hasEnded: boolean;
}

const pruneEveryMs = 3_600_000;
const waitMs = 10_000;

export const createConversations = (
  agent: Agent,
  { store, onDisconnect, maxCalls, keepCallsMs, report }: ConversationsOptions,
): Conversations => {
  const durable = journal(store.calls);
  const kept = keepSessions(agent, store.sessions, { journal: durable });
  const runs = new Map<string, OpenRun>();
  /** Sessions whose calls of earlier processes have been resumed. */
  const resumed = new Map<string, Observable<unknown>>();
  const work$ = new Subject<Observable<unknown>>();
  const closed$ = new Subject<void>();

  const reportAs =
    (callId?: string) =>
    (cause: unknown): Observable<never> => {
      report(asError(cause), callId);
      return EMPTY;
    };

  const begin = (
    callId: string,
    session: KeptSession,
    { question = [], client }: Partial<Pick<Run, 'question' | 'client'>> = {},
  ): OpenRun => {
    const run = {
      callId,
      sessionId: session.id,
      session,
      question,
      client,
      stop$: new Subject<void>(),
      over$: new AsyncSubject<void>(),
      readers: 0,
      hasEnded: false,
    };
    runs.set(callId, run);
    return run;
  };
  const end = (run: OpenRun): void => {
    run.hasEnded = true;
    runs.delete(run.callId);
    run.over$.next();
    run.over$.complete();
  };
  const see = (run: OpenRun, event: AgentEvent): void => {
    if (event.callId !== run.callId) return;
    if (isEvent(event, 'preCall')) run.question = event.input;
    if (isEvent(event, 'postCall', 'error')) run.hasEnded = true;
  };
  const leave = (run: OpenRun): void => {
    run.readers -= 1;
    if (run.readers > 0 || run.hasEnded || onDisconnect === 'continue') return;
    if (onDisconnect === 'interrupt') run.session.interrupt('The client has left.', run.callId);
    else abort(run);
  };
  /** Cuts a call. Its record is removed, because it would be resumed. */
  const abort = ({ callId, over$, stop$ }: OpenRun): void => {
    work$.next(over$.pipe(concatMap(() => store.calls.driver.remove$(callId))));
    stop$.next();
  };

  /** Continues the calls of a session that another process has left, one after the other. Emits when the first one runs. */
  const resumed$ = (session: KeptSession): Observable<unknown> => {
    const { id } = session;
    const known$ = resumed.get(id);
    if (known$ !== undefined) return known$;
    const ready$ = new AsyncSubject<unknown>();
    resumed.set(id, ready$);
    let run: OpenRun | undefined;
    work$.next(
      session.resumeStream$().pipe(
        tap((event) => {
          if (event.parentId === undefined && run?.callId !== event.callId) {
            if (run !== undefined) end(run);
            run = begin(event.callId, session);
          }
          if (run !== undefined) see(run, event);
          ready$.complete();
        }),
        catchError(reportAs()),
        finalize(() => {
          if (run !== undefined) end(run);
          ready$.complete();
        }),
      ),
    );
    return ready$;
  };
  const opened$ = (sessionId: string): Observable<KeptSession> =>
    kept
      .open$(sessionId)
      .pipe(concatMap((session) => concat(resumed$(session).pipe(ignoreElements()), of(session))));

  const stop = (sessionId: string): number => {
    const open = ofSession(sessionId);
    // Those that wait first: otherwise the next one would begin.
    return open.toReversed().filter(({ session, callId }) => session.interrupt(undefined, callId))
      .length;
  };
  const ofSession = (sessionId: string): readonly OpenRun[] =>
    [...runs.values()].filter((run) => run.sessionId === sessionId);

  const rewound$ = (session: KeptSession, after: string): Observable<never> =>
    defer(() => {
      const open = ofSession(session.id);
      stop(session.id);
      return concat(
        ...open.map(({ over$ }) => over$.pipe(ignoreElements())),
        session
          .saveState$()
          .pipe(concatMap((state) => session.loadState$(stateAfter(state, after)))),
        session.save$().pipe(ignoreElements()),
      );
    });

  const call$ = (session: KeptSession, { input, client }: Asked): Observable<string> =>
    defer(() => {
      const begun$ = new AsyncSubject<string>();
      const callId = newCallId();
      const run = begin(callId, session, { question: questionOf(callId, input), client });
      let isBegun = false;
      work$.next(
        session.stream$(input, { callId, onBusy: 'queue' }).pipe(
          takeUntil(run.stop$),
          tap((event) => {
            see(run, event);
            isBegun = true;
            begun$.next(callId);
            begun$.complete();
          }),
          catchError((error: unknown) => {
            if (isBegun) return reportAs(callId)(error);
            // The client that asked gets it.
            begun$.error(asError(error));
            return EMPTY;
          }),
          finalize(() => {
            end(run);
            begun$.complete();
          }),
        ),
      );
      const queued$ = session.queue.calls$.pipe(
        filter((calls) => calls.some((queued) => queued.callId === callId)),
        map(() => callId),
        takeUntil(run.over$),
      );
      return merge(begun$, queued$).pipe(take(1));
    });

  work$
    .pipe(
      mergeMap((it$) => it$.pipe(catchError(reportAs()))),
      takeUntil(closed$),
    )
    .subscribe();
  let prunedAt = 0;
  /** No timer keeps the process alive: each call looks whether it is time. */
  const prune = (): void => {
    const now = Date.now();
    if (now - prunedAt < pruneEveryMs) return;
    prunedAt = now;
    work$.next(prune$(store.calls, { olderThanMs: keepCallsMs }));
  };
  work$.next(
    calls$(store.calls).pipe(
      filter((call): call is ReadableCall => call.status === 'unfinished'),
      filter((call) => call.agent === agent.name),
      mergeMap(({ sessionId }) => (sessionId === undefined ? [] : [sessionId])),
      distinct(),
      mergeMap((sessionId) => opened$(sessionId).pipe(catchError(reportAs())), 4),
    ),
  );

  return {
    stop,
    runs$: (sessionId) =>
      opened$(sessionId).pipe(
        concatMap(() =>
          from(ofSession(sessionId)).pipe(
            concatMap((run) => asked$(store.calls, run)),
            toArray(),
          ),
        ),
      ),
    start$: (sessionId, asked) =>
      defer(() => {
        if (runs.size >= maxCalls) throw tooMany(maxCalls);
        prune();
        return opened$(sessionId).pipe(
          concatMap((session) =>
            concat(
              asked.after === undefined ? EMPTY : rewound$(session, asked.after),
              call$(session, asked),
            ),
          ),
        );
      }),
    follow$: (sessionId, callId, demand) =>
      defer(() => {
        const run = runs.get(callId);
        if (run !== undefined) run.readers += 1;
        return attach$(store.calls, callId, {
          demand,
          waitMs: run === undefined ? 0 : waitMs,
        }).pipe(
          catchError((error: unknown) => throwError(() => notFoundOr(asError(error)))),
          tap((event) => {
            if (event.callId === callId && event.sessionId !== sessionId) throw noSuchCall();
          }),
          finalize(() => {
            if (run !== undefined) leave(run);
          }),
        );
      }),
    takenBack$: (callId) =>
      replay$(store.calls, callId, { speed: Infinity }).pipe(
        pairwise(),
        // An error that is the last event is the end.
        map(([event]) => event),
        filter(
          ({ type, callId: of }) =>
            type === 'messageDiscarded' || (type === 'error' && of === callId),
        ),
        toArray(),
        catchError(() => of([])),
      ),
    steer$: (sessionId, input) =>
      opened$(sessionId).pipe(
        concatMap((session) => session.steer$(input)),
        map(({ status }) => status === 'delivered'),
      ),
    messages$: (sessionId) =>
      opened$(sessionId).pipe(
        concatMap((session) => session.saveState$()),
        map(({ messages }) => messages),
      ),
    close$: (timeoutMs = 30_000) =>
      concat(
        kept.drain$({ timeoutMs }).pipe(ignoreElements()),
        defer(() => {
          closed$.next();
          return EMPTY;
        }),
      ),
  };
};

/** The state with only the messages up to the end of a call, and of the calls that brought results for its tools. */
const stateAfter = (state: SessionState, after: string): SessionState => {
  const last = state.messages.findLastIndex(({ id }) => id.startsWith(`${after}/`));
  if (after !== '' && last === -1) {
    throw new MillraceError(
      'conflict',
      `The conversation has no call '${after}', so it cannot continue after it.`,
      { status: 409, userMessage: 'The conversation has changed. Load it again.' },
    );
  }
  const next = state.messages.findIndex(({ role }, at) => at > last && role === 'user');
  const messages = next === -1 ? state.messages : state.messages.slice(0, next);
  return { ...state, messages, approvals: [], interrupted: false };
};

const tooMany = (maxCalls: number): MillraceError =>
  new MillraceError('busy', `The limit of ${maxCalls} calls ('maxCalls') is reached.`, {
    status: 503,
    userMessage: 'The server is busy. Try again later.',
  });

const noSuchCall = (): MillraceError =>
  new MillraceError('invalidResume', 'The conversation has no such call.', {
    status: 404,
    userMessage: 'There is no such answer.',
  });

const notFoundOr = (error: MillraceError): MillraceError =>
  error.code === 'invalidResume' ? noSuchCall() : error;

const asError = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('unknown', cause instanceof Error ? cause.message : String(cause), {
        cause,
      });

const newCallId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);
