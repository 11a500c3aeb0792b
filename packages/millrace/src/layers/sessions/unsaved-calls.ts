import {
  catchError,
  defer,
  map,
  mergeMap,
  type Observable,
  of,
  reduce,
  take,
  takeWhile,
  toArray,
} from 'rxjs';
import type { Agent } from '../../agent.js';
import type { AgentEvent } from '../../events.js';
import { failAs } from '../../flow/contained.js';
import {
  type CallRecord,
  callStep,
  damagedCall,
  isQueueRecord,
  queueStep,
  readCallRecord,
} from '../../journal/call-record.js';
import {
  type CallStoreDriver,
  notStored,
  type StoredRecord,
  type StoreOfCalls,
} from '../../journal/call-store-driver.js';
import { records$ } from '../../journal/call-store.js';
import { listed$, type ReadableCall } from '../../journal/call-summary.js';
import { isEnd, parsedText, sessionChanges, storedEvent } from '../../journal/record-json.js';
import { isMillraceError } from '../../values/errors.js';
import { callsIn, type EarlierCall, maxEarlierCalls, type SessionState } from './session-state.js';
import type { Session } from './sessions.js';

interface SessionOfCalls {
  readonly agent: Pick<Agent, 'name'>;
  readonly session: Pick<Session, 'id'>;
  readonly calls: StoreOfCalls;
}

/** A call that the state of its session lacks, or the rest of it. */
export interface UnsavedCall extends Pick<ReadableCall, 'callId' | 'status'> {
  readonly place: number;
  /** The state has a call that began later. */
  readonly isLate: boolean;
}

/** The calls that the state lacks, in the order in which they began. */
export const unsavedCalls$ = (
  { agent, session, calls }: SessionOfCalls,
  state: SessionState,
): Observable<UnsavedCall> =>
  defer(() => {
    const search = createSearch(state);
    return listed$(calls.driver, { sessionId: session.id }).pipe(
      mergeMap(([call, { place = call.createdAt }]) =>
        call.status !== 'unreadable' && call.sessionId === session.id && call.agent === agent.name
          ? [{ callId: call.callId, status: call.status, place }]
          : [],
      ),
      map(search),
      takeWhile(({ isOver }) => !isOver),
      mergeMap(({ unsaved }) => unsaved),
      toArray(),
      mergeMap((found) => found.sort((a, b) => a.place - b.place)),
    );
  });

interface Searched {
  readonly unsaved: readonly UnsavedCall[];
  /** This call and older ones may have been forgotten: they must not be added twice. */
  readonly isOver: boolean;
}

/** Looks at the calls of a session, the last begun first. */
const createSearch = (state: SessionState): ((call: Omit<UnsavedCall, 'isLate'>) => Searched) => {
  const known = callsIn(state);
  const ended = known.findLastIndex(({ hasEnded }) => hasEnded);
  // Of calls that stopped together, the later ones waited for the earlier.
  const stoppedTogether = new Set(known.slice(ended + 1).map(({ callId }) => callId));
  let knownSeen = 0;
  let isLate = false;
  let isFollowed = false;
  const look = (call: Omit<UnsavedCall, 'isLate'>): readonly UnsavedCall[] => {
    const { callId, status } = call;
    const isKnown = knownCall(state, callId) !== undefined;
    const isWhole = isSaved(state, callId);
    const isLast = state.lastCall?.callId === callId;
    const found = [{ ...call, isLate: isLate && !isLast }];
    const isAbandoned = isFollowed && !stoppedTogether.has(callId);
    if (isKnown) knownSeen += 1;
    isLate ||= isKnown || isWhole;
    isFollowed ||= isWhole;
    // The journal of a saved call may lack its end.
    if (isWhole) return isLast && status === 'unfinished' ? found : [];
    // Its end is in the journal only: another process has saved the session while it ran.
    if (!isKnown || status === 'ended' || status === 'suspended') return found;
    // A failed call is over, and its messages are saved.
    return status === 'failed' || isAbandoned ? [] : found;
  };
  return (call) =>
    forgetsCalls(state) && knownSeen >= maxEarlierCalls / 2
      ? { unsaved: [], isOver: true }
      : { unsaved: look(call), isOver: false };
};

