import { filter, groupBy, type GroupedObservable, type OperatorFunction } from 'rxjs';
import { type AgentEvent, isEvent } from '../events.js';

/**
 * Groups events by `callId`: emits one Observable a call, when its first event is heard, which completes behind
 * its last one (`postCall` or `error`). So nothing is kept for calls that are over; give it all events of a call, or
 * it cannot know. A sub-agent's call is a call of its own, and a call that was joined late begins in its middle. The
 * groups are hot: subscribe to each when it comes.
 */
export const byCall = (): OperatorFunction<AgentEvent, GroupedObservable<string, AgentEvent>> =>
  groupBy(({ callId }) => callId, {
    duration: (call$) => call$.pipe(filter((event) => isEvent(event, 'postCall', 'error'))),
  });
