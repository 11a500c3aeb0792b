import { type AgentEvent, isEvent, type Message } from '@millrace/core';
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
  /** The ids of its tool calls that wait for approval. */
  readonly undecided: readonly string[];
}

/** Reads the events of a call so far, and keeps only these. */
export const pastOf$ = (store: CallStore, callId: string): Observable<Past> =>
  replay$(store, callId, { speed: Infinity }).pipe(
    // An error that is the last event is the end.
    endWith(undefined),
    pairwise(),
    reduce(
      (past, [event, next]) => pastAfter(past, callId, event, next === undefined),
      nothingPast,
    ),
    catchError(() => of(nothingPast)),
  );

const nothingPast: Past = { question: [], takenBack: [], results: [], undecided: [] };

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
    const others = past.undecided.filter((it) => it !== id);
    return { ...past, undecided: event.type === 'approvalRequested' ? [...others, id] : others };
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
