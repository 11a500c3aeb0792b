import { isRecord } from 'millrace/values';

/** A JSON object of a vendor, with unknown fields. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Returns the value at a path of own properties; `undefined` if it does not exist. */
export const at = (value: unknown, ...path: readonly string[]): unknown => {
  let found = value;
  for (const key of path) {
    if (!isRecord(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return found;
};

/** Returns the string at a path, else `''`. */
export const textAt = (value: unknown, ...path: readonly string[]): string => {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
};

/** Returns the array at a path, else `[]`. */
export const listAt = (value: unknown, ...path: readonly string[]): readonly unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** Returns the finite number of at least 0 at a path, else `undefined`. */
export const countAt = (value: unknown, ...path: readonly string[]): number | undefined => {
  const found = at(value, ...path);
  return typeof found === 'number' && Number.isFinite(found) && found >= 0 ? found : undefined;
};
