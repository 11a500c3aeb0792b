import { parsedJson, toExactJson } from 'millrace/values';
import type { JsonRecord } from './paths.js';

const json = Symbol('json');

/** A part of a body that is serialized already, and is inserted verbatim. */
export interface RawJson {
  readonly [json]: string;
}

/** A body with fields that may be serialized already. */
export type WithRawJson<Body> = { readonly [Name in keyof Body]: Body[Name] | RawJson };

/** Marks a string as JSON that must not be serialized again. */
export const rawJson = (text: string): RawJson => ({ [json]: text });

/** Joins serialized items to a JSON array. A string may hold several items; empty strings are skipped. */
export const rawJsonList = (items: readonly string[]): RawJson =>
  rawJson(`[${items.filter((item) => item !== '').join(',')}]`);

/** As `JSON.stringify`, for an object with fields that may be serialized already. */
export const stringifyObject = (fields: JsonRecord): string => {
  const texts = Object.entries(fields).map(([name, value]) =>
    isRawJson(value)
      ? `${JSON.stringify(name)}:${value[json]}`
      : // Wrapped in an object, because `JSON.stringify` omits fields without a JSON value.
        toExactJson({ [name]: value }).slice(1, -1),
  );
  return `{${texts.filter((text) => text !== '').join(',')}}`;
};

/** Returns the value of a field, parsed if it is serialized already. */
export const plainField = (value: unknown): unknown =>
  isRawJson(value) ? parsedJson(value[json]) : value;

const isRawJson = (value: unknown): value is RawJson =>
  typeof value === 'object' && value !== null && json in value;
