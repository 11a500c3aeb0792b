import type { StoredRecord } from 'millrace/journal';
import type { Row } from './sql.js';

/** A Unicode noncharacter, reserved for internal use, that starts an escape sequence. */
const escapeMark = '\ufdd0';

/** Postgres cannot store NUL and lone surrogates. */
const unsupported = /\p{Surrogate}|\ufdd0/gu;

/** Escapes characters that Postgres cannot store. Nearly all strings stay unchanged. */
export const toSqlText = (text: string): string =>
  text.replace(unsupported, escaped).replaceAll('\u0000', escaped);

/** Reverts `toSqlText`. */
export const fromSqlText = (text: string): string =>
  text.replace(/\ufdd0([0-9a-f]{4})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );

const escaped = (unit: string): string =>
  escapeMark + unit.charCodeAt(0).toString(16).padStart(4, '0');

export const textIn = (row: Row, column: string): string => {
  const value = row[column];
  return typeof value === 'string' ? fromSqlText(value) : '';
};

/** Drivers return a `bigint` as a string. */
export const numberIn = (row: Row, column: string): number => Number(row[column]);

/** A record of a call, as its columns have it. */
export const recordOf = (row: Row): StoredRecord => ({
  position: numberIn(row, 'position'),
  kind: row['kind'] === 'step' ? 'step' : 'event',
  name: textIn(row, 'name'),
  seq: numberIn(row, 'seq'),
  text: textIn(row, 'text'),
});
