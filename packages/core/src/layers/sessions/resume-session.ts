import {
  type MonoTypeOperatorFunction,
  type Observable,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  first,
  ignoreElements,
  lastValueFrom,
  map,
  mergeMap,
  reduce,
  takeWhile,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import type { Agent } from '../../agent.js';
import { MillraceError, misuse, toMillraceError } from '../../values/errors.js';
import { listed$, type ReadableCall } from '../../journal/call-summary.js';
import {
  type StoreOfCalls,
  type CallStoreDriver,
  type StoredRecord,
  isStoreOfCalls,
  notStored,
} from '../../journal/call-store-driver.js';
import type { Session } from './sessions.js';
import { toState } from './read-state.js';
import { callsIn, type EarlierCall, maxEarlierCalls, type SessionState } from './session-state.js';
import { afterCall, afterLateCall } from './state-after-events.js';
import type { AgentEvent } from '../../events.js';
import {
  type CallRecord,
  callStep,
  damagedCall,
  readCallRecord,
  isQueueRecord,
  queueStep,
} from '../../journal/call-record.js';
import { records$ } from '../../journal/call-store.js';
import { isEnd, parsedText, sessionChanges, storedEvent } from '../../journal/record-json.js';
import { checkCallOptions } from '../../call/call-options.js';
import { type Journal, journalRules, type ResumeOptions } from '../../journal/journal.js';
import type { Reply } from '../../values/reply.js';

export interface UnsavedCalls<Seen> {
  readonly agent: Pick<Agent, 'name'>;
  readonly session: Session;
  readonly calls: StoreOfCalls;
  readonly save$: Observable<unknown>;
  readonly continue$: (callId: string) => Observable<Seen>;
  readonly continueAndSave$: (callId: string) => Observable<Seen>;
}

export const resumeSession$ = <Seen>(
  resuming: UnsavedCalls<Seen>,
  callId: string | undefined,
): Observable<Seen> => {
  if (callId !== undefined) return resumeCall$(resuming, callId);
  return resuming.session.saveState$().pipe(
    concatMap((state) => unsavedCalls$(resuming, state)),
    concatMap((call) => resumeCall$(resuming, call.callId, call.status)),
  );
};

const resumeCall$ = <Seen>(
  resuming: UnsavedCalls<Seen>,
  callId: string,
  status?: ReadableCall['status'],
): Observable<Seen> => {
  const { agent, session, calls, save$, continue$, continueAndSave$ } = resuming;
  const addMissing$ = (
    state: SessionState,
    { changes }: RecordedCall,
    after = afterCall,
  ): Observable<never> =>
    concat(
      session.loadState$(toState(after(state, changes, { sessionId: session.id, callId }))),
      save$.pipe(ignoreElements()),
    );
  const addUnsaved$ = (state: SessionState, recorded: RecordedCall): Observable<never> =>
    unsavedCalls$(resuming, state).pipe(
      first(({ callId: unsaved }) => unsaved === callId, undefined),
      concatMap((next) => {
        if (next !== undefined) return addMissing$(state, recorded);
        // A forgotten call must not be added twice.
        return forgetsCalls(state) ? EMPTY : addMissing$(state, recorded, afterLateCall);
      }),
    );
  return recordedCall$(calls.driver, callId).pipe(
    concatMap((recorded) => {
      assertOwn(session.id, agent.name, callId, recorded);
      if (!recorded.hadTurn) return status === undefined ? continue$(callId) : EMPTY;
      if (!recorded.hasEnded && status !== 'failed') return continueAndSave$(callId);
      return session.saveState$().pipe(
        concatMap((state) => {
          // Messages that a failed call stored belong to the session.
          if (!recorded.hasEnded) {
            const isChanged = recorded.changes.some(({ type }) => sessionChanges.has(type));
            return isChanged ? addMissing$(state, recorded) : EMPTY;
          }
          const add$ = status === undefined ? addUnsaved$ : addMissing$;
          return concat(
            isSaved(state, callId) ? EMPTY : add$(state, recorded),
            defer(() => continue$(callId)),
          );
        }),
      );
    }),
  );
};

const assertOwn = (
  sessionId: string,
  agentName: string,
  callId: string,
  { record }: RecordedCall,
): void => {
  if (record.sessionId === sessionId && record.agent === agentName) return;
  const owner =
    record.sessionId === undefined ? 'without a session' : `in the session '${record.sessionId}'`;
  throw new MillraceError(
    'invalidResume',
    `The call '${callId}' belongs to the agent '${record.agent}', ${owner}, but this is the session '${sessionId}' of '${agentName}'. Open the session that it belongs to.`,
  );
};

const isSaved = (state: SessionState, callId: string): boolean =>
  knownCall(state, callId)?.hasEnded ??
  [...state.messages, ...(state.branches ?? []).map(({ message }) => message)].some(
    ({ id }) => id.startsWith(`${callId}/`) && ownMessageId.test(id.slice(callId.length)),
  );

const ownMessageId = /^\/(?:input\/[^/]+|[^/]+(?:\/(?:tools|results))*)$/u;

const forgetsCalls = ({ earlierCalls = [] }: SessionState): boolean =>
  earlierCalls.length >= maxEarlierCalls;

const knownCall = (state: SessionState, callId: string): EarlierCall | undefined =>
  callsIn(state).find((call) => call.callId === callId);

const unsavedCalls$ = (
  { agent, session, calls }: Pick<UnsavedCalls<unknown>, 'agent' | 'session' | 'calls'>,
  state: SessionState,
): Observable<ReadableCall> =>
  defer(() => {
    const isLast = ({ callId }: ReadableCall): boolean => state.lastCall?.callId === callId;
    const known = callsIn(state);
    const ended = known.findLastIndex(({ hasEnded }) => hasEnded);
    // Of calls that stopped together, the later ones waited for the earlier.
    const stoppedTogether = new Set(known.slice(ended + 1).map(({ callId }) => callId));
    let isKnown = false;
    const isAbandoned = ({ callId }: ReadableCall): boolean =>
      isKnown && !stoppedTogether.has(callId);
    return listed$(calls.driver, { sessionId: session.id }).pipe(
      mergeMap(([call, { place = call.createdAt }]) =>
        call.status !== 'unreadable' && call.sessionId === session.id && call.agent === agent.name
          ? [{ call, place }]
          : [],
      ),
      // Calls abandoned before a known call stay abandoned.
      takeWhile(({ call }) => stoppedTogether.size > 0 || !isAbandoned(call)),
      filter(({ call }) => !isAbandoned(call)),
      tap(({ call }) => {
        stoppedTogether.delete(call.callId);
        isKnown ||= isLast(call) || isSaved(state, call.callId);
        if (knownCall(state, call.callId)?.hasEnded === true) stoppedTogether.clear();
      }),
      filter(({ call }) => {
        // The journal of a saved call may lack its end.
        if (isSaved(state, call.callId)) return isLast(call) && call.status === 'unfinished';
        // A failed call is over, and its messages are saved.
        return knownCall(state, call.callId) === undefined || call.status !== 'failed';
      }),
      toArray(),
      mergeMap((found) => found.sort((a, b) => a.place - b.place)),
      map(({ call }) => call),
    );
  });

interface RecordedCall {
  readonly record: CallRecord;
  readonly changes: readonly AgentEvent[];
  readonly hasEnded: boolean;
  readonly hadTurn: boolean;
}

const recordedCall$ = (driver: CallStoreDriver, callId: string): Observable<RecordedCall> =>
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
        return found;
      },
      { first: undefined, events: [], eventsAtLastStep: 0, hasSteps: false, hadTurn: true },
    ),
    map(({ first, events, eventsAtLastStep, hasSteps, hadTurn }) => {
      if (first === undefined) throw hasSteps ? damagedCall(callId) : notStored(callId);
      const what = `The first record of the call '${callId}'`;
      const record = readCallRecord(callId, parsedText(what, first.text));
      const changes = events.map((record) => storedEvent(callId, record));
      const isReplied = (event: AgentEvent): boolean =>
        event.type === 'postCall' && isEnd(event, callId);
      return {
        record,
        changes,
        hasEnded: changes.slice(eventsAtLastStep).some(isReplied),
        hadTurn,
      };
    }),
  );

