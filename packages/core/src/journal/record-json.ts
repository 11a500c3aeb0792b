import { errorCodes, isMillraceError, MillraceError, messageOf } from '../errors.js';
import type { AgentEvent } from '../events.js';
import { isRecord } from '../json.js';

/** Writes what a step gave as JSON, or throws `invalidState` where JSON cannot hold it. */
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
  `What the step '${id}' gave cannot be written down as JSON, and the call cannot be resumed without it`;

/** Writes an event as JSON. What JSON cannot hold of it is left out: it is the tool's own. */
export const eventText = (event: AgentEvent): string => {
  try {
    // A delta is plain: a replacer takes several times as long.
    return isDelta(event) ? JSON.stringify(event) : JSON.stringify(event, plain);
  } catch {
    return JSON.stringify(withoutOwn(event), plain);
  }
};

const isDelta = ({ type }: AgentEvent): boolean =>
  type === 'reasoningChunk' || type === 'summaryChunk';

/** What tools give for user interfaces may be anything. */
const withoutOwn = (event: AgentEvent): unknown => {
  const own: Readonly<Record<string, unknown>> = { ...event };
  return Object.fromEntries(
    Object.entries(own).map(([key, value]) => [key, canBeWritten(value) ? value : unwritable]),
  );
};

const unwritable = '(JSON cannot hold this)';

const canBeWritten = (value: unknown): boolean => {
  try {
    JSON.stringify(value, plain);
    return true;
  } catch {
    return false;
  }
};

/** An error says what a program branches on, and neither its cause nor its stack. */
const plain = (_key: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return String(value);
  if (!isMillraceError(value)) return value;
  const { code, message, retryable, userMessage } = value;
  return { code, message, retryable, userMessage };
};

/** Reads JSON of a store; throws `invalidState` where it is none, or holds keys that no program of ours writes. */
export const parsedText = (what: string, text: string): unknown => {
  try {
    // What spells the word with escapes is looked at, too.
    return mayPollute.test(text) ? JSON.parse(text, withoutPrototype) : JSON.parse(text);
  } catch (cause) {
    throw new MillraceError('invalidState', `${what} is broken: ${messageOf(cause)}`, { cause });
  }
};

const mayPollute = /__proto__|\\u005f/i;

/** A key that sets a prototype when the object is assigned to another is no key of ours. */
function withoutPrototype(this: unknown, key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}

/** Reads an event of a store, with its errors; throws `invalidState` where it is none. */
export const parsedEvent = (what: string, text: string): AgentEvent => {
  const parsed = parsedText(what, text);
  const event =
    isRecord(parsed) && isRecord(parsed['error'])
      ? { ...parsed, error: readError(parsed['error']) }
      : parsed;
  if (isEvent(event)) return event;
  throw new MillraceError('invalidState', `${what} is no event.`);
};

const isEvent = (value: unknown): value is AgentEvent =>
  isRecord(value) &&
  ['type', 'rootId', 'callId'].every((key) => typeof value[key] === 'string') &&
  ['iteration', 'seq', 'at'].every((key) => typeof value[key] === 'number') &&
  Array.isArray(value['agent']);

const readError = (written: Readonly<Record<string, unknown>>): MillraceError => {
  const { code, message, retryable, userMessage } = written;
  const known = errorCodes.find((it) => it === code) ?? 'unknown';
  return new MillraceError(known, String(message), {
    retryable: retryable === true,
    ...(typeof userMessage === 'string' && { userMessage }),
  });
};
