import { isRecord } from '@millrace/core/adapter';

/** An object of a vendor's JSON, of which nothing is certain. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Reads what is at a path of own properties; `undefined` where the path leads nowhere. */
export const at = (value: unknown, ...path: readonly string[]): unknown => {
  let found = value;
  for (const key of path) {
    if (!isRecord(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return found;
};

/** Reads the text at a path; an empty one where there is none. */
export const textAt = (value: unknown, ...path: readonly string[]): string => {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
};

/** Reads the list at a path; an empty one where there is none. */
export const listAt = (value: unknown, ...path: readonly string[]): readonly unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** Reads the number of things at a path; `undefined` where there is none. */
export const countAt = (value: unknown, ...path: readonly string[]): number | undefined => {
  const found = at(value, ...path);
  return typeof found === 'number' && Number.isFinite(found) && found >= 0 ? found : undefined;
};
