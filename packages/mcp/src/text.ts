import { createHash } from 'node:crypto';
import type { JsonSchema } from 'millrace';
import { isRecord, untrustedText } from 'millrace/values';

/** Text of a server for models and people, cleaned and with a maximum length. */
export const cleaned = (text: string, maxLength: number): string => {
  const clean = untrustedText(text.slice(0, 2 * maxLength + 1_000));
  if (clean.length <= maxLength) return clean;
  return `${clean.slice(0, maxLength).replace(/\p{Cs}$/u, '')}…`;
};

/** A value of a server as one line of JSON, which stays JSON if it is cleaned: strings may contain raw line separators. */
export const lineOfJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u0085\u2028\u2029]/g,
    (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The name of a tool for the model: the prefix and the server's name, within the limits of all providers. */
export const safeName = (prefix: string, name: string): string => {
  const safe = `${prefix}${name}`.replace(/[^\w-]/g, '_');
  if (safe.length <= 64) return safe;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${safe.slice(0, 55)}_${digest}`;
};

/** Cleans the descriptions in a schema. Data, such as in an `enum`, stays unchanged. */
export const readableSchema = (schema: JsonSchema, maxLength: number): JsonSchema => {
  const part = (value: unknown): unknown =>
    isRecord(value) ? readableSchema(value, maxLength) : value;
  const entries = Object.entries(schema).map(([key, value]): readonly [string, unknown] => {
    if (/^(enum|const|default|examples)$/.test(key)) return [key, value];
    if (/^(description|title|\$comment)$/.test(key) && typeof value === 'string') {
      return [key, cleaned(value, maxLength)];
    }
    return [key, Array.isArray(value) ? value.map(part) : part(value)];
  });
  return Object.fromEntries(entries);
};
