import { defer, EMPTY, ignoreElements, type Observable, tap } from 'rxjs';
import { contained, failAs } from '../flow/contained.js';
import type { Context } from '../seams/context.js';
import type { ReportedPayload } from '../events.js';
import { freezeMessage, type Message } from '../values/message.js';
import type { Hooks } from '../seams/hooks.js';
import { appended$, type MemoryChange, noMemory } from '../values/memory.js';
import { assertPaired, type Run } from '../run.js';

/** What writing to memory needs of a call. */
export interface Remembering extends Pick<Context, 'memory'> {
  readonly hooks: Pick<Hooks, 'report'>;
}

/** Writes messages, all of them or none, tells what memory has of them, and completes; refuses a tool use that is not with its result. Before them go results that have come later than the turn that asked for them. */
export const remember$ = (
  { memory, hooks }: Remembering,
  { iteration, late }: Pick<Run, 'iteration' | 'late'>,
  messages: readonly Message[],
  hasFailed = false,
): Observable<never> =>
  defer(() => {
    assertPaired(messages);
    if (memory === noMemory) return EMPTY;
    return appended$(memory, [...late, ...messages].map(freezeMessage), hasFailed).pipe(
      contained(),
      failAs('memory', 'The memory could not be written'),
      tap((change) => memoryChanges(change).forEach((told) => hooks.report(iteration, told))),
      ignoreElements(),
    );
  });

export type MessagesChange = Extract<
  ReportedPayload,
  { type: 'messagesAppended' | 'messagesRemoved' }
>;

export const memoryChanges = ({ appended, removed }: MemoryChange): readonly MessagesChange[] => [
  ...(removed.length > 0
    ? [{ type: 'messagesRemoved', ids: Object.freeze([...removed]) } as const]
    : []),
  ...(appended.length > 0
    ? [{ type: 'messagesAppended', messages: Object.freeze(appended.map(freezeMessage)) } as const]
    : []),
];
