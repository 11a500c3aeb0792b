import { isRecord } from '@millrace/wire';

/** An object of a vendor's JSON, of which nothing is certain. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** What is at a path of own properties; `undefined` where the path leads nowhere. */
export const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (it, key) => (isRecord(it) && Object.hasOwn(it, key) ? it[key] : undefined),
    value,
  );

/** The text at a path; an empty one where there is none. */
export const textAt = (value: unknown, ...path: readonly string[]): string => {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
};

/** The list at a path; an empty one where there is none. */
export const listAt = (value: unknown, ...path: readonly string[]): readonly unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** The number of things at a path; `undefined` where there is none. */
export const countAt = (value: unknown, ...path: readonly string[]): number | undefined => {
  const found = at(value, ...path);
  return typeof found === 'number' && Number.isFinite(found) && found >= 0 ? found : undefined;
};

/** Parses a text; `undefined` where it is no JSON. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
