import {
  concat,
  concatMap,
  defer,
  EMPTY,
  first,
  ignoreElements,
  type Observable,
  filter,
  from,
  map,
  mergeMap,
  takeWhile,
  tap,
  toArray,
} from 'rxjs';
import type { Agent } from '../agent.js';
import { MillraceError } from '../errors.js';
import type { ReadableCall } from '../journal/call-summary.js';
import { sessionChanges } from '../journal/session-changes.js';
import type { StoreOfCalls } from '../journal/stored-call.js';
import { type WrittenCall, writtenCall$ } from '../journal/written-call.js';
import type { Session } from '../session.js';
import { afterCall, afterLateCall } from './after-call.js';
import { toState } from './read-state.js';
import type { SessionState, EarlierCall } from './session-state.js';
import { calls$ } from '../journal/calls.js';
import { callsIn, mostEarlierCalls } from './begun-in.js';

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

/** Tells whether all of a call that has ended is in a state. */
const isSaved = (state: SessionState, callId: string): boolean =>
  knownIn(state, callId)?.hasEnded ??
  state.messages.some(
    ({ id }) => id.startsWith(`${callId}/`) && isOwn.test(id.slice(callId.length)),
  );

/** States that were saved before they knew of earlier calls tell of them by their messages alone. An id may be the beginning of another one. */
const isOwn = /^\/(?:input\/[^/]+|[^/]+(?:\/(?:tools|results))*)$/u;

/** Tells whether a state may have forgotten calls that it knew. */
const isForgetful = ({ earlierCalls = [] }: SessionState): boolean =>
  earlierCalls.length >= mostEarlierCalls;

const knownIn = (state: SessionState, callId: string): EarlierCall | undefined =>
  callsIn(state).find((call) => call.callId === callId);

/**
 * Emits the calls of a session that are not in its state, or not as a whole, in the order in which they have begun, and completes. It looks no further back than to the beginning of one that is: what was
 * left before that stays left.
 */
const unsavedCalls$ = (
  calls: StoreOfCalls,
  { agentName, sessionId }: { readonly agentName: string; readonly sessionId: string },
  state: SessionState,
): Observable<ReadableCall> =>
  defer(() => {
    const isLast = ({ callId }: ReadableCall): boolean => state.lastCall?.callId === callId;
    let knownSince = -Infinity;
    return calls$(calls).pipe(
      filter((call) => call.status !== 'unreadable'),
      filter((call) => call.sessionId === sessionId && call.agent === agentName),
      // Of calls that were written to in the same millisecond, any may come first.
      takeWhile(({ updatedAt }) => updatedAt >= knownSince),
      tap((call) => {
        // What waited for it was written to before its end.
        if (isLast(call) || isSaved(state, call.callId)) {
          knownSince = Math.max(knownSince, call.createdAt);
        }
      }),
      filter((call) => {
        // Of a saved one, its journal may lack the end.
        if (isSaved(state, call.callId)) return isLast(call) && call.status === 'brokenOff';
        // A call that has failed is over, and what it has left is saved.
        return knownIn(state, call.callId) === undefined || call.status !== 'failed';
      }),
      toArray(),
      map((found) => found.sort(inOrder)),
      mergeMap((found) => from(found)),
    );
  });

/**
 * The order in which calls have begun. Of those that were made in the same millisecond, what has ended was first; then what was written to last, for what waits is not written to; else the
 * order of the store.
 */
const inOrder = (one: ReadableCall, other: ReadableCall): number => {
  const [isOver, isOtherOver] = [one, other].map(({ status }) => !unended.includes(status));
  return (
    one.createdAt - other.createdAt ||
    Number(isOtherOver) - Number(isOver) ||
    (isOver === true ? one.updatedAt - other.updatedAt : other.updatedAt - one.updatedAt)
  );
};

const unended: readonly ReadableCall['status'][] = ['running', 'brokenOff'];
