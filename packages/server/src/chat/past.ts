import {
  type AgentEvent,
  type EventOf,
  isEvent,
  isMillraceError,
  type Message,
  type ToolCallBlock,
} from '@millrace/core';
import { type CallStore, replay$ } from '@millrace/core/journal';
import { isSameInput } from '@millrace/core/values';
import { catchError, endWith, type Observable, of, pairwise, reduce } from 'rxjs';

/** The part of a call that a client must know if it joins late. */
export interface Past {
  /** Its question; empty if it was asked with results of tools. */
  readonly question: readonly Message[];
  /** Events that took back what was shown before: discarded attempts, and errors before it was resumed. */
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
}

/** Reads the events of a call so far, and keeps only these. */
export const pastOf$ = (store: CallStore, callId: string): Observable<Past> =>
  recorded$(store, callId).pipe(
    // An error that is the last event is the end.
    endWith(undefined),
    pairwise(),
    reduce(
      (past, [event, next]) => pastAfter(past, callId, event, next === undefined),
      nothingPast,
    ),
    unlessUnknown(() => of(nothingPast)),
  );

/** The events of a call so far. */
export const recorded$ = (store: CallStore, callId: string): Observable<AgentEvent> =>
  replay$(store, callId, { speed: Infinity });

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
  { type, toolCall }: EventOf<'approvalRequested' | 'approvalDecided'>,
): Past['questions'] => {
  const { question = 0, isOpen = false, toolCall: before } = questions.get(toolCall.id) ?? {};
  const isAsked = type === 'approvalRequested';
  const isAgain = !isAsked || (isOpen && before !== undefined && isSameInput(before, toolCall));
  const now = { question: isAgain ? question : question + 1, isOpen: isAsked, toolCall };
  return new Map(questions).set(toolCall.id, now);
};
