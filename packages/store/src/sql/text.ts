import type { Row } from './sql.js';

/** No text has it: it is reserved for ever, for uses such as this one. */
const mark = '\ufdd0';

/** What Postgres cannot hold is NUL and half a pair of code units. */
const impossible = /\p{Surrogate}|\ufdd0/gu;

/** Writes any text as one that Postgres can hold. Nearly all stay what they are. */
export const toSqlText = (text: string): string =>
  text.replace(impossible, escaped).replaceAll('\u0000', escaped);

/** The text that was written so. */
export const fromSqlText = (text: string): string =>
  text.replace(/\ufdd0([0-9a-f]{4})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );

const escaped = (unit: string): string => mark + unit.charCodeAt(0).toString(16).padStart(4, '0');

/** The text in a column. */
export const textIn = (row: Row, column: string): string => {
  const value = row[column];
  return typeof value === 'string' ? fromSqlText(value) : '';
};

/** The number in a column. Drivers give a big one as a text. */
export const numberIn = (row: Row, column: string): number => Number(row[column]);
