import { type ContentBlock, type Input, isEvent, type Message, textBlock } from '@millrace/core';
import { attach$, type CallStore } from '@millrace/core/journal';
import { isRecord } from '@millrace/core/values';
import { catchError, first, map, type Observable, of } from 'rxjs';
import type { UiMessagesInput } from '../ai-sdk/input-of-ui-messages.js';

/** A call that has not ended. */
export interface Run {
  readonly callId: string;
  readonly sessionId: string;
  /** Its question; empty if it was resumed, and has been recorded by another process. */
  readonly question: readonly Message[];
  /** The place of the answer in the client that asked. */
  readonly client: Pick<UiMessagesInput, 'messageId' | 'clientResults'> | undefined;
}

const questionMs = 10_000;

/** The question of a call that waits. */
export const questionOf = (callId: string, input: Input): readonly Message[] => {
  const content = typeof input === 'string' ? [textBlock(input)] : input;
  return Array.isArray(content) && content.every(isContent)
    ? [{ id: `${callId}/input/0`, role: 'user', content }]
    : [];
};

const isContent = (part: unknown): part is ContentBlock =>
  isRecord(part) && 'type' in part && part['type'] !== 'tool_result' && !('role' in part);

/** A call that was resumed has its question in the store. */
export const asked$ = (store: CallStore, run: Run): Observable<Run> =>
  run.question.length > 0 || run.client?.clientResults !== undefined
    ? of(run)
    : attach$(store, run.callId, { waitMs: questionMs }).pipe(
        first((event) => isEvent(event, 'preCall')),
        map((event) => (isEvent(event, 'preCall') ? { ...run, question: event.input } : run)),
        catchError(() => of(run)),
      );
