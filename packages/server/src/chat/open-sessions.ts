import { type Agent, type MillraceError, restoreAsyncContext } from 'millrace';
import { type CallStore, calls$, type ReadableCall } from 'millrace/journal';
import type { KeptSession, KeptSessions, SessionStore } from 'millrace/sessions';
import {
  AsyncSubject,
  BehaviorSubject,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  map,
  mergeMap,
  noop,
  type Observable,
  of,
  repeat,
  take,
  timer,
  toArray,
} from 'rxjs';
import { asError } from './guard.js';
import { createResumption } from './resumption.js';
import type { Runs } from './runs.js';

interface OpenSessionsOptions {
  readonly agent: Agent;
  readonly store: { readonly calls: CallStore; readonly sessions: SessionStore };
  readonly kept: KeptSessions;
  readonly runs: Runs;
  readonly report: (error: MillraceError, callId?: string) => void;
  /** Runs work in the background. */
  readonly work: (work$: Observable<unknown>) => void;
  /** Called when a session is opened. */
  readonly used?: ((sessionId: string) => void) | undefined;
  /** Throws if the server is closed. Returns whether calls may be resumed. */
  readonly assertOpen: () => boolean;
}

export interface OpenSessions {
  /** Opens a session once the calls that other processes left unfinished are running again. */
  readonly opened$: (sessionId: string) => Observable<KeptSession>;
  /** As `opened$`, but completes without a session if it does not exist: reading must not create one. */
  readonly existing$: (sessionId: string) => Observable<KeptSession>;
  /**
   * Resumes calls that other processes left unfinished. Looks for them again after `lookAgain`, and as long as other
   * processes run calls. Never completes.
   */
  readonly recovered$: Observable<unknown>;
  /** Schedules another look for unfinished calls, after a failure of the store. */
  readonly lookAgain: () => void;
  readonly forget: (sessionId: string) => void;
  /** Works with a session that this opens. If it errors with `conflict` because another server has saved the session, loads that and works once more. */
  readonly withCurrent$: <T>(
    open$: Observable<KeptSession>,
    work: (session: KeptSession) => Observable<T>,
  ) => Observable<T>;
}

const lookAgainMs = 15_000;

export const createOpenSessions = (options: OpenSessionsOptions): OpenSessions => {
  const { store, kept, runs, used = noop, assertOpen } = options;
  const left = createLeftSessions(options);
  const resumption = createResumption({ ...options, lookAgain: left.lookAgain, over: left.delete });
  const opened$ = (sessionId: string): Observable<KeptSession> =>
    defer(() => {
      const mayResume = assertOpen();
      used(sessionId);
      return kept.open$(sessionId).pipe(
        concatMap((session) => {
          if (!mayResume) return of(session);
          const resumed$ = resumption.resumed$(session);
          return concat(resumed$.pipe(ignoreElements(), restoreAsyncContext()), of(session));
        }),
      );
    });
  const exists$ = (sessionId: string): Observable<boolean> =>
    resumption.has(sessionId) || left.has(sessionId)
      ? of(true)
      : store.sessions.load$(sessionId).pipe(
          take(1),
          map((stored) => stored !== undefined),
        );
  const forget = (sessionId: string): void => {
    resumption.forget(sessionId);
    left.delete(sessionId);
  };
  const isOutdated$ = createOutdated(options, forget);
  return {
    opened$,
    withCurrent$: (open$, work) =>
      open$.pipe(
        concatMap((session) =>
          work(session).pipe(
            catchError((error: unknown) => {
              if (asError(error).code !== 'conflict') throw error;
              return isOutdated$(session).pipe(
                concatMap((isOutdated) => {
                  if (isOutdated) return open$.pipe(concatMap(work));
                  // A call of another server is in the way. That server may have stopped.
                  left.lookAgain();
                  throw error;
                }),
              );
            }),
          ),
        ),
      ),
    existing$: (sessionId) =>
      concat(
        left.known$.pipe(restoreAsyncContext()),
        defer(() => exists$(sessionId)).pipe(
          concatMap((exists) => (exists ? opened$(sessionId) : EMPTY)),
        ),
      ),
    recovered$: left.recovered$((sessionId) => {
      if (runs.ofSession(sessionId).length === 0) resumption.forget(sessionId);
      return opened$(sessionId);
    }),
    lookAgain: left.lookAgain,
    forget,
  };
};

