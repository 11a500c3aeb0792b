import { parsedJson } from './json.js';
import type { Message, ToolResultBlock } from './message.js';

/** Freezes plain data deeply and returns it. Skips what is frozen already and whatever is more than data: bytes, dates, instances of classes. */
export const frozen = <T>(value: T): T => {
  if (!isPlain(value) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) frozen(part);
  return value;
};

export const isPlain = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** Freezes a message through and through, but for the `details` of results: those are the tool's own. */
export const freezeMessage = (message: Message): Message =>
  message.role === 'tool' && !Object.isFrozen(message)
    ? Object.freeze({ ...message, content: Object.freeze(message.content.map(freezeResult)) })
    : frozen(message);

/** Freezes a tool's result, but for its `details`. */
export const freezeResult = (result: ToolResultBlock): ToolResultBlock => {
  frozen(result.content);
  frozen(result.suspended);
  return Object.freeze(result);
};

/** Copies plain data through and through, so that whoever gets it may do with it what he wants. What is more than data is shared: bytes, dates, instances of classes. */
export const copied = (value: unknown, copies = new Map<object, unknown>()): unknown => {
  if (!isPlain(value)) return value;
  const before = copies.get(value);
  if (before !== undefined) return before;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    copies.set(value, list);
    for (const item of value) list.push(copied(item, copies));
    return list;
  }
  const record: Record<string, unknown> = {};
  copies.set(value, record);
  for (const [key, item] of Object.entries(value)) {
    // An assignment to `__proto__` would change the prototype.
    Object.defineProperty(record, key, {
      value: copied(item, copies),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return record;
};

/** What a tool gives for user interfaces may be anything: what JSON cannot hold of it is left out where a result is written down. */
export const withPlainDetails = ({ details, ...result }: ToolResultBlock): ToolResultBlock => {
  const plain = details === undefined ? undefined : plainOf(details);
  return plain === undefined ? result : { ...result, details: plain };
};

export const withPlainResults = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) =>
    message.role === 'tool'
      ? { ...message, content: message.content.map(withPlainDetails) }
      : message,
  );

const plainOf = (details: unknown): unknown => {
  try {
    const text: unknown = JSON.stringify(details);
    return typeof text === 'string' ? parsedJson(text) : undefined;
  } catch {
    return undefined;
  }
};
