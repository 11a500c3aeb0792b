export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** Drops fields that are `undefined`: such an option counts as not set. */
export const defined = <T extends object>(given: T | undefined): Defined<T> =>
  given !== undefined && Object.values(given).includes(undefined)
    ? withoutUndefined(given)
    : { ...given };

const withoutUndefined = (given: object): object =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Whether a value is an object, and neither an array nor null. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses JSON; returns `undefined` if the text is not JSON. */
export const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** JSON that does not depend on the order of keys: equal for equal values. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) =>
    isRecord(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );

/** A hash of a string, the same in every process: FNV-1a with 32 bits, http://www.isthe.com/chongo/tech/comp/fnv. It keeps no secret. */
export const fnv1a = (text: string): number =>
  new TextEncoder()
    .encode(text)
    .reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5) >>> 0;

/** Whether two values of JSON are equal: the order of keys does not matter. */
export const isSameJson = (one: unknown, other: unknown): boolean => {
  if (!isObjectOrList(one) || !isObjectOrList(other)) return one === other;
  const keys = Object.keys(one);
  const isSameAt = (key: string): boolean =>
    Object.hasOwn(other, key) && isSameJson(Reflect.get(one, key), Reflect.get(other, key));
  return (
    Array.isArray(one) === Array.isArray(other) &&
    keys.length === Object.keys(other).length &&
    keys.every(isSameAt)
  );
};

/**
 * Whether JSON may repeat a key in one object: it has more keys than its value. A string that starts with a colon can cause a false
 * positive.
 */
export const mayRepeatKeys = (json: string, value: unknown): boolean =>
  (json.match(keyEnds)?.length ?? 0) > keysIn(value);

/** A quote before a colon, after an even number of backslashes: an odd number escapes it. */
const keyEnds = /(?<!(?<!\\)(?:\\\\)*\\)"\s*:/g;

const keysIn = (value: unknown): number => {
  if (!isObjectOrList(value)) return 0;
  const values: readonly unknown[] = Object.values(value);
  let count = Array.isArray(value) ? 0 : values.length;
  for (const item of values) count += keysIn(item);
  return count;
};

/** Maximum depth of a value from outside: much of the code that handles it is recursive. */
const maxDepth = 100;

/** Whether a value of JSON is nested more than 100 levels deep, or contains itself. */
export const isTooDeep = (value: unknown): boolean => {
  let level: readonly object[] = isObjectOrList(value) ? [value] : [];
  for (let depth = 0; depth <= maxDepth; depth += 1) {
    if (level.length === 0) return false;
    // A shared object is visited one time: a cyclic one would never end.
    level = [...new Set(level.flatMap((item) => Object.values(item).filter(isObjectOrList)))];
  }
  return true;
};

export const isObjectOrList = (value: unknown): value is object =>
  typeof value === 'object' && value !== null;
