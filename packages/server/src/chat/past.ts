import {
  type AgentEvent,
  type EventOf,
  isEvent,
  isMillraceError,
  type Message,
  MillraceError,
  type ToolCallBlock,
} from 'millrace';
import { type CallStore, replay$ } from 'millrace/journal';
import { isSameInput, messageOf } from 'millrace/values';
import {
  catchError,
  concatMap,
  defer,
  endWith,
  from,
  type Observable,
  of,
  pairwise,
  reduce,
  toArray,
} from 'rxjs';

/** The facts that a client needs if it joins a call late. */
export interface Past {
  /** Its question; empty if it was asked with results of tools. */
  readonly question: readonly Message[];
  /** Events that retract earlier output: discarded attempts, and errors before the call was resumed. */
  readonly takenBack: readonly AgentEvent[];
  /** The ids of the tool calls whose results it was asked with. */
  readonly results: readonly string[];
  /** The last questions on its tool calls, by their ids in the call. */
  readonly questions: ReadonlyMap<string, AskedQuestion>;
}

export interface AskedQuestion {
  readonly question: number;
  readonly isOpen: boolean;
  /** The tool call that was asked about. */
  readonly toolCall: ToolCallBlock;
  /** The decisions on the questions so far, by their numbers. */
  readonly decisions: ReadonlyMap<number, RecordedDecision>;
}

/** The decision on a question. It is final: other decisions on the same question are refused. */
export interface RecordedDecision {
  readonly approved: boolean;
  /** The tool call that was decided on, with the edits of the decision. */
  readonly toolCall: ToolCallBlock;
  /** The tool call as it was shown. */
  readonly shown: ToolCallBlock;
}

/** Reads the events of a call so far, and emits these facts. */
export const pastOf$ = (store: CallStore, callId: string): Observable<Past> =>
  recorded$(store, callId).pipe(
    // An error is taken back only if another event follows; otherwise, it is the end of the call.
    endWith(undefined),
    pairwise(),
    reduce(
      (past, [event, next]) => pastAfter(past, callId, event, next === undefined),
      nothingPast,
    ),
    unlessUnknown(() => of(nothingPast)),
  );

/** The events of a call so far. */
export const recorded$ = (
  store: Pick<CallStore, 'driver'>,
  callId: string,
): Observable<AgentEvent> => replay$(store, callId, { speed: Infinity });

/**
 * The events of a call so far, without the pieces of texts and the progress of tools: their number does not grow with the length of an
 * answer. Reads the store once.
 */
export const recordedSteps$ = ({ driver }: CallStore, callId: string): Observable<AgentEvent> =>
  defer(() => driver.read$(callId, { kind: 'event' })).pipe(
    // As `recorded$` does.
    catchError((cause: unknown) => {
      if (isMillraceError(cause)) throw cause;
      const message = `The journal could not be read: ${messageOf(cause)}`;
      throw new MillraceError('store', message, { cause });
    }),
    concatMap((records) => records.filter(({ name }) => !pieces.has(name))),
    toArray(),
    concatMap((records) =>
      recorded$(
        {
          driver: {
            ...driver,
            read$: (_, { after = 0 } = {}) =>
              from([records.filter(({ position }) => position > after)]),
          },
        },
        callId,
      ),
    ),
  );

const pieces: ReadonlySet<string> = new Set([
  'reasoningChunk',
  'summaryChunk',
  'planningChunk',
  'actingChunk',
]);

/** Continues with another Observable if the store has no such call. A store that fails is an error. */
export const unlessUnknown =
  <Other>(instead: () => Observable<Other>) =>
  <T>(read$: Observable<T>): Observable<T | Other> =>
    read$.pipe(
      catchError((error: unknown) => {
        if (isMillraceError(error) && error.code === 'invalidResume') return instead();
        throw error;
      }),
    );

const nothingPast: Past = { question: [], takenBack: [], results: [], questions: new Map() };

const pastAfter = (
  past: Past,
  callId: string,
  event: AgentEvent | undefined,
  isLast: boolean,
): Past => {
  if (event === undefined) return past;
  const isOwn = event.callId === callId;
  if (event.type === 'messageDiscarded' || (event.type === 'error' && isOwn && !isLast)) {
    return { ...past, takenBack: [...past.takenBack, event] };
  }
  if (isOwn && isEvent(event, 'approvalRequested', 'approvalDecided')) {
    return { ...past, questions: askedAfter(past.questions, event) };
  }
  if (!isOwn || !isEvent(event, 'preCall')) return past;
  return {
    ...past,
    question: event.input.filter(({ role }) => role === 'user'),
    results: event.input.flatMap((message) =>
      message.role === 'tool' ? message.content.map(({ toolCallId }) => toolCallId) : [],
    ),
  };
};

/** The last questions, after one more event. A resumed call asks the open one again, unless its tool call has changed. */
export const askedAfter = (
  questions: Past['questions'],
  event: EventOf<'approvalRequested' | 'approvalDecided'>,
): Past['questions'] => {
  const { toolCall } = event;
  const last = questions.get(toolCall.id) ?? unasked(toolCall);
  if (event.type === 'approvalDecided') {
    const { approved } = event;
    const decision = { approved, toolCall, shown: last.toolCall };
    const decisions = new Map(last.decisions).set(last.question, decision);
    return new Map(questions).set(toolCall.id, { ...last, isOpen: false, toolCall, decisions });
  }
  const isAgain = last.isOpen && isSameInput(last.toolCall, toolCall);
  const question = isAgain ? last.question : last.question + 1;
  return new Map(questions).set(toolCall.id, { ...last, question, isOpen: true, toolCall });
};

const unasked = (toolCall: ToolCallBlock): AskedQuestion => ({
  question: 0,
  isOpen: false,
  toolCall,
  decisions: new Map(),
});
