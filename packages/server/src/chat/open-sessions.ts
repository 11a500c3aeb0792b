import { restoreAsyncContext } from '@millrace/core';
import type { Agent, AgentEvent, MillraceError } from '@millrace/core';
import { type CallStore, calls$, type ReadableCall } from '@millrace/core/journal';
import type { KeptSession, KeptSessions, SessionStore } from '@millrace/core/sessions';
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
  first,
  from,
  ignoreElements,
  map,
  mergeMap,
  noop,
  type Observable,
  of,
  repeat,
  Subject,
  take,
  takeUntil,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { isRecord, parsedJson } from '@millrace/core/values';
import { asError } from './guard.js';
import { createRecent } from './recent.js';
import type { OpenRun, Runs } from './runs.js';

interface OpenSessionsOptions {
  readonly agent: Agent;
  readonly store: { readonly calls: CallStore; readonly sessions: SessionStore };
  readonly kept: KeptSessions;
  readonly runs: Runs;
  readonly report: (error: MillraceError, callId?: string) => void;
  /** Runs in the scope of the server. */
  readonly work: (work$: Observable<unknown>) => void;
  /** Called when a session is opened. */
  readonly used?: ((sessionId: string) => void) | undefined;
  /** Throws if the server is closed. Returns whether calls may be resumed. */
  readonly assertOpen: () => boolean;
}

interface OpenSessions {
  /** Opens a session, once its calls that other processes have left run again. */
  readonly opened$: (sessionId: string) => Observable<KeptSession>;
  /** As `opened$`, but completes without a session if it does not exist: reading must not create one. */
  readonly existing$: (sessionId: string) => Observable<KeptSession>;
  /** Continues calls that other processes have left, and looks for them again after `lookAgain`, and while others run some. Never completes. */
  readonly recovered$: Observable<unknown>;
  /** After a failure of the store: its calls are continued later. */
  readonly lookAgain: () => void;
  readonly forget: (sessionId: string) => void;
}

const lookAgainMs = 15_000;

/** The calls of a session that was used less recently are looked for again when it is opened. */
const mostResumed = 10_000;

/** The place of a call that an earlier process has begun, from its record. */
const placeOfCall$ = (
  { driver }: CallStore,
  callId: string,
): Observable<Pick<OpenRun, 'after' | 'replaces'>> =>
  driver.read$(callId).pipe(
    mergeMap((records) => records),
    first(({ name }) => name === `${callId}/seat`),
    map(({ text }) => parsedJson(text)),
    filter(isRecord),
    map(({ after, replaces }) => ({
      after: after === null || typeof after === 'string' ? after : undefined,
      replaces: typeof replaces === 'string' ? replaces : undefined,
    })),
    // Without a place of its own, it continues at the head.
    catchError(() => EMPTY),
  );

