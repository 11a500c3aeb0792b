import { isRecord } from '@millrace/core/adapter';

/**
 * Copies a value as JSON data that every reader takes, whatever it is: what JSON cannot hold is a sentence or
 * `null`, and there are no keys that reach a prototype, for which strict readers refuse the whole stream.
 */
export const plainJson = (value: unknown): unknown => {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  try {
    const text: unknown = JSON.stringify(value, bigintAsText);
    if (typeof text !== 'string') return null;
    return suspects.some((key) => text.includes(key))
      ? JSON.parse(text, harmless)
      : JSON.parse(text);
  } catch {
    return 'A value that cannot be written as JSON.';
  }
};

/** Tells whether a value, as JSON, has keys that `plainJson` leaves out. */
export const hidesKeys = (value: unknown): boolean => {
  try {
    const text: unknown = JSON.stringify(value, bigintAsText);
    if (typeof text !== 'string' || !suspects.some((key) => text.includes(key))) return false;
    return JSON.stringify(JSON.parse(text, harmless)) !== text;
  } catch {
    // It is shown as a sentence that says so.
    return false;
  }
};

const suspects = ['"__proto__"', '"constructor"'];

const bigintAsText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value;

const harmless = (key: string, value: unknown): unknown =>
  key === '__proto__' ||
  (key === 'constructor' && isRecord(value) && Object.hasOwn(value, 'prototype'))
    ? undefined
    : value;
