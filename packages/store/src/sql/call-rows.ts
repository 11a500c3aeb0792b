import { isRecord } from 'millrace/values';
import type { NewRecord, StoredCall, StoredRecord } from 'millrace/journal';
import type { Row } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';

/** The records as one array per column. */
export const columnsOf = (records: readonly NewRecord[]): readonly (readonly unknown[])[] => [
  records.map(({ kind }) => kind),
  records.map(({ name }) => toSqlText(name)),
  records.map(({ seq }) => seq),
  records.map(({ text }) => toSqlText(text)),
];

export const recordOf = (row: Row): StoredRecord => ({
  position: numberIn(row, 'position'),
  kind: row['kind'] === 'step' ? 'step' : 'event',
  name: textIn(row, 'name'),
  seq: numberIn(row, 'seq'),
  text: textIn(row, 'text'),
});

export const callOf = ({ first, last, ...row }: Row): StoredCall => ({
  callId: textIn(row, 'id'),
  createdAt: Math.floor(numberIn(row, 'created_ms')),
  updatedAt: Math.floor(numberIn(row, 'updated_ms')),
  isOpen: row['is_open'] === true,
  place: numberIn(row, 'place'),
  ...(isRecord(first) && { first: recordOf(first) }),
  ...(isRecord(last) && { last: recordOf(last) }),
});
