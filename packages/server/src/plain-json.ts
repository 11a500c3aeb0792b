import { eventPart, isRecord, unwritable } from 'millrace/values';

/**
 * Copies any value as JSON data, as a journal records it: what a client gets does not depend on who has read the event first.
 * A value that JSON cannot represent becomes a sentence or `null`. Omits keys that could reach a prototype, for which
 * strict parsers reject the whole stream.
 */
export const plainJson = (value: unknown): unknown => {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  try {
    const text: unknown = JSON.stringify(value, eventPart);
    if (typeof text !== 'string') return null;
    return unsafeKeys.some((key) => text.includes(key))
      ? JSON.parse(text, dropUnsafe)
      : JSON.parse(text);
  } catch {
    return unwritable;
  }
};

/** Whether `plainJson` omits keys of the value. */
export const hidesKeys = (value: unknown): boolean => {
  try {
    const text: unknown = JSON.stringify(value, eventPart);
    if (typeof text !== 'string' || !unsafeKeys.some((key) => text.includes(key))) return false;
    return JSON.stringify(JSON.parse(text, dropUnsafe)) !== text;
  } catch {
    // `plainJson` shows it as a sentence.
    return false;
  }
};

const unsafeKeys = ['"__proto__"', '"constructor"'];

const dropUnsafe = (key: string, value: unknown): unknown =>
  key === '__proto__' ||
  (key === 'constructor' && isRecord(value) && Object.hasOwn(value, 'prototype'))
    ? undefined
    : value;
