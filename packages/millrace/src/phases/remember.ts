import { defer, EMPTY, ignoreElements, type Observable, tap } from 'rxjs';
import { contained, failAs } from '../flow/contained.js';
import type { ReportedPayload } from '../events.js';
import { freezeMessage, type Message } from '../values/message.js';
import type { Hooks } from '../seams/hooks.js';
import { appended$, type Memory, type MemoryChange, noMemory } from '../values/memory.js';
import { defined } from '../values/json.js';
import { assertPaired, type Run } from '../run.js';

/** Stores messages after late results, all or none; reports the changes. Errors if a tool call has no result. */
export const remember$ = (
  { hooks }: { readonly hooks: Pick<Hooks, 'report'> },
  memory: Memory,
  { iteration, late }: Pick<Run, 'iteration' | 'late'>,
  messages: readonly Message[],
  hasFailed = false,
): Observable<never> =>
  defer(() => {
    assertPaired(messages);
    if (memory === noMemory) return EMPTY;
    const stored = [...late, ...messages].map(freezeMessage);
    return appended$(memory, stored, hasFailed ? { hasFailed } : undefined).pipe(
      contained(),
      failAs('memory', 'The messages could not be stored'),
      tap((change) => memoryChanges(change).forEach((event) => hooks.report(iteration, event))),
      ignoreElements(),
    );
  });

export type MessagesChange = Extract<
  ReportedPayload,
  { type: 'messagesAppended' | 'messagesRemoved' | 'headMoved' }
>;

export const memoryChanges = ({
  appended,
  removed,
  after,
  head,
}: MemoryChange): readonly MessagesChange[] => {
  const messages = Object.freeze(appended.map(freezeMessage));
  // An append after the head moves it, which is not reported.
  const isAppend = messages.length > 0 && head?.from === after;
  return [
    ...(removed.length > 0
      ? [{ type: 'messagesRemoved', ids: Object.freeze([...removed]) } as const]
      : []),
    ...(messages.length > 0
      ? [{ type: 'messagesAppended', messages, ...defined({ after }) } as const]
      : []),
    ...(head === undefined || head.from === head.to || isAppend
      ? []
      : [{ type: 'headMoved', from: head.from, to: head.to } as const]),
  ];
};