/** Emits whether another server has saved a session since it was opened here; it is loaded when it is opened again then. */
const createOutdated =
  ({ store, runs }: OpenSessionsOptions, forget: (sessionId: string) => void) =>
  (session: KeptSession): Observable<boolean> =>
    store.sessions.load$(session.id).pipe(
      take(1),
      concatMap((stored) => {
        // A call that runs here is saved, or gets its conflict, at its end.
        const isInUse = runs.ofSession(session.id).length > 0;
        if (isInUse || stored?.version === session.version) return of(false);
        return session.save$().pipe(
          map(() => false),
          catchError((error: unknown) => {
            if (asError(error).code !== 'conflict') throw error;
            forget(session.id);
            return of(true);
          }),
        );
      }),
    );

/** The number of sessions whose calls are resumed at the same time. */
const mostAtOnce = 4;

/** The sessions with calls that other processes left unfinished. */
const createLeftSessions = ({ agent, store, runs, report }: OpenSessionsOptions) => {
  const left = new Set<string>();
  const isLookDue$ = new BehaviorSubject(false);
  /** Completes after the first look. */
  const known$ = new AsyncSubject<never>();
  const lookAgain = (): void => {
    isLookDue$.next(true);
  };
  const failed$ = (error: unknown): Observable<never> => {
    const failure = asError(error);
    report(failure);
    // The store may become reachable again.
    if (failure.code === 'store') lookAgain();
    return EMPTY;
  };
  const look$ = unfinishedCalls$(store.calls, agent, runs).pipe(
    map((found) => {
      const isLeft = (call: ReadableCall): boolean => call.status === 'unfinished';
      left.clear();
      for (const { sessionId } of found.filter(isLeft)) {
        if (sessionId !== undefined) left.add(sessionId);
      }
      // Other processes run the other calls, and may still leave them unfinished.
      if (!found.every(isLeft)) lookAgain();
      known$.complete();
      return [...left];
    }),
  );
  return {
    known$,
    lookAgain,
    has: (sessionId: string): boolean => left.has(sessionId),
    delete: (sessionId: string): void => {
      left.delete(sessionId);
    },
    /** Looks for them now, and again whenever a look is due. Opens each of them with the given function. */
    recovered$: (reopened$: (sessionId: string) => Observable<unknown>): Observable<unknown> =>
      wheneverDue$(
        isLookDue$,
        look$.pipe(
          concatMap((sessionIds) => sessionIds),
          mergeMap((sessionId) => reopened$(sessionId).pipe(catchError(failed$)), mostAtOnce),
          catchError(failed$),
          finalize(() => {
            known$.complete();
          }),
        ),
      ),
  };
};

/** The calls of an agent that have not ended, and do not run here. */
const unfinishedCalls$ = (
  calls: CallStore,
  agent: Pick<Agent, 'name'>,
  runs: Pick<Runs, 'get'>,
): Observable<readonly ReadableCall[]> =>
  calls$(calls, { isUnfinished: true }).pipe(
    filter((call): call is ReadableCall => call.status !== 'unreadable'),
    filter(({ callId, agent: name }) => name === agent.name && runs.get(callId) === undefined),
    toArray(),
  );

/** Looks now, and again after each time that another look is due. */
const wheneverDue$ = (
  isDue$: BehaviorSubject<boolean>,
  look$: Observable<unknown>,
): Observable<unknown> =>
  defer(() => {
    isDue$.next(false);
    return look$;
  }).pipe(
    repeat({
      delay: () =>
        isDue$.pipe(
          filter((isDue) => isDue),
          take(1),
          restoreAsyncContext(),
          concatMap(() => timer(lookAgainMs)),
        ),
    }),
  );
