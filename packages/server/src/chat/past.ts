import { type AgentEvent, isEvent, isMillraceError, type Message } from '@millrace/core';
import { type CallStore, replay$ } from '@millrace/core/journal';
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
  readonly questions: ReadonlyMap<string, { readonly question: number; readonly isOpen: boolean }>;
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
    const { id } = event.toolCall;
    const { question, isOpen } = past.questions.get(id) ?? { question: 0, isOpen: false };
    const isAsked = event.type === 'approvalRequested';
    // A call that is resumed asks the open question again.
    const now = { question: isOpen ? question : question + 1, isOpen: isAsked };
    return {
      ...past,
      questions: new Map(past.questions).set(id, isAsked ? now : { ...now, question }),
    };
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