export const isSaved = (state: SessionState, callId: string): boolean =>
  knownCall(state, callId)?.hasEnded ?? hasMessagesOf(state, callId);

const hasMessagesOf = ({ messages, branches = [] }: SessionState, callId: string): boolean =>
  [...messages, ...branches.map(({ message }) => message)].some(
    ({ id }) => id.startsWith(`${callId}/`) && ownMessageId.test(id.slice(callId.length)),
  );

const ownMessageId = /^\/(?:input\/[^/]+|[^/]+(?:\/(?:tools|results))*)$/u;

export const forgetsCalls = ({ earlierCalls = [] }: SessionState): boolean =>
  earlierCalls.length >= maxEarlierCalls;

export const knownCall = (state: SessionState, callId: string): EarlierCall | undefined =>
  callsIn(state).find((call) => call.callId === callId);

/** Whether another writer has a call. Waits for the lease of a process that died. */
export const isHeld$ = (driver: CallStoreDriver, callId: string): Observable<boolean> =>
  defer(() => driver.claim$(callId)).pipe(
    failAs('store', 'The journal could not be opened'),
    take(1),
    map(() => false),
    catchError((error: unknown) => {
      if (isMillraceError(error) && error.code === 'conflict') return of(true);
      throw error;
    }),
  );

export interface RecordedCall {
  readonly record: CallRecord;
  readonly changes: readonly AgentEvent[];
  readonly hasEnded: boolean;
  readonly hasFailed: boolean;
  readonly hadTurn: boolean;
  /** Its conversation when it began, as it is recorded; `undefined` if it was not open yet. */
  readonly opening: unknown;
}

export const recordedCall$ = (driver: CallStoreDriver, callId: string): Observable<RecordedCall> =>
  records$(driver, callId).pipe(
    reduce<StoredRecord, RecordsFound>(
      (found, record) => {
        if (record.kind === 'event') {
          if (relevantEvents.has(record.name)) found.events.push(record);
          return found;
        }
        found.hasSteps = true;
        // A later step shows that the call was resumed after an apparent end.
        found.eventsAtLastStep = found.events.length;
        if (record.name === `${callId}/${callStep}`) found.first ??= record;
        if (record.name === `${callId}/${queueStep}`) found.hadTurn = !wasInterrupted(record);
        if (record.name === `${callId}/open`) found.opening = record;
        return found;
      },
      {
        ...{ first: undefined, opening: undefined, events: [], eventsAtLastStep: 0 },
        ...{ hasSteps: false, hadTurn: true },
      },
    ),
    map(({ first, opening, events, eventsAtLastStep, hasSteps, hadTurn }) => {
      if (first === undefined) throw hasSteps ? damagedCall(callId) : notStored(callId);
      const what = `The first record of the call '${callId}'`;
      const record = readCallRecord(callId, parsedText(what, first.text));
      const changes = events.map((event) => storedEvent(callId, event));
      const ends = changes.slice(eventsAtLastStep).filter((event) => isEnd(event, callId));
      return {
        record,
        changes,
        hasEnded: ends.some(({ type }) => type === 'postCall'),
        hasFailed: ends.some((event) => event.type === 'error' && event.error.code !== 'aborted'),
        hadTurn,
        opening: opening && parsedText(`The record of the step '${opening.name}'`, opening.text),
      };
    }),
  );

interface RecordsFound {
  first: StoredRecord | undefined;
  opening: StoredRecord | undefined;
  readonly events: StoredRecord[];
  eventsAtLastStep: number;
  hasSteps: boolean;
  hadTurn: boolean;
}

const wasInterrupted = ({ name, text }: StoredRecord): boolean => {
  const queued = parsedText(`The record of the step '${name}'`, text);
  return isQueueRecord(queued) && queued.as === 'interrupted';
};

const relevantEvents: ReadonlySet<string> = new Set([...sessionChanges, 'postCall', 'error']);
