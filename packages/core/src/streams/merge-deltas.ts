import type { ObservableInput, ObservedValueOf, OperatorFunction } from 'rxjs';
import type { AgentEvent, EventOf } from '../events.js';
import { createQueue, type Queue } from './queue.js';
import { queuedMap } from './queued-map.js';

/**
 * A `concatMap` over events for a slow consumer: deltas of a message that wait for the running inner Observable are merged into one event, with joined text and the last `seq` and `at`. Other events are never merged or dropped, no delta of their root call
 * overtakes them, and `seq` still increases. Completes with the last inner Observable. An error of the source comes after what waits, an error of an inner one immediately.
 */
export const coalesceMap = <Event extends AgentEvent, Inner extends ObservableInput<unknown>>(
  project: (event: Event) => Inner,
): OperatorFunction<Event, ObservedValueOf<Inner>> => queuedMap(project, createEventQueue<Event>);

interface Entry<Event> {
  last: Event;
  readonly deltas: string[];
  /** Its places in the queue: only the last one counts. Without any it has been taken out. */
  places: number;
}

/**
 * Makes a queue that merges deltas while at least `mergeFrom` events wait: a delta is merged with the waiting event that it continues, and takes its own place in the order. Nothing overtakes a structural event of its root call. Each event costs constant time; text is joined once.
 */
export const createEventQueue = <Event extends AgentEvent>(mergeFrom = 0): Queue<Event> => {
  const queue = createQueue<Entry<Event>>();
  /** By root call, and there by call: the last waiting delta since the last structural event. */
  const open = new Map<string, Map<string, Entry<Event>>>();
  let size = 0;

  const place = (entry: Entry<Event>): void => {
    entry.places += 1;
    queue.push(entry);
  };
  const add = (event: Event, deltas: string[]): Entry<Event> => {
    const entry = { last: event, deltas, places: 0 };
    size += 1;
    place(entry);
    return entry;
  };
  const addDelta = (event: Event, delta: string): void => {
    const { rootId, callId } = event;
    const calls = open.get(rootId) ?? new Map<string, Entry<Event>>();
    const waiting = calls.get(callId);
    if (waiting !== undefined && size >= mergeFrom && continues(waiting.last, event)) {
      waiting.last = event;
      waiting.deltas.push(delta);
      place(waiting);
    } else {
      open.set(rootId, calls.set(callId, add(event, [delta])));
    }
  };
  const close = (entry: Entry<Event>): void => {
    const { rootId, callId } = entry.last;
    const calls = open.get(rootId);
    if (calls?.get(callId) !== entry) return;
    calls.delete(callId);
    if (calls.size === 0) open.delete(rootId);
  };
  return {
    get size() {
      return size;
    },
    push: (event) => {
      if (isDelta(event)) {
        addDelta(event, event.delta);
      } else {
        open.delete(event.rootId);
        add(event, []);
      }
    },
    shift: () => {
      let entry = queue.shift();
      while (entry !== undefined) {
        entry.places -= 1;
        if (entry.places === 0) break;
        entry = queue.shift();
      }
      if (entry === undefined) return undefined;
      size -= 1;
      close(entry);
      return mergeDeltas(entry.last, entry.deltas);
    },
  };
};

/** A piece of a message that grows. Every other event is structural: it is never merged. */
type DeltaEvent = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>;

export const isDelta = <Event extends AgentEvent>(event: Event): event is Event & DeltaEvent =>
  event.type === 'reasoningChunk' ||
  event.type === 'summaryChunk' ||
  event.type === 'planningChunk';

export const isAnswerDelta = <Event extends AgentEvent>(
  event: Event,
): event is Event & EventOf<'reasoningChunk' | 'summaryChunk'> =>
  event.type === 'reasoningChunk' || event.type === 'summaryChunk';

/** Tells whether an event adds to the very text that another one of its call, before it, added to. */
const continues = (earlier: AgentEvent, later: AgentEvent): boolean =>
  isDelta(earlier) &&
  isDelta(later) &&
  earlier.messageId === later.messageId &&
  earlier.type === later.type &&
  earlier.kind === later.kind &&
  earlier.toolUse?.id === later.toolUse?.id;

/** Makes one event of several that continue one another: the last one, with all their deltas. */
const mergeDeltas = <Event extends AgentEvent>(last: Event, deltas: readonly string[]): Event => {
  if (deltas.length < 2) return last;
  const merged = { ...last, delta: deltas.join('') };
  Object.freeze(merged);
  return merged;
};
