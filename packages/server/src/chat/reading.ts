import { type AgentEvent, type Demand, isEvent, type MillraceError, openDemand } from 'millrace';
import { attach$, type CallStore } from 'millrace/journal';
import {
  catchError,
  concat,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  type Observable,
  of,
  repeat,
  take,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { asError, noSuchCall } from './guard.js';
import { type Past, pastOf$, recorded$, recordedSteps$, unlessUnknown } from './past.js';
import type { OpenRun, Runs } from './runs.js';

/** Reads the calls of all conversations. */
export interface Reading {
  /**
   * Follows a call of a session from its first event; the last one comes once the session is saved. Errors with
   * `invalidResume` (404) if it has no such call.
   */
  follow$(sessionId: string, callId: string, demand?: Demand): Observable<AgentEvent>;
  /** Emits the events of a call so far, and completes. Errors as `follow$` does. */
  events$(sessionId: string, callId: string, options?: ReadOptions): Observable<AgentEvent>;
  past$(callId: string): Observable<Past>;
  /** Emits the session of a call; `undefined` if the call is not known. */
  sessionOf$(callId: string): Observable<string | undefined>;
}

/** Which events of a call are read. */
export interface ReadOptions {
  /** Without the pieces of texts and the progress of tools. Default: false. */
  readonly areSteps?: boolean | undefined;
}

/** How long a reader waits for the record of a call that runs, in milliseconds. */
const waitMs = 10_000;

export const createReading = (store: CallStore, runs: Pick<Runs, 'get'>): Reading => ({
  follow$: (sessionId, callId, demand = openDemand) =>
    defer(() => {
      const run = runs.get(callId);
      let last: AgentEvent | undefined;
      const event$ = events$(store, run, callId, demand).pipe(
        filter((event) => {
          if (event.callId !== callId) return true;
          if (event.sessionId !== sessionId) throw noSuchCall();
          last = isEvent(event, 'postCall', 'error') ? event : undefined;
          return last === undefined || run === undefined;
        }),
      );
      const end$ = defer(() => (run === undefined ? EMPTY : saved$(run, last)));
      return concat(event$, end$).pipe(
        catchError((error: unknown) => throwError(() => notFoundOr(asError(error)))),
      );
    }),
  events$: (sessionId, callId, { areSteps = false } = {}) =>
    defer(() => {
      const isOwn = runs.get(callId)?.session.id === sessionId;
      return (areSteps ? recordedSteps$ : recorded$)(store, callId).pipe(
        // A call of this server may not have a record yet.
        unlessUnknown(() => (isOwn ? EMPTY : throwError(() => noSuchCall()))),
        tap((event) => {
          if (event.callId === callId && event.sessionId !== sessionId) throw noSuchCall();
        }),
      );
    }),
  past$: (callId) => pastOf$(store, callId),
  sessionOf$: (callId) =>
    defer(() => {
      const run = runs.get(callId);
      if (run !== undefined) return of(run.session.id);
      return recorded$(store, callId).pipe(
        map(({ sessionId }) => sessionId),
        take(1),
        unlessUnknown(() => EMPTY),
        defaultIfEmpty(undefined),
      );
    }),
});

/** The last event, once the session is saved, or the error of the save. */
const saved$ = (run: OpenRun, last: AgentEvent | undefined): Observable<AgentEvent> =>
  concat(
    run.over$.pipe(ignoreElements()),
    defer(() => {
      const { failure } = run;
      // Without a last event, the end is not durable yet, or the store has failed.
      const isKnown = last === undefined ? failure?.code === 'aborted' : last.type === 'error';
      if (failure !== undefined && !isKnown) throw failure;
      return last === undefined ? EMPTY : of(last);
    }),
  );

/** The events of a call: from memory for a reader that keeps up, otherwise from the store. */
const events$ = (
  store: CallStore,
  run: OpenRun | undefined,
  callId: string,
  demand: Demand,
): Observable<AgentEvent> => {
  if (run === undefined) return attach$(store, callId, { demand });
  // A store with a filter records fewer events than memory holds.
  if (store.written$ === undefined) return attach$(store, callId, { demand, waitMs });
  return defer(() => {
    let afterSeq = 0;
    let isStored = false;
    const isInTail = (): boolean => run.tail.has(afterSeq);
    /** Whether the event is the error that ended an earlier run of the call. */
    const isEarlierEnd = (event: AgentEvent): boolean =>
      event.type === 'error' && event.callId === callId && event.seq <= (run.tail.begin() ?? 0);
    const part$ = defer(() => {
      isStored = !isInTail();
      return isStored
        ? attach$(store, callId, { afterSeq, demand, waitMs }).pipe(
            filter((event) => !isEarlierEnd(event)),
            takeWhile(({ seq }) => !run.tail.has(seq), true),
          )
        : run.tail.follow$(afterSeq, demand);
    }).pipe(
      tap(({ seq }) => {
        afterSeq = seq;
      }),
    );
    const again = (): Observable<unknown> => {
      const begin = run.tail.begin();
      // The stored events end with an earlier run: skip the sequence numbers up to the next run.
      if (isStored && !isInTail() && !run.hasEnded && begin !== undefined) afterSeq = begin;
      return isStored === isInTail() ? of(true) : EMPTY;
    };
    return part$.pipe(repeat({ delay: again }));
  });
};

const notFoundOr = (error: MillraceError): MillraceError =>
  error.code === 'invalidResume' ? noSuchCall() : error;