export const createOpenSessions = ({
  agent,
  store,
  kept,
  runs,
  report,
  work,
  used = noop,
  assertOpen,
}: OpenSessionsOptions): OpenSessions => {
  const isLookDue$ = new BehaviorSubject(false);
  const lookAgain = (): void => {
    isLookDue$.next(true);
  };
  const failed$ = (error: unknown): Observable<never> => {
    const failure = asError(error);
    report(failure);
    // A store that is out of reach comes back.
    if (failure.code === 'store') lookAgain();
    return EMPTY;
  };
  /** Sessions whose calls of earlier processes are being resumed. */
  const resuming = new Map<string, Observable<unknown>>();
  /** Sessions that were used lately, whose calls of earlier processes have been resumed. */
  const resumed = createRecent(mostResumed);
  const isResumed = (sessionId: string): boolean =>
    resuming.has(sessionId) || resumed.has(sessionId);
  /** Continues the calls that another process has left, one after the other. Completes when the first one runs. */
  const resumed$ = (session: KeptSession): Observable<unknown> => {
    const { id } = session;
    const known$ = resuming.get(id);
    if (known$ !== undefined) return known$;
    if (resumed.has(id)) {
      resumed.add(id);
      return EMPTY;
    }
    const ready$ = new AsyncSubject<unknown>();
    resuming.set(id, ready$);
    let isDone = true;
    const stop$ = new Subject<void>();
    let run: OpenRun | undefined;
    const endRun = (): void => {
      if (run !== undefined) runs.end(run);
      run = undefined;
    };
    const attempt$ = (failedBefore?: string): Observable<AgentEvent> =>
      session.resumeStream$().pipe(
        tap((event) => {
          if (event.parentId === undefined && run?.callId !== event.callId) {
            endRun();
            const resumed = runs.begin(event.callId, session, {}, stop$);
            run = resumed;
            work(
              placeOfCall$(store.calls, event.callId).pipe(
                tap((place) => Object.assign(resumed, place)),
              ),
            );
          }
          if (run !== undefined) runs.see(run, event);
          ready$.complete();
        }),
        catchError((error: unknown) => {
          const failed = run?.callId;
          const failure = asError(error);
          report(failure, failed);
          endRun();
          // A call that has failed is over: the next one follows.
          if (failed !== undefined && failed !== failedBefore) return attempt$(failed);
          isDone = false;
          if (failure.code === 'store') lookAgain();
          return EMPTY;
        }),
      );
    work(
      attempt$().pipe(
        takeUntil(stop$.pipe(tap(() => (isDone = false)))),
        finalize(() => {
          endRun();
          // It may have been removed, or looked for again, since.
          if (resuming.get(id) === ready$) {
            resuming.delete(id);
            if (isDone) {
              resumed.add(id);
              left.delete(id);
            }
          }
          ready$.complete();
        }),
      ),
    );
    return ready$;
  };
  const opened$ = (sessionId: string): Observable<KeptSession> =>
    defer(() => {
      const mayResume = assertOpen();
      used(sessionId);
      return kept
        .open$(sessionId)
        .pipe(
          concatMap((session) =>
            mayResume
              ? concat(resumed$(session).pipe(ignoreElements(), restoreAsyncContext()), of(session))
              : of(session),
          ),
        );
    });
  /** Sessions with calls that other processes have left. */
  const left = new Set<string>();
  const known$ = new AsyncSubject<never>();
  const existing$ = (sessionId: string): Observable<KeptSession> =>
    concat(
      known$.pipe(restoreAsyncContext()),
      defer(() =>
        isResumed(sessionId) || left.has(sessionId)
          ? of(true)
          : store.sessions.load$(sessionId).pipe(
              take(1),
              map((stored) => stored !== undefined),
            ),
      ).pipe(concatMap((exists) => (exists ? opened$(sessionId) : EMPTY))),
    );
  const recover$ = calls$(store.calls, { isUnfinished: true }).pipe(
    filter((call): call is ReadableCall => call.status !== 'unreadable'),
    filter(({ callId, agent: name }) => name === agent.name && runs.get(callId) === undefined),
    toArray(),
    concatMap((found) => {
      const isLeft = (call: ReadableCall): boolean => call.status === 'unfinished';
      left.clear();
      found.filter(isLeft).forEach(({ sessionId }) => {
        if (sessionId !== undefined) left.add(sessionId);
      });
      if (!found.every(isLeft)) lookAgain();
      known$.complete();
      return from([...left]).pipe(
        mergeMap((sessionId) => {
          if (runs.ofSession(sessionId).length === 0) forgetResumed(sessionId);
          return opened$(sessionId).pipe(catchError(failed$));
        }, 4),
      );
    }),
    catchError(failed$),
    finalize(() => {
      known$.complete();
    }),
  );
  const recovered$ = defer(() => {
    isLookDue$.next(false);
    return recover$;
  }).pipe(
    repeat({
      delay: () =>
        isLookDue$.pipe(
          filter((isDue) => isDue),
          take(1),
          restoreAsyncContext(),
          concatMap(() => timer(lookAgainMs)),
        ),
    }),
  );
  const forgetResumed = (sessionId: string): void => {
    resuming.delete(sessionId);
    resumed.delete(sessionId);
  };
  const forget = (sessionId: string): void => {
    forgetResumed(sessionId);
    left.delete(sessionId);
  };
  return { opened$, existing$, recovered$, lookAgain, forget };
};
