import type { NewRecord, StoredCall, StoredRecord } from '@millrace/core/journal';
import type { Row } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';

/** The columns of records, as lists. */
export const columnsOf = (records: readonly NewRecord[]): readonly (readonly unknown[])[] => [
  records.map(({ kind }) => kind),
  records.map(({ name }) => toSqlText(name)),
  records.map(({ seq }) => seq),
  records.map(({ text }) => toSqlText(text)),
];

/** The record of a row. */
export const recordOf = (row: Row, prefix = ''): StoredRecord => ({
  position: numberIn(row, `${prefix}position`),
  kind: row[`${prefix}kind`] === 'step' ? 'step' : 'event',
  name: textIn(row, `${prefix}name`),
  seq: numberIn(row, `${prefix}seq`),
  text: textIn(row, `${prefix}text`),
});

/** The call of a row. */
export const callOf = (row: Row): StoredCall => ({
  callId: textIn(row, 'id'),
  createdAt: numberIn(row, 'created_at'),
  updatedAt: numberIn(row, 'updated_at'),
  isOpen: row['is_open'] === true,
  ...(row['first_kind'] === null ? {} : { first: recordOf(row, 'first_') }),
  ...(row['last_kind'] === null ? {} : { last: recordOf(row, 'last_') }),
});
