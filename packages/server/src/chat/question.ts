import { type ContentBlock, type Input, isEvent, type Message, textBlock } from '@millrace/core';
import { attach$, type CallStore } from '@millrace/core/journal';
import { isRecord } from '@millrace/core/values';
import { catchError, filter, map, type Observable, of, take } from 'rxjs';

const questionMs = 10_000;

/** The question of a call that waits for its turn. */
export const questionOf = (callId: string, input: Input): readonly Message[] => {
  const content = typeof input === 'string' ? [textBlock(input)] : input;
  return input !== '' && Array.isArray(content) && content.every(isContent)
    ? [{ id: `${callId}/input/0`, role: 'user', content }]
    : [];
};

const isContent = (part: unknown): part is ContentBlock =>
  isRecord(part) && 'type' in part && part['type'] !== 'tool_result' && !('role' in part);

/** The question of a call in the store; empty if it was asked with results of tools. */
export const storedQuestion$ = (store: CallStore, callId: string): Observable<readonly Message[]> =>
  attach$(store, callId, { waitMs: questionMs }).pipe(
    filter((event) => isEvent(event, 'preCall')),
    take(1),
    map(({ input }) => input.filter(({ role }) => role === 'user')),
    catchError(() => of([])),
  );
