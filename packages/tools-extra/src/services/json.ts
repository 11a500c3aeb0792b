import { isRecord } from 'millrace/values';

export const valueAt = (json: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, key) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    json,
  );

/** The list at a path, or an empty one. */
export const listAt = (json: unknown, ...path: readonly string[]): readonly unknown[] => {
  const value = valueAt(json, ...path);
  return Array.isArray(value) ? value : [];
};

/** The string or number at a path as a string, or `''`. */
export const textAt = (json: unknown, ...path: readonly string[]): string => {
  const value = valueAt(json, ...path);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
};

/** The number at a path, also if it is written as a string, or `undefined`. */
export const numberAt = (json: unknown, ...path: readonly string[]): number | undefined => {
  const text = textAt(json, ...path);
  return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined;
};