interface RecordsFound {
  first: StoredRecord | undefined;
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

export const saveAfterStream =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (seen$) =>
    concat(seen$, save$.pipe(ignoreElements())).pipe(saveOnError(save$));

export const saveBeforeReply =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (reply$) =>
    reply$.pipe(
      concatMap((reply) => save$.pipe(map(() => reply))),
      saveOnError(save$),
    );

const saveOnError =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (seen$) =>
    seen$.pipe(
      catchError((cause: unknown) => {
        const error = toMillraceError(cause);
        const error$ = throwError(() => error);
        if (unsavedCodes.includes(error.code)) return error$;
        return concat(
          save$.pipe(
            ignoreElements(),
            catchError(() => EMPTY),
          ),
          error$,
        );
      }),
    );

const unsavedCodes: readonly string[] = ['busy', 'queueFull', 'conflict', 'store', 'invalidResume'];

/** Resumes a session that was loaded in the state before a call: the process stopped before it saved the call. */
export interface ResumableSession<out Output = unknown> {
  /**
   * Adds the calls that the state of the session lacks, in order: continues those that stopped, and adds the messages
   * of those that ended. Emits their replies, each once the session is saved. With an id, handles that call only and
   * always emits its reply. Safe to repeat. Errors as `resume$` of a journal, and with `config` without one. Cold.
   */
  resume$(callId?: string, options?: ResumeOptions): Observable<Reply<Output>>;
  /** As `resume$`, but emits the events of calls and sub-agents; completes once the session is saved. Cold. */
  resumeStream$(callId?: string, options?: ResumeOptions): Observable<AgentEvent>;
  /** The Promise form of `resume$`. Starts immediately; resolves to the last reply, or `undefined`. */
  resume(callId?: string, options?: ResumeOptions): Promise<Reply<Output> | undefined>;
}

export interface Resuming<out Output> {
  readonly agent: Agent<Output>;
  readonly session: Session<Output>;
  readonly journal: Journal | undefined;
  readonly saved$: <T>(work$: Observable<T>) => Observable<T>;
  readonly open: {
    assertOpen(): void;
    use$<T>(work$: Observable<T>): Observable<T>;
    save$(session: Session): Observable<number>;
  };
}

export const resumableSession = <Output>({
  agent,
  session,
  journal,
  open,
  saved$,
}: Resuming<Output>): ResumableSession<Output> => {
  const save$ = open.save$(session);
  const resumeAs$ = <Seen>(
    callId: string | undefined,
    given: ResumeOptions,
    resume: (journal: Journal, callId: string, options: ResumeOptions) => Observable<Seen>,
    saved: (save$: Observable<unknown>) => MonoTypeOperatorFunction<Seen>,
  ): Observable<Seen> => {
    checkCallOptions('resume$()', given, journalRules);
    if (callId === '') throw misuse('resume$() needs a non-empty call id, or none.');
    if (journal === undefined || !isStoreOfCalls(journal.store)) throw noJournal();
    const calls = journal.store;
    const continue$ = (id: string): Observable<Seen> => resume(journal, id, given);
    const continueAndSave$ = (id: string): Observable<Seen> =>
      saved$(continue$(id).pipe(saved(save$)));
    return defer(() => {
      open.assertOpen();
      const resuming = { agent, session, calls, save$, continue$, continueAndSave$ };
      return open.use$(resumeSession$(resuming, callId));
    });
  };
  const resume$: ResumableSession<Output>['resume$'] = (callId, options = {}) =>
    resumeAs$<Reply<Output>>(
      callId,
      options,
      (by, id, own) => by.resume$(session, id, own),
      saveBeforeReply,
    );
  const resumeStream$: ResumableSession['resumeStream$'] = (callId, options = {}) =>
    resumeAs$<AgentEvent>(
      callId,
      options,
      (by, id, own) => by.resumeStream$(session, id, own),
      saveAfterStream,
    );
  return {
    resume$,
    resumeStream$,
    resume: (callId, options) =>
      lastValueFrom(
        defer(() => resume$(callId, options)),
        { defaultValue: undefined },
      ),
  };
};

const noJournal = () =>
  misuse('resume$() needs the journal of the agent: keepSessions(agent, store, { journal }).');
