import {
  type Agent,
  type AgentEvent,
  type CallOptions,
  type Demand,
  inProcessMemory,
  type Input,
  type Message,
  type MillraceError,
  restoreAsyncContext,
} from '@millrace/core';
import { defined } from '@millrace/core/values';
import { type CallStore, journal, prune$ } from '@millrace/core/journal';
import { keepSessions, type KeptSession, type SessionStore } from '@millrace/core/sessions';
import {
  AsyncSubject,
  BehaviorSubject,
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  endWith,
  filter,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  retry,
  Subject,
  take,
  takeUntil,
  takeWhile,
  tap,
  throwIfEmpty,
  timer,
  toArray,
} from 'rxjs';
import { asError, closing, once, refused, sessionsOf, tooMany } from './guard.js';
import { assertForClient, resultsIn } from '../inbound.js';
import type { UserLimits } from '../limits/index.js';
import { aloneCall$, type AskedAlone } from './alone.js';
import { pastOf$ } from './past.js';
import {
  nothingShown,
  type ShownConversation,
  shownOf,
  withQuestion$,
} from './shown-conversation.js';
import { type Collection, createCollection, type TitleOf } from './collection.js';
import { callOfRequest$, type RepeatableRequest, statusOf$ } from './same-request.js';
import { createReading, type Reading } from './reading.js';
import { createPlaces, type Placed, type PlacesOptions, type Placing, tree$ } from './places.js';
import { createOpenSessions } from './open-sessions.js';
import type { ProcessStore } from './process-store.js';
import { contentOf, createRuns, type OnDisconnect, type OpenRun } from './runs.js';

export interface ConversationsOptions extends PlacesOptions {
  readonly onSuspended?: 'cancel' | 'refuse' | undefined;
  readonly store: { readonly calls: CallStore; readonly sessions: SessionStore };
  readonly onDisconnect: OnDisconnect;
  readonly maxCalls: number;
  readonly limits?: UserLimits | undefined;
  /** Ended calls are removed from the store this long after their end, in milliseconds. */
  readonly keepCallsMs: number;
  /** Without a store: what this process keeps, and up to how many bytes of it. */
  readonly room?: { readonly kept: ProcessStore; readonly maxBytes: number } | undefined;
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly title?: TitleOf | undefined;
  /** Called with the error of a call, once, even if it has no reader, and with errors of the store. */
  readonly report: (error: MillraceError, callId?: string) => void;
}

/** A request of a client for a call. */
export interface Asked extends Placing, RepeatableRequest, Pick<CallOptions, 'request'> {
  readonly metadata: Readonly<Record<string, string>>;
  /** It continues when its readers have gone: `onDisconnect` has no effect. */
  readonly continues?: boolean;
}

/** A call that has not ended, with its question. */
export interface Run {
  readonly callId: string;
  readonly question: readonly Message[];
}

export interface AloneCall {
  /** Runs the call. Cold. */
  readonly event$: (demand?: Demand) => Observable<AgentEvent>;
  /** Gives its place back. */
  readonly free: () => void;
}

/** The conversations of an agent. Their calls run on their own: readers come and go. */
export interface Conversations extends Reading, Collection {
  /** Takes a place for a call without a conversation. Throws `busy` above `maxCalls`. */
  alone(asked: AskedAlone): AloneCall;
  /** Starts a call, and emits its id once it runs or waits in the queue of its session. */
  start$(sessionId: string, asked: Asked): Observable<string>;
  /** Counts a reader of a call; returns the function to call once it has left, or has read to the end. */
  join(sessionId: string, callId: string): (how: 'ended' | 'cancelled') => void;
  /** Emits the calls of a session that have not ended, or are not saved yet, the running one first. */
  runs$(sessionId: string): Observable<readonly Run[]>;
  /** Interrupts the calls of a session, or only this one, else cancels what waits for a result, and emits their number. */
  stop$(sessionId: string, callId?: string): Observable<number>;
  /** Adds a message to the running call, and emits whether it was delivered. */
  steer$(sessionId: string, input: Input): Observable<boolean>;
  /** The messages of the calls that have ended, on the branch that is continued by default. */
  messages$(sessionId: string): Observable<readonly Message[]>;
  /** Emits a conversation as a client shows it: the branch that is continued by default, or that of a message. */
  shown$(sessionId: string, at?: string): Observable<ShownConversation>;
  /** Refuses new calls, drains the running ones, and completes. They are resumed when the store is opened again. */
  close$(timeoutMs?: number): Observable<never>;
}

