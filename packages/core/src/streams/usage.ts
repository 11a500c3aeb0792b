import { defer, filter, map, type Observable, scan } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { addUsage, noUsage, type Usage } from '../usage.js';

/**
 * Emits the running total of the usage of all calls, sub-agents included, whenever it grows: `events$.pipe(usage$)`. A request counts once, when its message is complete; one that was cut counts with its call's reply, and not at all if the call fails. Each
 * subscription counts from zero; in the middle of a call, it counts what that call has cost with its reply. Completes with the events.
 */
export const usage$ = (event$: Observable<AgentEvent>): Observable<Usage> =>
  defer(() => {
    const calls: Calls = new Map();
    return event$.pipe(
      map((event) => growth(event, calls)),
      filter(isSome),
      scan(addUsage, noUsage),
    );
  });

type Calls = Map<string, { readonly parentId: string | undefined; counted: Usage }>;

const growth = (event: AgentEvent, calls: Calls): Usage => {
  const { callId, parentId } = event;
  const call = calls.get(callId) ?? { parentId, counted: noUsage };
  calls.set(callId, call);
  switch (event.type) {
    case 'postReasoning':
    case 'postSummary':
    case 'postPlanning':
      count(event, event.usage, calls);
      return event.usage;
    case 'postCall': {
      const more = beyond(event.reply.usage, call.counted);
      count(event, more, calls);
      calls.delete(callId);
      return more;
    }
    case 'error':
      calls.delete(callId);
      return noUsage;
    default:
      return noUsage;
  }
};

const count = (
  { callId, rootId }: Pick<AgentEvent, 'callId' | 'rootId'>,
  usage: Usage,
  calls: Calls,
): void => {
  const call = calls.get(callId);
  if (call !== undefined) call.counted = addUsage(call.counted, usage);
  if (callId === rootId) return;
  // Of a call above that has not been heard yet, all that is known is the root.
  const above = call?.parentId ?? rootId;
  count({ callId: above, rootId }, usage, calls);
};

const beyond = (all: Usage, known: Usage): Usage => ({
  inputTokens: Math.max(0, all.inputTokens - known.inputTokens),
  outputTokens: Math.max(0, all.outputTokens - known.outputTokens),
  cacheReadTokens: Math.max(0, all.cacheReadTokens - known.cacheReadTokens),
  cacheWriteTokens: Math.max(0, all.cacheWriteTokens - known.cacheWriteTokens),
});

const isSome = (usage: Usage): boolean => Object.values(usage).some((tokens) => tokens > 0);
