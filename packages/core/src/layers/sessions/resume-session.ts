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
import {
  begunIn,
  callsIn,
  type EarlierCall,
  latest,
  less,
  mostEarlierCalls,
  type PendingApproval,
  type SessionState,
  type ToolGroupStates,
} from './session-state.js';
import type { AgentEvent, EventOf } from '../../events.js';
import {
  type CallRecord,
  callStep,
  isCallRecord,
  unreadableCall,
  isQueueRecord,
  queueStep,
} from '../../journal/call-record.js';
import { records$ } from '../../journal/call-store.js';
import { isEnd, parsedText, sessionChanges, storedEvent } from '../../journal/record-json.js';
import { checkCallOptions } from '../../call/call-options.js';
import { type Journal, journalRules, type ResumeOptions } from '../../journal/journal.js';
import type { Reply } from '../../values/reply.js';
import { frozen } from '../../values/message.js';
import { isRecord } from '../../values/json.js';
import { addUsage } from '../../values/usage.js';

export interface UnsavedCalls<Seen> {
  readonly agent: Pick<Agent, 'name'>;
  readonly session: Session;
  readonly calls: StoreOfCalls;
  readonly save$: Observable<unknown>;
  readonly goOn$: (callId: string) => Observable<Seen>;
  readonly goOnAndSave$: (callId: string) => Observable<Seen>;
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
  const { agent, session, calls, save$, goOn$, goOnAndSave$ } = resuming;
  const lacking$ = (
    state: SessionState,
    { changes }: WrittenCall,
    after = afterCall,
  ): Observable<never> =>
    concat(
      session.loadState$(toState(after(state, changes, { sessionId: session.id, callId }))),
      save$.pipe(ignoreElements()),
    );
  const asked$ = (state: SessionState, written: WrittenCall): Observable<never> =>
    unsavedCalls$(resuming, state).pipe(
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
          if (!written.hasEnded) {
            const isChanged = written.changes.some(({ type }) => sessionChanges.has(type));
            return isChanged ? lacking$(state, written) : EMPTY;
          }
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

const isSaved = (state: SessionState, callId: string): boolean =>
  knownIn(state, callId)?.hasEnded ??
  state.messages.some(
    ({ id }) => id.startsWith(`${callId}/`) && isOwn.test(id.slice(callId.length)),
  );

const isOwn = /^\/(?:input\/[^/]+|[^/]+(?:\/(?:tools|results))*)$/u;

const isForgetful = ({ earlierCalls = [] }: SessionState): boolean =>
  earlierCalls.length >= mostEarlierCalls;

const knownIn = (state: SessionState, callId: string): EarlierCall | undefined =>
  callsIn(state).find((call) => call.callId === callId);

const unsavedCalls$ = (
  { agent, session, calls }: Pick<UnsavedCalls<unknown>, 'agent' | 'session' | 'calls'>,
  state: SessionState,
): Observable<ReadableCall> =>
  defer(() => {
    const isLast = ({ callId }: ReadableCall): boolean => state.lastCall?.callId === callId;
    const known = callsIn(state);
    const ended = known.findLastIndex(({ hasEnded }) => hasEnded);
    // Of calls that were broken off together, the later ones waited for the earlier.
    const together = new Set(known.slice(ended + 1).map(({ callId }) => callId));
    let isKnown = false;
    const isLeft = ({ callId }: ReadableCall): boolean => isKnown && !together.has(callId);
    return listed$(calls.driver, session.id).pipe(
      mergeMap(([call, { place = call.createdAt }]) =>
        call.status !== 'unreadable' && call.sessionId === session.id && call.agent === agent.name
          ? [{ call, place }]
          : [],
      ),
      // What was left before a call that is known stays left.
      takeWhile(({ call }) => together.size > 0 || !isLeft(call)),
      filter(({ call }) => !isLeft(call)),
      tap(({ call }) => {
        together.delete(call.callId);
        isKnown ||= isLast(call) || isSaved(state, call.callId);
        if (knownIn(state, call.callId)?.hasEnded === true) together.clear();
      }),
      filter(({ call }) => {
        // Of a saved one, its journal may lack the end.
        if (isSaved(state, call.callId)) return isLast(call) && call.status === 'unfinished';
        // A call that has failed is over, and what it has left is saved.
        return knownIn(state, call.callId) === undefined || call.status !== 'failed';
      }),
      toArray(),
      mergeMap((found) => found.sort((a, b) => a.place - b.place)),
      map(({ call }) => call),
    );
  });

interface WrittenCall {
  readonly begun: CallRecord;
  readonly changes: readonly AgentEvent[];
  readonly hasEnded: boolean;
  readonly wasSeated: boolean;
}

const writtenCall$ = (driver: CallStoreDriver, callId: string): Observable<WrittenCall> =>
  records$(driver, callId).pipe(
    reduce<StoredRecord, Found>(
      (found, record) => {
        if (record.kind === 'event') {
          if (matter.has(record.name)) found.events.push(record);
          return found;
        }
        found.hasSteps = true;
        // One that was gone on with has not ended where it seemed to.
        found.behind = found.events.length;
        if (record.name === `${callId}/${callStep}`) found.first ??= record;
        if (record.name === `${callId}/${queueStep}`) found.wasSeated = !wasInterrupted(record);
        return found;
      },
      { first: undefined, events: [], behind: 0, hasSteps: false, wasSeated: true },
    ),
    map(({ first, events, behind, hasSteps, wasSeated }) => {
      if (first === undefined) throw hasSteps ? unreadableCall(callId) : notStored(callId);
      const begun = parsedText(`The beginning of the call '${callId}'`, first.text);
      if (!isCallRecord(begun)) throw unreadableCall(callId);
      const changes = events.map((record) => storedEvent(callId, record));
      const isReplied = (event: AgentEvent): boolean =>
        event.type === 'postCall' && isEnd(event, callId);
      return { begun, changes, hasEnded: changes.slice(behind).some(isReplied), wasSeated };
    }),
  );

interface Found {
  first: StoredRecord | undefined;
  readonly events: StoredRecord[];
  behind: number;
  hasSteps: boolean;
  wasSeated: boolean;
}

const wasInterrupted = ({ name, text }: StoredRecord): boolean => {
  const seat = parsedText(`The record of the step '${name}'`, text);
  return isQueueRecord(seat) && seat.as === 'interrupted';
};

const matter: ReadonlySet<string> = new Set([...sessionChanges, 'postCall', 'error']);

export const savedBehind =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (seen$) =>
    concat(seen$, save$.pipe(ignoreElements())).pipe(savedWhenFailed(save$));

export const savedWithReply =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (reply$) =>
    reply$.pipe(
      concatMap((reply) => save$.pipe(map(() => reply))),
      savedWhenFailed(save$),
    );

const savedWhenFailed =
  <T>(save$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (seen$) =>
    seen$.pipe(
      catchError((cause: unknown) => {
        const error = toMillraceError(cause);
        const error$ = throwError(() => error);
        if (hasNoPart.includes(error.code)) return error$;
        return concat(
          save$.pipe(
            ignoreElements(),
            catchError(() => EMPTY),
          ),
          error$,
        );
      }),
    );

const hasNoPart: readonly string[] = ['busy', 'queueFull', 'conflict', 'store', 'invalidResume'];

/** How a session goes on that was loaded as it was before a call: the process was ended in the middle of it, or behind it, before the session was saved. */
export interface ResumableSession<out Output = unknown> {
  /**
   * Resumes what the state of the session lacks, in order: calls that stopped continue, and what ended ones said is added. Emits the
   * replies, each once the session is saved. With an id, it is that call only, and its reply is emitted in any case. Repeating it is
   * safe. Errors as `resume$` of a journal, and with `config` if `keepSessions` has no `journal`. Cold.
   */
  resume$(callId?: string, options?: ResumeOptions): Observable<Reply<Output>>;
  /** As `resume$`, but emits the events of the calls, and of those below them; completes when the session is saved. Cold. */
  resumeStream$(callId?: string, options?: ResumeOptions): Observable<AgentEvent>;
  /** The Promise form of `resume$`: it goes on at once, and gives the last reply, or `undefined` where nothing was lacking. */
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
  const see$ = <Seen>(
    callId: string | undefined,
    given: ResumeOptions,
    goOn: (journal: Journal, callId: string, options: ResumeOptions) => Observable<Seen>,
    saved: (save$: Observable<unknown>) => MonoTypeOperatorFunction<Seen>,
  ): Observable<Seen> => {
    checkCallOptions('resume$()', given, journalRules);
    if (callId === '') throw misuse('resume$() needs the id of a call, or none.');
    if (journal === undefined || !isStoreOfCalls(journal.store)) throw noJournal();
    const calls = journal.store;
    const goOn$ = (id: string): Observable<Seen> => goOn(journal, id, given);
    const goOnAndSave$ = (id: string): Observable<Seen> => saved$(goOn$(id).pipe(saved(save$)));
    return defer(() => {
      open.assertOpen();
      const resuming = { agent, session, calls, save$, goOn$, goOnAndSave$ };
      return open.use$(resumeSession$(resuming, callId));
    });
  };
  const resume$: ResumableSession<Output>['resume$'] = (callId, options = {}) =>
    see$<Reply<Output>>(
      callId,
      options,
      (by, id, own) => by.resume$(session, id, own),
      savedWithReply,
    );
  const resumeStream$: ResumableSession['resumeStream$'] = (callId, options = {}) =>
    see$<AgentEvent>(
      callId,
      options,
      (by, id, own) => by.resumeStream$(session, id, own),
      savedBehind,
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

type CallPlace = Omit<CallOfSession, 'isWrittenDown'>;

const afterCall = (
  state: SessionState,
  events: readonly AgentEvent[],
  call: CallPlace,
): SessionState =>
  events.reduce(
    (before, event) => afterEvent(before, event, { ...call, isWrittenDown: true }),
    begun(state, call.callId),
  );

const afterLateCall = (
  state: SessionState,
  events: readonly AgentEvent[],
  call: CallPlace,
): SessionState => {
  const after = afterCall(state, events, call);
  const late = callsIn(after).filter(({ callId }) => callId === call.callId);
  const others = callsIn(state).filter(({ callId }) => callId !== call.callId);
  const { lastCall } = state;
  const earlierCalls = latest([
    ...others.filter(({ callId }) => callId !== lastCall?.callId),
    ...late,
  ]);
  const last = others.find(({ callId }) => callId === lastCall?.callId);
  const { lastCall: _last, earlierCalls: _earlier, ...rest } = state;
  return {
    ...rest,
    messages: after.messages,
    usage: after.usage,
    ...(last !== undefined &&
      lastCall !== undefined && {
        lastCall: { ...lastCall, usageBefore: less(after.usage, last.usage) },
      }),
    ...(earlierCalls !== undefined && { earlierCalls }),
  };
};

interface CallOfSession {
  readonly sessionId: string;
  readonly callId: string;
  readonly isWrittenDown: boolean;
}

export const afterEvent = (
  state: SessionState,
  event: AgentEvent,
  { sessionId, callId, isWrittenDown }: CallOfSession,
): SessionState => {
  // Calls below may be in sessions of their own, also in those of the same id: they have no part in it but what waits for approval.
  if (event.sessionId !== sessionId) return state;
  if (event.callId !== callId && !isOfApprovals(event)) return state;
  switch (event.type) {
    case 'preCall':
      return begun(state, isWrittenDown ? callId : undefined);
    case 'messagesRemoved': {
      const gone = new Set(event.ids);
      return { ...state, messages: state.messages.filter(({ id }) => !gone.has(id)) };
    }
    case 'messagesAppended': {
      const known = new Set(state.messages.map(({ id }) => id));
      const added = event.messages.filter(({ id }) => !known.has(id) && known.add(id));
      return { ...state, messages: [...state.messages, ...added] };
    }
    case 'stateChanged':
      return changed(state, event);
    case 'postCall': {
      const { lastCall } = state;
      const { reason, usage } = event.reply;
      return {
        ...state,
        usage: addUsage(state.usage, usage),
        interrupted: reason === 'interrupted',
        ...(lastCall?.callId === callId && { lastCall: frozen({ ...lastCall, hasEnded: true }) }),
      };
    }
    default:
      return state;
  }
};

const begun = (state: SessionState, callId: string | undefined): SessionState => {
  const { lastCall: _last, earlierCalls: _earlier, ...rest } = state;
  const { lastCall, earlierCalls, ...changes } = begunIn(state, callId);
  return {
    ...rest,
    ...changes,
    ...(lastCall !== undefined && { lastCall }),
    ...(earlierCalls !== undefined && { earlierCalls }),
  };
};

const isOfApprovals = (event: AgentEvent): boolean =>
  event.type === 'stateChanged' && event.name === 'approvals';

const changed = (state: SessionState, event: EventOf<'stateChanged'>): SessionState => {
  const { name, state: now } = event;
  if (name === 'groups' && isGroups(now)) return { ...state, groups: now };
  return name === 'approvals' && isApprovals(now) ? { ...state, approvals: now } : state;
};

const isGroups = (value: unknown): value is ToolGroupStates =>
  isRecord(value) && Object.values(value).every((active) => typeof active === 'boolean');

const isApprovals = (value: unknown): value is readonly PendingApproval[] =>
  Array.isArray(value) &&
  value.every((it) => isRecord(it) && typeof it['callId'] === 'string' && isRecord(it['toolCall']));