const hourMs = 3_600_000;

export const createConversations = (agent: Agent, options: ConversationsOptions): Conversations => {
  const { store, onDisconnect, maxCalls, limits, keepCallsMs, report } = options;
  const durable = journal(store.calls);
  // Sessions with the same memory function would be those of another server, too.
  const memory = inProcessMemory();
  const kept = keepSessions(agent, store.sessions, { journal: durable, memory });
  const work$ = new Subject<Observable<unknown>>();
  /** Work of the server itself: it runs in the async context of the server, not in that of the user whose call brought it up. */
  const ownWork$ = new Subject<Observable<unknown>>();
  const closed$ = new Subject<void>();
  let status: 'open' | 'closing' | 'closed' = 'open';
  /** The number of calls that begin, or have no conversation. */
  const taken$ = new BehaviorSubject(0);
  let prunedAt = 0;

  /** Takes one of the places for calls; returns the function that gives it back. */
  const takePlace = ({ metadata }: Pick<Asked, 'metadata'>): (() => void) => {
    if (status !== 'open') throw closing();
    if (runs.size + taken$.value >= maxCalls) throw tooMany(maxCalls);
    const { userId } = metadata;
    const own = sessionsOf(userId);
    const free = limits?.(
      userId ?? '',
      runs.all().filter(({ session }) => session.id.startsWith(own)).length,
    );
    taken$.next(taken$.value + 1);
    return once(() => {
      free?.();
      taken$.next(taken$.value - 1);
    });
  };
  /** Completes once a call that was cut has no writer, within a second: the next server must not take it for one that runs. */
  const released$ = ({ callId }: OpenRun): Observable<never> =>
    store.calls.driver.claim$(callId).pipe(
      take(1),
      retry({ count: 100, delay: 10 }),
      ignoreElements(),
      catchError(() => EMPTY),
    );
  const reportAs =
    (callId?: string) =>
    (cause: unknown): Observable<never> => {
      report(asError(cause), callId);
      return EMPTY;
    };
  const runs = createRuns(onDisconnect, ({ callId, over$ }) => {
    // Its record is removed, because it would be resumed.
    work$.next(over$.pipe(concatMap(() => store.calls.driver.remove$(callId))));
  });

  const { opened$, existing$, recovered$, lookAgain, forget } = createOpenSessions({
    agent,
    store,
    kept,
    runs,
    report,
    work: (it$) => {
      work$.next(it$);
    },
    ...(options.room && { used: options.room.kept.use }),
    assertOpen: () => {
      if (status === 'closed') throw closing();
      return status === 'open';
    },
  });

  const locks = new Map<string, Observable<never>>();
  /** Runs one piece of work after another for a session. */
  const inTurn$ = <T>(sessionId: string, work: () => Observable<T>): Observable<T> =>
    defer(() => {
      const before$ = locks.get(sessionId) ?? EMPTY;
      const done$ = new AsyncSubject<never>();
      locks.set(sessionId, done$);
      let hasWaited = false;
      const over = (): void => {
        done$.complete();
        if (locks.get(sessionId) === done$) locks.delete(sessionId);
      };
      const turn$ = defer(() => {
        hasWaited = true;
        return work();
      });
      return concat(before$.pipe(restoreAsyncContext()), turn$).pipe(
        finalize(() => {
          // One that leaves the line early is over when those before it are.
          if (hasWaited) over();
          else work$.next(before$.pipe(finalize(over)));
        }),
      );
    });

  const places = createPlaces(runs, options);
  const shown$ = (sessionId: string, at?: string): Observable<ShownConversation> =>
    existing$(sessionId).pipe(
      concatMap((session) =>
        tree$(session).pipe(map((tree) => shownOf(tree, runs.ofSession(sessionId), at))),
      ),
      concatMap((shown) => withQuestion$(store.calls, shown)),
      defaultIfEmpty(nothingShown),
    );
  const { titles, ...collection } = createCollection({
    ...{ store, runs, existing$, shown$, inTurn$ },
    title: options.title,
    forget,
  });
  const call$ = (
    session: KeptSession,
    { input: brought, metadata, request, continues }: Asked,
    { after, replaces, question, unsent }: Placed,
    callId: string,
    free: () => void,
  ): Observable<string> =>
    defer(() => {
      const begun$ = new AsyncSubject<string>();
      // A client may name a question to be asked again, without its content.
      const given = brought === '' && question !== undefined ? question : brought;
      const content = contentOf(given);
      const input: Input =
        unsent.length === 0 || content === undefined
          ? given
          : [...unsent, { role: 'user', content }];
      const isNew = session.version === undefined;
      titles.begun(session, content);
      const run = runs.begin(callId, session, { input: given, after, replaces });
      if (isNew) {
        work$.next(run.over$.pipe(concatMap(() => titles.answered$(session))));
      }
      // It is counted as a run now.
      free();
      if (continues === true) runs.join(session.id, callId);
      let isBegun = false;
      const begin = (): void => {
        isBegun = true;
        begun$.next(callId);
        begun$.complete();
      };
      work$.next(
        session
          .stream$(input, {
            ...defined({ request, after, replaces, onSuspended: options.onSuspended }),
            callId,
            onBusy: 'queue',
            metadata,
          })
          .pipe(
            tap((event) => {
              // An error before all other events is that of the start: there is nothing to follow.
              if (event.type !== 'error') begin();
            }),
            catchError((error: unknown) => {
              run.failure = asError(error);
              // Its record is unfinished: once the store works again, the call is resumed.
              if (run.failure.code === 'store') lookAgain();
              // Another server has saved the conversation: this call is added to what that one has saved.
              if (run.failure.code === 'conflict') {
                forget(session.id);
                ownWork$.next(
                  run.over$.pipe(
                    ignoreElements(),
                    endWith(undefined),
                    concatMap(() => inTurn$(session.id, () => opened$(session.id))),
                  ),
                );
              }
              // The client that asked gets it.
              if (!isBegun) begun$.error(run.failure);
              return isBegun ? reportAs(callId)(error) : EMPTY;
            }),
            runs.tracked(run),
            finalize(() => {
              begun$.complete();
            }),
          ),
      );
      const queued$ = session.queue.calls$.pipe(
        filter((calls) => calls.some((queued) => queued.callId === callId)),
        tap(begin),
        map(() => callId),
        takeUntil(run.over$),
      );
      return merge(begun$, queued$).pipe(take(1));
    });

  /** A call that waits for approval ends if its user writes something else: the new one would wait for it. */
  const cancelAsked = (session: KeptSession, { input }: Asked, { after }: Placed): void => {
    if (contentOf(input) === undefined) return;
    const waiting = runs
      .ofSession(session.id)
      .filter(({ callId, asked }) => asked.size > 0 && (after === undefined || after === callId));
    if (waiting.length > 0 && options.onSuspended === 'refuse') {
      throw refused(409, 'The conversation waits for an approval. Decide on it first.');
    }
    for (const { callId } of waiting) session.interrupt(undefined, callId);
  };

  /** Begins a call at its place. The record of a call refuses another one with its id: it has begun in another process. */
  const placed$ = (
    session: KeptSession,
    request: Asked,
    callId: string,
    free: () => void,
  ): Observable<string> =>
    places.place$(session, request).pipe(
      concatMap((placed) => {
        const settles = contentOf(request.input) !== undefined && options.onSuspended !== 'refuse';
        assertForClient(placed.path, resultsIn(request.input), settles);
        cancelAsked(session, request, placed);
        for (const replaced of placed.replacedRuns) runs.stop(session.id, replaced);
        return call$(session, request, placed, callId, free);
      }),
      catchError((error: unknown) => {
        if (asError(error).code !== 'conflict') throw error;
        return statusOf$(store.calls, callId).pipe(
          map((status) => {
            if (status === 'unknown') throw error;
            return callId;
          }),
        );
      }),
    );

  /** No timer keeps the process alive: each call looks whether it is time. */
  const prune = (): void => {
    const now = Date.now();
    if (now - prunedAt < Math.min(hourMs, keepCallsMs)) return;
    prunedAt = now;
    ownWork$.next(prune$(store.calls, { olderThanMs: keepCallsMs }));
  };

  /** Removes the conversations that were used least recently until the others have room. The last one stays. */
  const madeRoom$: Observable<never> = defer(() => {
    const { room } = options;
    if (room === undefined || room.kept.bytes <= room.maxBytes) return EMPTY;
    const idle = leastRecent(room.kept.ids(), (id) => runs.ofSession(id).length === 0);
    return idle === undefined ? EMPTY : concat(collection.removeIdle$(idle), madeRoom$);
  });

  merge(work$, ownWork$.pipe(restoreAsyncContext()))
    .pipe(
      mergeMap((it$) => it$.pipe(catchError(reportAs()))),
      takeUntil(closed$),
    )
    .subscribe();
  work$.next(recovered$);
  work$.next(runs.changed$.pipe(concatMap(() => madeRoom$.pipe(catchError(reportAs())))));
  work$.next(
    (store.calls.written$ ?? EMPTY).pipe(
      tap(([callId, seq]) => {
        runs.get(callId)?.tail.written(seq);
      }),
    ),
  );

  return {
    ...createReading(store.calls, runs),
    ...collection,
    join: (sessionId, callId) => runs.join(sessionId, callId),
    // After a call that is being started.
    stop$: (sessionId, callId) =>
      inTurn$(sessionId, () => existing$(sessionId)).pipe(
        concatMap((session) => {
          const stopped = runs.stop(sessionId, callId);
          return stopped > 0 || callId !== undefined ? of(stopped) : session.cancelSuspended$();
        }),
        defaultIfEmpty(0),
      ),
    runs$: (sessionId) =>
      existing$(sessionId).pipe(
        concatMap(() =>
          from(runs.ofSession(sessionId)).pipe(
            concatMap(({ callId, question }) =>
              question.length > 0
                ? of({ callId, question })
                : pastOf$(store.calls, callId).pipe(
                    map((past) => ({ callId, question: past.question })),
                  ),
            ),
            toArray(),
          ),
        ),
        defaultIfEmpty([]),
      ),
    start$: (sessionId, request) =>
      defer(() => {
        const free = takePlace(request);
        prune();
        return inTurn$(sessionId, () =>
          opened$(sessionId).pipe(
            concatMap((session) =>
              tree$(session).pipe(
                concatMap((tree) =>
                  callOfRequest$(request, { sessionId, tree, runs, calls: store.calls }),
                ),
                concatMap(({ callId, isKnown }) =>
                  isKnown ? of(callId) : placed$(session, request, callId, free),
                ),
              ),
            ),
          ),
        ).pipe(takeUntil(closed$), throwIfEmpty(closing), finalize(free));
      }),
    alone: (asked) => ({
      free: takePlace(asked),
      event$: (demand) =>
        aloneCall$(agent, newAloneId(), { ...asked, ...(demand && { demand }) }, report).pipe(
          takeUntil(closed$),
        ),
    }),
    steer$: (sessionId, input) =>
      existing$(sessionId).pipe(
        concatMap((session) => session.steer$(input)),
        map(({ status: outcome }) => outcome === 'delivered'),
        defaultIfEmpty(false),
      ),
    shown$,
    messages$: (sessionId) =>
      existing$(sessionId).pipe(
        concatMap((session) => session.saveState$()),
        map(({ messages }) => messages),
        defaultIfEmpty([]),
      ),
    close$: (timeoutMs = 30_000) =>
      defer(() => {
        if (status === 'open') status = 'closing';
        return concat(
          merge(
            kept.drain$({ timeoutMs }).pipe(ignoreElements()),
            taken$.pipe(
              takeWhile((count) => count > 0),
              takeUntil(timer(timeoutMs)),
              ignoreElements(),
            ),
          ),
          defer(() => {
            const cut = runs.all();
            status = 'closed';
            closed$.next();
            return merge(...cut.map(released$));
          }),
        );
      }),
  };
};

const newAloneId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

/** The first id that fits; never the last one. */
const leastRecent = (ids: Iterable<string>, fits: (id: string) => boolean): string | undefined => {
  let found: string | undefined;
  for (const id of ids) {
    if (found !== undefined) return found;
    if (fits(id)) found = id;
  }
  return undefined;
};
