import type { AgentEvent, Message, MillraceError, UserMessage } from 'millrace';
import type { CallStore } from 'millrace/journal';
import type { KeptSession } from 'millrace/sessions';
import { isRecord, parsedJson } from 'millrace/values';
import {
  AsyncSubject,
  catchError,
  defer,
  EMPTY,
  filter,
  finalize,
  first,
  map,
  mergeMap,
  type Observable,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import { asError } from './guard.js';
import { createRecent } from './recent.js';
import type { OpenRun, Runs } from './runs.js';
import { titleFrom } from './title-from.js';

interface ResumptionOptions {
  readonly store: { readonly calls: CallStore };
  readonly runs: Runs;
  readonly report: (error: MillraceError, callId?: string) => void;
  /** Runs work in the background. */
  readonly work: (work$: Observable<unknown>) => void;
  /** Called when the store fails: the calls are looked for again later. */
  readonly lookAgain: () => void;
  /** Called when all calls of a session have been resumed. */
  readonly over: (sessionId: string) => void;
}

/** Resumes the calls that earlier processes left unfinished. */
export interface Resumption {
  /** Resumes the calls of a session, one after the other. Completes when the first one runs. */
  resumed$(session: KeptSession): Observable<unknown>;
  /** Whether the calls of a session are being resumed, or have been. */
  has(sessionId: string): boolean;
  forget(sessionId: string): void;
}

/** How many sessions are remembered. The calls of others are looked for again when they are opened. */
const mostResumed = 10_000;

export const createResumption = (options: ResumptionOptions): Resumption => {
  /** Sessions whose calls are being resumed. */
  const resuming = new Map<string, Observable<unknown>>();
  /** Sessions that were used lately, whose calls have been resumed. */
  const resumed = createRecent(mostResumed);
  const start$ = (session: KeptSession): Observable<unknown> => {
    const { id } = session;
    const ready$ = new AsyncSubject<unknown>();
    resuming.set(id, ready$);
    const ended = (isDone: boolean): void => {
      // The session may have been removed, or resumed again, in the meantime.
      if (resuming.get(id) === ready$) {
        resuming.delete(id);
        if (isDone) {
          resumed.add(id);
          options.over(id);
        }
      }
      ready$.complete();
    };
    options.work(
      calls$(
        session,
        () => {
          ready$.complete();
        },
        ended,
        options,
      ),
    );
    return ready$;
  };
  return {
    has: (sessionId) => resuming.has(sessionId) || resumed.has(sessionId),
    resumed$: (session) => {
      const known$ = resuming.get(session.id);
      if (known$ !== undefined) return known$;
      if (!resumed.has(session.id)) return start$(session);
      resumed.add(session.id);
      return EMPTY;
    },
    forget: (sessionId) => {
      resuming.delete(sessionId);
      resumed.delete(sessionId);
    },
  };
};

const isQuestion = (message: Message): message is UserMessage => message.role === 'user';

/** Resumes the calls of a session, one after the other. Calls `ended` with whether all of them are done. */
const calls$ = (
  session: KeptSession,
  started: () => void,
  ended: (isDone: boolean) => void,
  { store, runs, report, work, lookAgain }: ResumptionOptions,
): Observable<AgentEvent> =>
  defer(() => {
    const stop$ = new Subject<void>();
    let isDone = true;
    let run: OpenRun | undefined;
    const endRun = (): void => {
      if (run !== undefined) runs.end(run);
      run = undefined;
    };
    const see = (event: AgentEvent): void => {
      if (event.parentId === undefined && run?.callId !== event.callId) {
        endRun();
        const next = runs.begin(event.callId, session, {}, stop$);
        run = next;
        work(
          placeOfCall$(store.calls, event.callId).pipe(tap((place) => Object.assign(next, place))),
        );
      }
      // The process that began the call may have ended before it saved the title.
      if (event.type === 'messagesAppended' && event.parentId === undefined) {
        titleFrom(session, event.messages.find(isQuestion)?.content);
      }
      if (run !== undefined) runs.see(run, event);
      started();
    };
    const attempt$ = (failedBefore?: string): Observable<AgentEvent> =>
      session.resumeStream$().pipe(
        tap(see),
        catchError((error: unknown) => {
          const failed = run?.callId;
          const failure = asError(error);
          report(failure, failed);
          endRun();
          // A failed call is over: continue with the next one.
          if (failed !== undefined && failed !== failedBefore) return attempt$(failed);
          isDone = false;
          if (failure.code === 'store') lookAgain();
          return EMPTY;
        }),
      );
    return attempt$().pipe(
      takeUntil(stop$.pipe(tap(() => (isDone = false)))),
      finalize(() => {
        endRun();
        ended(isDone);
      }),
    );
  });

/** The place of a call that an earlier process started, from its record. */
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
