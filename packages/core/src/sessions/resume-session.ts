import { concat, concatMap, defer, EMPTY, first, ignoreElements, type Observable } from 'rxjs';
import type { Agent } from '../agent.js';
import { MillraceError } from '../errors.js';
import type { ReadableCall } from '../journal/call-summary.js';
import { sessionChanges } from '../journal/session-changes.js';
import type { StoreOfCalls } from '../journal/stored-call.js';
import { type WrittenCall, writtenCall$ } from '../journal/written-call.js';
import type { Session } from '../session.js';
import { afterCall, afterLateCall } from './after-call.js';
import { toState } from './read-state.js';
import type { SessionState } from './session-state.js';
import { isForgetful, isSaved, unsavedCalls$ } from './unsaved-calls.js';

/** What a session needs to go on with its calls. */
export interface Resuming<Seen> {
  readonly agent: Pick<Agent, 'name'>;
  readonly session: Session;
  readonly calls: StoreOfCalls;
  readonly save$: Observable<unknown>;
  /** Goes on with a call, as its agent does. */
  readonly goOn$: (callId: string) => Observable<Seen>;
  /** The same, and saves what has become of the session before the end is told. */
  readonly goOnAndSave$: (callId: string) => Observable<Seen>;
}

/** Goes on with one call of a session, or with all that its state lacks, one after the other. */
export const resumeSession$ = <Seen>(
  resuming: Resuming<Seen>,
  callId: string | undefined,
): Observable<Seen> => {
  const { session, calls } = resuming;
  if (callId !== undefined) return resumeCall$(resuming, callId);
  return session.saveState$().pipe(
    concatMap((state) => unsavedCalls$(calls, placeOf(resuming), state)),
    concatMap((call) => resumeCall$(resuming, call.callId, call.status)),
  );
};

const placeOf = ({ agent, session }: Pick<Resuming<unknown>, 'agent' | 'session'>) => ({
  agentName: agent.name,
  sessionId: session.id,
});

const resumeCall$ = <Seen>(
  { agent, session, calls, save$, goOn$, goOnAndSave$ }: Resuming<Seen>,
  callId: string,
  status?: ReadableCall['status'],
): Observable<Seen> => {
  const lacking$ = (
    state: SessionState,
    { changes }: WrittenCall,
    after = afterCall,
  ): Observable<never> =>
    concat(
      session.loadState$(toState(after(state, changes, { sessionId: session.id, callId }))),
      save$.pipe(ignoreElements()),
    );
  const place = placeOf({ agent, session });
  const asked$ = (state: SessionState, written: WrittenCall): Observable<never> =>
    unsavedCalls$(calls, place, state).pipe(
      first(({ callId: unsaved }) => unsaved === callId, undefined),
      concatMap((next) => {
        if (next !== undefined) return lacking$(state, written);
        // One that is forgotten is not to be there twice.
        return isForgetful(state) ? EMPTY : lacking$(state, written, afterLateCall);
      }),
    );
  return writtenCall$(calls.driver, callId).pipe(
    concatMap((written) => {
      assertOwn(session.id, agent.name, callId, written);
      if (!written.wasSeated) return status === undefined ? goOn$(callId) : EMPTY;
      if (!written.hasEnded && status !== 'failed') return goOnAndSave$(callId);
      return session.saveState$().pipe(
        concatMap((state) => {
          // What a failed call has left in memory is a part of the session.
          if (!written.hasEnded) return hasChanges(written) ? lacking$(state, written) : EMPTY;
          const bring$ = status === undefined ? asked$ : lacking$;
          return concat(
            isSaved(state, callId) ? EMPTY : bring$(state, written),
            defer(() => goOn$(callId)),
          );
        }),
      );
    }),
  );
};

const hasChanges = ({ changes }: WrittenCall): boolean =>
  changes.some(({ type }) => sessionChanges.has(type));

const assertOwn = (
  sessionId: string,
  agentName: string,
  callId: string,
  { begun }: WrittenCall,
): void => {
  if (begun.sessionId === sessionId && begun.agent === agentName) return;
  const whose =
    begun.sessionId === undefined ? 'of no session' : `of the session '${begun.sessionId}'`;
  throw new MillraceError(
    'invalidResume',
    `The call '${callId}' is one of the agent '${begun.agent}', ${whose}, and this is the session '${sessionId}' of '${agentName}': open the one that it belongs to.`,
  );
};
