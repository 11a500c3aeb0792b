import { errorCodes, messageOf, MillraceError } from '../values/errors.js';
import type { AgentEvent, EventType } from '../events.js';
import { frozen } from '../values/message.js';
import { isRecord } from '../values/json.js';
import { eventPart, unwritable } from '../values/plain-json.js';
import type { StoredRecord } from './call-store-driver.js';

export const stepText = (id: string, value: unknown): string => {
  try {
    const text: unknown = JSON.stringify(value ?? null);
    if (typeof text === 'string') return text;
  } catch (cause) {
    throw new MillraceError('invalidState', `${notJson(id)}: ${messageOf(cause)}.`, { cause });
  }
  throw new MillraceError('invalidState', `${notJson(id)}.`);
};

const notJson = (id: string): string =>
  `The value of the step '${id}' cannot be converted to JSON, which resuming the call requires`;

export const eventText = (event: { readonly type: string }): string => {
  try {
    return JSON.stringify(event, eventPart);
  } catch {
    return JSON.stringify(withoutOwn(event), eventPart);
  }
};

const withoutOwn = (event: object): unknown => {
  const own: Readonly<Record<string, unknown>> = { ...event };
  return Object.fromEntries(
    Object.entries(own).map(([key, value]) => [key, canBeWritten(value) ? value : unwritable]),
  );
};

export const canBeWritten = (value: unknown): boolean => {
  try {
    JSON.stringify(value, eventPart);
    return true;
  } catch {
    return false;
  }
};

export const parsedText = (what: string, text: string): unknown => {
  try {
    // Also matches escaped spellings.
    return JSON.parse(text, mayPollute.test(text) ? withoutPrototype : undefined);
  } catch (cause) {
    throw new MillraceError('invalidState', `${what} is damaged: ${messageOf(cause)}`, { cause });
  }
};

const mayPollute = /__proto__|\\u005f/i;

function withoutPrototype(this: unknown, key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}

const values = new WeakMap<StoredRecord, unknown>();

export const withValue = (record: StoredRecord, value: unknown): StoredRecord => {
  values.set(record, value);
  return record;
};

export const storedEvent = (callId: string, record: StoredRecord): AgentEvent => {
  const what = `The event ${record.seq} of the call '${callId}'`;
  const parsed = values.has(record) ? values.get(record) : parsedText(what, record.text);
  const event =
    isRecord(parsed) && isRecord(parsed['error'])
      ? { ...parsed, error: readError(parsed['error']) }
      : parsed;
  if (isEvent(event)) return frozen(event);
  throw new MillraceError('invalidState', `${what} is not an event.`);
};

export const isEnd = ({ type, callId }: AgentEvent, logOf: string): boolean =>
  (type === 'postCall' || type === 'error') && callId === logOf;

export const sessionChanges: ReadonlySet<EventType> = new Set([
  'messagesAppended',
  'messagesRemoved',
  'headMoved',
  'stateChanged',
]);

const isEvent = (value: unknown): value is AgentEvent =>
  isRecord(value) &&
  ['type', 'rootId', 'callId'].every((key) => typeof value[key] === 'string') &&
  ['iteration', 'seq', 'at'].every((key) => typeof value[key] === 'number') &&
  Array.isArray(value['agent']);

const readError = (written: Readonly<Record<string, unknown>>): MillraceError => {
  const { code, message, retryable, userMessage, status, requestId } = written;
  const known = errorCodes.find((it) => it === code) ?? 'unknown';
  return new MillraceError(known, String(message), {
    retryable: retryable === true,
    ...(typeof userMessage === 'string' && { userMessage }),
    ...(typeof status === 'number' && { status }),
    ...(typeof requestId === 'string' && { requestId }),
  });
};
