import { isRecord } from './is-record.js';

/** Tells whether a value is what it should be. */
export type Guard<T> = (value: unknown) => value is T;

export const isNumber: Guard<number> = (value) => typeof value === 'number';
export const isFlag: Guard<boolean> = (value) => typeof value === 'boolean';
export const isText: Guard<string> = (value) => typeof value === 'string';

/** Of each item of a list. */
export const isListOf =
  <T>(isItem: Guard<T>): Guard<readonly T[]> =>
  (value): value is readonly T[] =>
    Array.isArray(value) && value.every((item) => isItem(item));

/** Of each field of an object. */
export const isShape =
  <T extends object>(fields: { readonly [Key in keyof T]: Guard<T[Key]> }): Guard<T> =>
  (value): value is T =>
    isRecord(value) &&
    Object.entries<Guard<unknown>>(fields).every(([key, isField]) => isField(value[key]));
