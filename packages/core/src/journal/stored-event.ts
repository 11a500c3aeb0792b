import type { AgentEvent, EventType } from '../events.js';
import { frozen } from '../frozen.js';
import type { StoredRecord } from './call-store-driver.js';
import { parsedEvent } from './record-json.js';

/** Reads the event of a record, frozen; throws `invalidState` where it is none. */
export const storedEvent = (callId: string, { seq, text }: StoredRecord): AgentEvent =>
  frozen(parsedEvent(`The event ${seq} of the call '${callId}'`, text));

/** Tells whether an event is the last one of the call whose log it is in, unless that is resumed. */
export const isEnd = ({ type, callId }: AgentEvent, logOf: string): boolean =>
  (type === 'postCall' || type === 'error') && callId === logOf;

/** Tells whether a record may be such an event, without reading it. */
export const mayBeEnd = ({ kind, name }: StoredRecord): boolean =>
  kind === 'event' && (name === 'postCall' || name === 'error');

/** The events by which a session becomes another than it was, beside the beginning and the end of a call. */
export const sessionChanges: ReadonlySet<EventType> = new Set([
  'messagesAppended',
  'messagesRemoved',
  'stateChanged',
]);
