import type { Input, Message } from 'millrace';
import type { CallStore } from 'millrace/journal';
import { concatMap, defaultIfEmpty, from, map, type Observable, of, toArray } from 'rxjs';
import type { OpenSessions } from './open-sessions.js';
import { pastOf$ } from './past.js';
import type { Runs } from './runs.js';
import type { InTurn } from './session-turns.js';

/** A call that has not ended, with its question. */
export interface Run {
  readonly callId: string;
  readonly question: readonly Message[];
}

/** The control that clients have over running calls. */
export interface CallControls {
  /** Counts a reader of a call; returns the function to call once it has left, or has read to the end. */
  join(sessionId: string, callId: string): (how: 'ended' | 'cancelled') => void;
  /** Emits the calls of a session that have not ended, or are not saved yet, the running one first. */
  runs$(sessionId: string): Observable<readonly Run[]>;
  /** Interrupts the calls of a session, or only this one; if none runs, cancels the suspended call. Emits the number of calls. */
  stop$(sessionId: string, callId?: string): Observable<number>;
  /** Adds a message to the running call, and emits whether it was delivered. */
  steer$(sessionId: string, input: Input): Observable<boolean>;
}

export const createCallControls = ({
  calls,
  runs,
  existing$,
  withCurrent$,
  inTurn$,
}: {
  readonly calls: CallStore;
  readonly runs: Runs;
  readonly existing$: OpenSessions['existing$'];
  readonly withCurrent$: OpenSessions['withCurrent$'];
  readonly inTurn$: InTurn;
}): CallControls => ({
  join: (sessionId, callId) => runs.join(sessionId, callId),
  runs$: (sessionId) =>
    existing$(sessionId).pipe(
      concatMap(() =>
        from(runs.ofSession(sessionId)).pipe(
          concatMap(({ callId, question }) =>
            question.length > 0
              ? of({ callId, question })
              : pastOf$(calls, callId).pipe(map((past) => ({ callId, question: past.question }))),
          ),
          toArray(),
        ),
      ),
      defaultIfEmpty([]),
    ),
  // Waits its turn, so a call that is just starting is stopped as well.
  stop$: (sessionId, callId) =>
    withCurrent$(
      inTurn$(sessionId, () => existing$(sessionId)),
      (session) => {
        const stopped = runs.stop(sessionId, callId);
        return stopped > 0 || callId !== undefined ? of(stopped) : session.cancelSuspended$();
      },
    ).pipe(defaultIfEmpty(0)),
  steer$: (sessionId, input) =>
    existing$(sessionId).pipe(
      concatMap((session) => session.steer$(input)),
      map(({ status }) => status === 'delivered'),
      defaultIfEmpty(false),
    ),
});
