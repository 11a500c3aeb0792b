import {
  type MonoTypeOperatorFunction,
  type Observable,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  first,
  ignoreElements,
  lastValueFrom,
  map,
  throwError,
} from 'rxjs';
import type { Agent } from '../../agent.js';
import { MillraceError, misuse, toMillraceError } from '../../values/errors.js';
import { type StoreOfCalls, isStoreOfCalls } from '../../journal/call-store-driver.js';
import type { Session } from './sessions.js';
import { toState } from './read-state.js';
import type { SessionState } from './session-state.js';
import { afterCall, afterLateCall } from './state-after-events.js';
import {
  forgetsCalls,
  isHeld$,
  isSaved,
  knownCall,
  type RecordedCall,
  recordedCall$,
  type UnsavedCall,
  unsavedCalls$,
} from './unsaved-calls.js';
import type { AgentEvent } from '../../events.js';
import { sessionChanges } from '../../journal/record-json.js';
import { checkCallOptions } from '../../call/call-options.js';
import { type Journal, journalRules } from '../../journal/journal.js';
import type { ResumeOptions } from '../../journal/resume-all.js';
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
    concatMap((call) => resumeUnsaved$(resuming, call)),
  );
};

const resumeUnsaved$ = <Seen>(
  resuming: UnsavedCalls<Seen>,
  call: UnsavedCall,
): Observable<Seen> => {
  const resume$ = defer(() => resumeCall$(resuming, call.callId, call)).pipe(
    catchError((cause: unknown) => {
      const error = toMillraceError(cause);
      return concat(
        call.isLate ? leftAfter$(resuming, call.callId, error) : EMPTY,
        throwError(() => error),
      );
    }),
  );
  if (call.status !== 'running') return resume$;
  // Its own process saves it, or gets an error.
  return isHeld$(resuming.calls.driver, call.callId).pipe(
    concatMap((isHeld) => (isHeld ? EMPTY : resume$)),
  );
};

/** A late call that cannot be resumed is reported once: it must not keep those after it from being resumed. */
const leftAfter$ = <Seen>(
  resuming: UnsavedCalls<Seen>,
  callId: string,
  { code }: MillraceError,
): Observable<never> =>
  resuming.session.saveState$().pipe(
    concatMap((state) => {
      const isLeft = unresumableCodes.includes(code) && knownCall(state, callId) === undefined;
      return isLeft ? added$(resuming, callId, [], afterLateCall) : EMPTY;
    }),
  );

const unresumableCodes: readonly string[] = ['invalidResume', 'invalidState', 'config'];

/** Adds the recorded changes of a call to the session, as it is by then, and saves it. */
const added$ = <Seen>(
  { session, save$ }: UnsavedCalls<Seen>,
  callId: string,
  changes: RecordedCall['changes'],
  after: typeof afterCall,
): Observable<never> =>
  session
    .saveState$()
    .pipe(
      concatMap((state) =>
        concat(
          session.loadState$(toState(after(state, changes, { sessionId: session.id, callId }))),
          save$.pipe(ignoreElements()),
        ),
      ),
    );

const resumeCall$ = <Seen>(
  resuming: UnsavedCalls<Seen>,
  callId: string,
  unsaved?: UnsavedCall,
): Observable<Seen> => {
  const { agent, session, calls, continue$, continueAndSave$ } = resuming;
  const addTo$ = (
    { changes }: RecordedCall,
    { isLate }: Pick<UnsavedCall, 'isLate'>,
  ): Observable<never> => added$(resuming, callId, changes, isLate ? afterLateCall : afterCall);
  const addAsked$ = (state: SessionState, recorded: RecordedCall): Observable<never> =>
    unsavedCalls$(resuming, state).pipe(
      first((call) => call.callId === callId, undefined),
      concatMap((found) => {
        if (found !== undefined) return addTo$(recorded, found);
        // A forgotten call must not be added twice.
        return forgetsCalls(state) ? EMPTY : addTo$(recorded, { isLate: true });
      }),
    );
  return recordedCall$(calls.driver, callId).pipe(
    concatMap((recorded) => {
      assertOwn(session.id, agent.name, callId, recorded);
      const { hadTurn, hasEnded, hasFailed, changes } = recorded;
      if (!hadTurn) return unsaved === undefined ? continue$(callId) : EMPTY;
      if (unsaved !== undefined && isOver(unsaved, hasFailed)) {
        // Messages that a failed call stored belong to the session.
        const isChanged = changes.some(({ type }) => sessionChanges.has(type));
        return isChanged ? addTo$(recorded, unsaved) : EMPTY;
      }
      if (!hasEnded) return continueAndSave$(callId);
      return session.saveState$().pipe(
        concatMap((state) =>
          concat(
            isSaved(state, callId)
              ? EMPTY
              : unsaved === undefined
                ? addAsked$(state, recorded)
                : addTo$(recorded, unsaved),
            defer(() => continue$(callId)),
          ),
        ),
      );
    }),
  );
};

/** Whether a call has failed: it is resumed only by its id. */
const isOver = ({ status }: UnsavedCall, hasFailed: boolean): boolean =>
  status === 'failed' || (status === 'running' && hasFailed);

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
   * Adds the calls that the state of the session lacks, after a crash or a conflict, in the order in which they began: continues those
   * that stopped, and adds the messages of those that ended where these began, as a branch if the conversation has continued. Leaves
   * calls that another process runs to it. Emits their replies, each once the session is saved. With an id, handles that call
   * only and always emits its reply. Safe to repeat. Errors as `resume$` of a journal, and with `config` without one. Cold.
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
