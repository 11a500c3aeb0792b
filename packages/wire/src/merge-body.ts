import { isRecord } from 'millrace/values';
import type { JsonRecord } from './paths.js';
import { plainField } from './raw-json.js';

/**
 * Adds the user's fields to a request. Objects are merged one level deep, and lists such as `include` and `tools` are
 * united. Any other field replaces that of the request, and so do an object of another `type`, and the conversation.
 */
export const mergeBody = (
  fields: JsonRecord,
  ...bodies: readonly (JsonRecord | undefined)[]
): JsonRecord => {
  let merged = fields;
  for (const body of bodies) {
    if (body === undefined) continue;
    const changed = Object.entries(body).map(
      ([name, value]) => [name, mergeField(name, merged[name], value)] as const,
    );
    merged = { ...merged, ...Object.fromEntries(changed) };
  }
  return merged;
};

const conversation: ReadonlySet<string> = new Set(['input', 'messages']);

const mergeField = (name: string, raw: unknown, given: unknown): unknown => {
  if (raw === undefined || typeof given !== 'object' || conversation.has(name)) return given;
  const own = plainField(raw);
  if (Array.isArray(own) && Array.isArray(given)) return unionOf(own, given);
  return isRecord(own) && isRecord(given) && isSameType(own, given) ? { ...own, ...given } : given;
};

/** Fields of one type make no sense in an object of another. */
const isSameType = ({ type }: JsonRecord, given: JsonRecord): boolean =>
  type === undefined || given['type'] === undefined || type === given['type'];

const unionOf = (own: readonly unknown[], given: readonly unknown[]): readonly unknown[] => {
  const known = new Set(own.map((it) => JSON.stringify(it)));
  return [...own, ...given.filter((it) => !known.has(JSON.stringify(it)))];
};
