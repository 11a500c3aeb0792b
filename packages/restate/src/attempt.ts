import {
  type Agent,
  type ApprovalRequest,
  type Approver,
  type CallOptions,
  contextKey,
  type Input,
  interruptOn,
  type Layer,
  MillraceError,
  type Reply,
  type ToolCallBlock,
  type Verdict,
} from 'millrace';
import type { CallStore, Journal, StoredRecord } from 'millrace/journal';
import { keepSessions, type KeptSession, type SessionStore } from 'millrace/sessions';
import { isSameInput, parsedJson } from 'millrace/values';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  reduce,
  skip,
  take,
} from 'rxjs';

/** The parts of a store that the calls of agents need, such as `openPostgres(url)` or `openFiles(directory)` of `@millrace/store`. */
export interface AgentStore {
  readonly calls: CallStore;
  /** Without it, calls have no session and no memory, and the key of an object is the id of its call. */
  readonly sessions?: SessionStore;
}

/** The options of a call that JSON can express. */
export type PlainOptions = Pick<CallOptions, 'request' | 'limits' | 'metadata'>;

/** The options of a call that JSON cannot express. Each attempt needs them again. */
export type OwnOptions = Pick<CallOptions, 'context' | 'use' | 'model' | 'tools'>;

/** A message to a running call. Restate delivers it again to each attempt, in the same order. */
export type CallMessage =
  | { readonly type: 'interrupt'; readonly message?: string }
  | { readonly type: 'steer'; readonly input: string }
  | {
      readonly type: 'decide';
      readonly callId: string;
      readonly toolCallId: string;
      /** The tool call that was asked about. Without it, the decision counts in the first round only. */
      readonly asked?: Pick<ToolCallBlock, 'name' | 'input'>;
      readonly verdict: Verdict;
    };

/** An attempt to run a call, or the rest of it. */
export interface Attempt {
  readonly agent: Agent;
  readonly store: AgentStore;
  readonly durable: Journal<CallStore>;
  readonly key: string;
  readonly callId: string;
  readonly input: Input;
  readonly options: PlainOptions;
  readonly own: OwnOptions;
  /** Replays earlier messages to each subscriber. */
  readonly message$: Observable<CallMessage>;
  readonly signal: AbortSignal;
}

/** Starts a call, or resumes it if it is recorded. Emits its reply and completes. Cold. */
export const attempted$ = (attempt: Attempt): Observable<Reply> => {
  const { agent, store, durable, key, callId, input, options, own, message$, signal } = attempt;
  const interrupt$ = message$.pipe(filter(isType('interrupt')));
  const given = {
    ...own,
    signal,
    context: [...(own.context ?? []), messagesOfCall.of(message$)],
    use: [...(own.use ?? []), interruptOn(interrupt$)],
  };
  const begun = { ...options, callId };
  const replyIn$ = (isRecorded: boolean): Observable<Reply> => {
    if (store.sessions === undefined) {
      return isRecorded
        ? durable.resume$(agent, callId, given)
        : agent.with(durable).call$(input, { ...given, ...begun });
    }
    // Each attempt loads the session: its state in this process may be older than that in the store.
    const session$ = keepSessions(agent.with(), store.sessions, { journal: durable }).open$(key);
    return session$.pipe(
      concatMap((session) => {
        const steerable = { ...given, use: [...given.use, steering(session, attempt)] };
        return isRecorded
          ? session.resume$(callId, steerable)
          : session.call$(input, { ...steerable, ...begun });
      }),
    );
  };
  return step$(store.calls, callId, /^call$/u).pipe(
    reduce(() => true, false),
    concatMap(replyIn$),
  );
};

/** The steps of a call whose position in it matches. */
const step$ = ({ driver }: CallStore, callId: string, position: RegExp): Observable<StoredRecord> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    mergeMap((records) => records),
    filter(
      ({ name }) => name.startsWith(`${callId}/`) && position.test(name.slice(callId.length + 1)),
    ),
  );

/**
 * Steers a call with the messages that it has not taken in an earlier attempt. Each of them counts once in the steps of the call, in the
 * order in which they were sent. It reads them when it has the claim on the call, and before the call continues.
 */
const steering = (session: KeptSession, { store, callId, message$ }: Attempt): Layer => {
  const taken$ = step$(store.calls, callId, /^\d+\/steering$/u).pipe(
    reduce((count, { text }) => {
      const inputs = parsedJson(text);
      return count + (Array.isArray(inputs) ? inputs.length : 0);
    }, 0),
  );
  const steered$ = (taken: number): Observable<never> =>
    message$.pipe(
      filter(isType('steer')),
      skip(taken),
      // The call continues without a message that it cannot take.
      mergeMap(({ input }) => session.steer$(input, callId).pipe(catchError(() => EMPTY))),
      ignoreElements(),
    );
  return {
    name: 'steeredByRestate',
    call: () => (next) => (call) =>
      taken$.pipe(
        concatMap((taken) => merge(steered$(taken), next(call))),
        take(1),
      ),
  };
};

const isType =
  <Type extends CallMessage['type']>(type: Type) =>
  (message: CallMessage): message is Extract<CallMessage, { readonly type: Type }> =>
    message.type === type;

const messagesOfCall = contextKey<Observable<CallMessage>>('the messages of a Restate call');

/** Whether a decision is on a request: on this tool call, with the input that is asked about now. */
const isOn = (
  { callId, toolCallId, asked }: Extract<CallMessage, { readonly type: 'decide' }>,
  { context, toolCall, round }: ApprovalRequest,
): boolean => {
  if (callId !== context.callId || toolCallId !== toolCall.id) return false;
  return asked === undefined ? round === 1 : isSameInput(asked, toolCall);
};

/**
 * An approver that waits for the handler `decide` of the object of the running call: `requireApproval(tool, awaitDecision)`. The wait survives the
 * process: another one asks again, and takes decisions made in the meantime. Outside of Restate, the call errors with `config`.
 */
export const awaitDecision: Approver = Object.assign<Approver, Pick<Approver, 'parallel'>>(
  (request) =>
    defer(() => messagesIn(request)).pipe(
      filter(isType('decide')),
      filter((decided) => isOn(decided, request)),
      map(({ verdict }) => verdict),
      take(1),
    ),
  { parallel: true },
);

const messagesIn = ({ context }: ApprovalRequest): Observable<CallMessage> => {
  try {
    return context.get(messagesOfCall);
  } catch (cause) {
    const why = 'awaitDecision needs Restate: serve the agent with restateAgents().';
    throw new MillraceError('config', why, { cause });
  }
};
