import { isRecord } from '@millrace/core/values';

/**
 * Copies any value as JSON data. A value that JSON cannot represent becomes a sentence or `null`. Omits keys that could
 * reach a prototype, for which strict parsers reject the whole stream.
 */
export const plainJson = (value: unknown): unknown => {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  try {
    const text: unknown = JSON.stringify(value, bigintAsText);
    if (typeof text !== 'string') return null;
    return unsafeKeys.some((key) => text.includes(key))
      ? JSON.parse(text, dropUnsafe)
      : JSON.parse(text);
  } catch {
    return 'A value that JSON cannot represent.';
  }
};

/** Whether `plainJson` omits keys of the value. */
export const hidesKeys = (value: unknown): boolean => {
  try {
    const text: unknown = JSON.stringify(value, bigintAsText);
    if (typeof text !== 'string' || !unsafeKeys.some((key) => text.includes(key))) return false;
    return JSON.stringify(JSON.parse(text, dropUnsafe)) !== text;
  } catch {
    // `plainJson` shows it as a sentence.
    return false;
  }
};

const unsafeKeys = ['"__proto__"', '"constructor"'];

const bigintAsText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value;

const dropUnsafe = (key: string, value: unknown): unknown =>
  key === '__proto__' ||
  (key === 'constructor' && isRecord(value) && Object.hasOwn(value, 'prototype'))
    ? undefined
    : value;
