import { defer, filter, map, type Observable, scan } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { addUsage, noUsage, type Usage } from '../usage.js';

/**
 * An operator, for `events$.pipe(usage$)`: emits the running total of all that calls cost, sub-agents included,
 * whenever it has grown. A request counts when its message is whole; one that was cut counts with the reply of its call,
 * and is not known of a call that fails. Each subscription counts from zero. Ends as the events do.
 */
export const usage$ = (event$: Observable<AgentEvent>): Observable<Usage> =>
  defer(() => {
    const counted = new Map<string, Usage>();
    return event$.pipe(
      map((event) => growth(event, counted)),
      filter(isSome),
      scan(addUsage, noUsage),
    );
  });

/** What an event adds to the total. `counted` holds what has been counted of the calls that run. */
const growth = (event: AgentEvent, counted: Map<string, Usage>): Usage => {
  const { callId } = event;
  const before = counted.get(callId) ?? noUsage;
  switch (event.type) {
    case 'postReasoning':
    case 'postSummary':
    case 'postPlanning':
      counted.set(callId, addUsage(before, event.usage));
      return event.usage;
    case 'postCall':
      counted.delete(callId);
      return beyond(event.reply.usage, before);
    case 'error':
      counted.delete(callId);
      return noUsage;
    default:
      return noUsage;
  }
};

const beyond = (all: Usage, known: Usage): Usage => ({
  inputTokens: Math.max(0, all.inputTokens - known.inputTokens),
  outputTokens: Math.max(0, all.outputTokens - known.outputTokens),
  cacheReadTokens: Math.max(0, all.cacheReadTokens - known.cacheReadTokens),
  cacheWriteTokens: Math.max(0, all.cacheWriteTokens - known.cacheWriteTokens),
});

const isSome = (usage: Usage): boolean => Object.values(usage).some((tokens) => tokens > 0);
