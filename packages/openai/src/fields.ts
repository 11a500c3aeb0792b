import { isRecord } from 'millrace/values';
import type { JsonRecord } from '@millrace/wire';

/**
 * Returns a JSON object, and an empty one for any other value: a cheap way to read many fields that are mostly missing.
 */
export const fieldsOf = (value: unknown): JsonRecord => (isRecord(value) ? value : none);

const none: JsonRecord = {};

/** The string in a field, else `''`. */
export const textIn = (field: unknown): string => (typeof field === 'string' ? field : '');

/** The array in a field, a single object as a list of it, else `[]`. */
export const listIn = (field: unknown): readonly unknown[] =>
  Array.isArray(field)
    ? field
    : isRecord(field) && Object.keys(field).length > 0
      ? [field]
      : nothing;

const nothing: readonly unknown[] = [];

/** An index, which some servers send as a string: without it, the arguments of one call would be those of another. */
export const indexIn = (value: unknown): number | undefined => {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
};
