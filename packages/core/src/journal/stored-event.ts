import type { AgentEvent } from '../events.js';
import { frozen } from '../frozen.js';
import type { StoredRecord } from './call-store-driver.js';
import { parsedEvent } from './record-json.js';

/** Reads the event of a record, frozen; throws `invalidState` where it is none. */
export const storedEvent = (callId: string, { seq, text }: StoredRecord): AgentEvent =>
  frozen(parsedEvent(`The event ${seq} of the call '${callId}'`, text));

/** Tells whether a record is the last event of its outermost call, unless that is resumed. */
export const isEnd = ({ type, callId, rootId }: AgentEvent): boolean =>
  (type === 'postCall' || type === 'error') && callId === rootId;

/** Tells whether a record may be such an event, without reading it. */
export const mayBeEnd = ({ kind, name }: StoredRecord): boolean =>
  kind === 'event' && (name === 'postCall' || name === 'error');
