import { concat, concatMap, defer, EMPTY, filter, map, type Observable } from 'rxjs';
import type { Agent } from '../../agent.js';
import { contained } from '../../flow/contained.js';
import { continueWith } from '../../flow/eventual.js';
import type { StoreOfCalls } from '../../journal/call-store-driver.js';
import type { Layer } from '../../seams/layer.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { trusted } from '../../seams/through.js';
import { isRecord } from '../../values/json.js';
import { isMessage } from '../../values/shape.js';
import type { Session } from './sessions.js';
import type { SessionState } from './session-state.js';
import {
  assertFree,
  resultIds,
  type Settlement,
  settlement,
  settlementOf,
  storingNothing,
} from './settle-once.js';
import {
  knownCall,
  type RecordedCall,
  recordedCall$,
  type UnsavedCall,
  unsavedCalls$,
} from './unsaved-calls.js';

export interface ClaimingSession {
  readonly agent: Pick<Agent, 'name'>;
  readonly session: Pick<Session, 'id' | 'saveState$'>;
  /** Without one, only calls that begin at the same time exclude each other. */
  readonly calls: StoreOfCalls | undefined;
  readonly save$: Observable<unknown>;
}

/**
 * As `settlingOnce`, for several processes: saves the session before a call makes anything of what it settles. Of several, the first to save
 * continues; the others error with `conflict` and have no effect. A call that is not in the session yet, such as one whose process
 * died, keeps what it has settled until it is resumed.
 */
export const claimingResults = (claiming: ClaimingSession): Layer =>
  trusted({
    name: 'claimResults',
    priority: layerPlaces.conversation + 1,
    call: (context) => (next) => (call) => {
      const own = settlementOf(call, context);
      if (own === undefined) return next(call);
      return concat(
        claimable$(claiming, own),
        defer(() => claiming.save$),
      ).pipe(
        storingNothing(context),
        continueWith(() => next(call)),
      );
    },
  });

/** Errors with `conflict` if a call of another process settles the tool calls that wait at the head. One of this process is waited for. */
export const cancellable$ = (
  claiming: ClaimingSession,
  isHere: (callId: string) => boolean,
): Observable<never> =>
  claiming.session.saveState$().pipe(
    concatMap(({ messages }) => {
      const after = messages.at(-1)?.id ?? null;
      return claimable$(claiming, { callId: '', after, brought: [] }, isHere);
    }),
  );

/** Errors if another call settles the same tool calls, and is not in the session yet. */
const claimable$ = (
  { agent, session, calls }: ClaimingSession,
  own: Settlement,
  isIgnored = (callId: string): boolean => callId === own.callId,
): Observable<never> => {
  if (calls === undefined) return EMPTY;
  return session.saveState$().pipe(
    concatMap((state) =>
      unsavedCalls$({ agent, session, calls }, state).pipe(
        filter((other) => !isIgnored(other.callId) && hasClaimed(other, state)),
      ),
    ),
    concatMap(({ callId }) =>
      recordedCall$(calls.driver, callId).pipe(map((call) => settlementIn(callId, call))),
    ),
    concatMap((other) => {
      assertFree(own, other);
      return EMPTY;
    }),
    contained(),
  );
};

/** A call that runs has claimed its results if the session knows it; one that failed leaves them to others. */
const hasClaimed = ({ callId, status }: UnsavedCall, state: SessionState): boolean =>
  status === 'ended' ||
  status === 'suspended' ||
  (status !== 'failed' && knownCall(state, callId) !== undefined);

/** The settlement of a recorded call. Until it is open, it has settled nothing. */
const settlementIn = (
  callId: string,
  { record, opening }: Pick<RecordedCall, 'record' | 'opening'>,
): readonly Settlement[] => {
  if (!isRecord(opening)) return [];
  const { after, late } = opening;
  const given: readonly unknown[] = Array.isArray(late) ? late : [];
  const place = typeof after === 'string' || after === null ? after : undefined;
  const { cancels, ...settled } = settlement(callId, place, given.filter(isMessage));
  const brought = [...settled.brought, ...record.input.flatMap(resultIds)];
  return cancels || brought.length > 0 ? [{ ...settled, brought }] : [];
};
