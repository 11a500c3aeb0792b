import type { EventType } from '../events.js';

/** The events by which a session becomes another than it was, beside the beginning and the end of a call. */
export const sessionChanges: ReadonlySet<EventType> = new Set([
  'messagesAppended',
  'messagesRemoved',
  'stateChanged',
]);
