import { isRecord, parsedJson } from 'millrace/values';

/** A field of JSON, or of a value that came from outside. Undefined if there is none. */
export const fieldOf = (value: unknown, name: string): unknown => {
  const record = typeof value === 'string' ? parsedJson(value) : value;
  return isRecord(record) ? record[name] : undefined;
};

/** A string that the other side must have sent: without it, there is nothing to attack. */
export const textOf = (value: unknown, name: string): string => {
  const field = fieldOf(value, name);
  if (typeof field === 'string') return field;
  const shown = typeof value === 'string' ? value : JSON.stringify(value);
  throw new Error(`There is no string '${name}' in ${shown}`);
};
