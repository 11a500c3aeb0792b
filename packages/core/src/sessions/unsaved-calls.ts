import { defer, filter, from, map, mergeMap, type Observable, takeWhile, tap, toArray } from 'rxjs';
import type { ReadableCall } from '../journal/call-summary.js';
import { calls$ } from '../journal/calls.js';
import type { StoreOfCalls } from '../journal/stored-call.js';
import { callsIn, mostEarlierCalls } from './begun-in.js';
import type { EarlierCall, SessionState } from './session-state.js';

/** Tells whether all of a call that has ended is in a state. */
export const isSaved = (state: SessionState, callId: string): boolean =>
  knownIn(state, callId)?.hasEnded ??
  state.messages.some(
    ({ id }) => id.startsWith(`${callId}/`) && isOwn.test(id.slice(callId.length)),
  );

/** States that were saved before they knew of earlier calls tell of them by their messages alone. An id may be the beginning of another one. */
const isOwn = /^\/(?:input\/[^/]+|[^/]+(?:\/(?:tools|results))*)$/u;

/** Tells whether a state may have forgotten calls that it knew. */
export const isForgetful = ({ earlierCalls = [] }: SessionState): boolean =>
  earlierCalls.length >= mostEarlierCalls;

const knownIn = (state: SessionState, callId: string): EarlierCall | undefined =>
  callsIn(state).find((call) => call.callId === callId);

/**
 * Emits the calls of a session that are not in its state, or not as a whole, in the order in which they have begun, and completes. It looks no further back than to the beginning of one that is: what was
 * left before that stays left.
 */
export const unsavedCalls$ = (
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
