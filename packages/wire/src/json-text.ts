import type { JsonRecord } from './paths.js';

const json = Symbol('json');

/** A part of a body that is written already, and goes into it as it is. */
export interface JsonText {
  readonly [json]: string;
}

/** What a body is written from: some of its parts may be written already. */
export type Written<Body> = { readonly [Name in keyof Body]: Body[Name] | JsonText };

/** Takes a JSON text for what it is, and not for a text to be written. */
export const jsonText = (text: string): JsonText => ({ [json]: text });

/** Makes a list of items that are written. An empty text is no item; one text may be several. */
export const jsonList = (items: readonly string[]): JsonText =>
  jsonText(`[${items.filter((item) => item !== '').join(',')}]`);

/** Writes an object, as `JSON.stringify` does, some fields of which may be written already. */
export const writeObject = (fields: JsonRecord): string => {
  const texts = Object.entries(fields).map(([name, value]) =>
    isWritten(value)
      ? `${JSON.stringify(name)}:${value[json]}`
      : // Within an object, what JSON does not know is left out.
        JSON.stringify({ [name]: value }).slice(1, -1),
  );
  return `{${texts.filter((text) => text !== '').join(',')}}`;
};

const isWritten = (value: unknown): value is JsonText =>
  typeof value === 'object' && value !== null && json in value;
