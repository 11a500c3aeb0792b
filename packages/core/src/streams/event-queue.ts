import type { AgentEvent } from '../events.js';
import { continues, isDelta, mergeDeltas } from './merge-deltas.js';
import { createQueue, type Queue } from './queue.js';

interface Entry<Event> {
  last: Event;
  readonly deltas: string[];
  /** Its places in the queue: only the last one counts. Without any it has been taken out. */
  places: number;
}

/**
 * Makes a queue of events that merges deltas while at least `mergeFrom` events wait: a delta goes into the
 * waiting event of its call that it continues, and takes it along to its own place, so that `seq` still
 * increases. Nothing gets past a structural event of the same root call; so only deltas of calls that run at
 * once change places. Each event costs constant time, and a text is joined once.
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
