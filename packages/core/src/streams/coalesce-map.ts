import type { ObservableInput, ObservedValueOf, OperatorFunction } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { createEventQueue } from './event-queue.js';
import { queuedMap } from './queued-map.js';

/**
 * A `concatMap` over events for a consumer that is slower than they come: the deltas of a message that wait behind
 * the running inner Observable become one event, with their texts joined, and `seq` and `at` of the last. Nothing is
 * lost: structural events are neither merged nor dropped, none gets past a delta of its root call, and `seq` still
 * increases; only deltas of calls that run at once may change places. It completes with the last inner Observable;
 * an error of the source comes behind what waits, an error of an inner one at once. Cold or hot, as the events are.
 */
export const coalesceMap = <Event extends AgentEvent, Inner extends ObservableInput<unknown>>(
  project: (event: Event) => Inner,
): OperatorFunction<Event, ObservedValueOf<Inner>> => queuedMap(project, createEventQueue<Event>);
