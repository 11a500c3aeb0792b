import type { StoredRecord } from 'millrace/journal';
import { readLine, writeLine } from './line.js';
import { lineEnd } from './segments.js';

export interface DatedRecord extends StoredRecord {
  /** When it was recorded, in milliseconds since the epoch. */
  readonly at: number;
  /** When the call ended, in whole milliseconds, if it had with this record. Later records of its end repeat that time. */
  readonly ends?: number | undefined;
}

/** How far a call has been read. */
export interface Cursor {
  readonly segment: number;
  /** Bytes and lines read from the segment. */
  readonly offset: number;
  readonly line: number;
  /** Number of records read from the call, and their highest `seq`. */
  readonly position: number;
  readonly seq: number;
}

/** The content of a part of a segment. */
export interface Batches {
  /** The records of complete batches. */
  readonly records: readonly DatedRecord[];
  /** After the last complete batch. */
  readonly cursor: Cursor;
  /** The first broken line: its offset in bytes and its number. */
  readonly damage?: { readonly offset: number; readonly line: number };
}

/** Writes a batch, which is atomic: every line but the last has `more: true`. */
export const writeBatch = (records: readonly DatedRecord[]): string =>
  records
    .map(({ position, kind, name, seq, at, ends, text }, index) => {
      const more = index < records.length - 1 ? { more: true } : {};
      return writeLine('record', { position, kind, name, seq, at, ends, ...more, text });
    })
    .join('');

/** Reads the batches in a part of a segment that starts at `from`. */
export const batchesIn = (bytes: Buffer, from: Cursor): Batches => {
  const records: DatedRecord[] = [];
  const batch: DatedRecord[] = [];
  let cursor = from;
  let start = 0;
  for (let line = from.line + 1; ; line += 1) {
    const end = bytes.indexOf(lineEnd, start);
    if (end === -1) return { records, cursor };
    const value = readLine('record', bytes.subarray(start, end));
    const record = value && recordIn(value);
    const position = cursor.position + batch.length + 1;
    if (value === undefined || record?.position !== position) {
      return { records, cursor, damage: { offset: from.offset + start, line } };
    }
    start = end + 1;
    batch.push(record);
    if (value['more'] === true) continue;
    const seq = batch.reduce((most, it) => Math.max(most, it.seq), cursor.seq);
    cursor = { ...cursor, offset: from.offset + start, line, position, seq };
    // Not `push(...batch)`: a batch may exceed the maximum number of arguments.
    for (const it of batch.splice(0)) records.push(it);
  }
};

/** The record in a line; undefined if the line is not a record. */
export const recordIn = (value: Readonly<Record<string, unknown>>): DatedRecord | undefined => {
  const { position, kind, name, seq, at, ends, text } = value;
  return (kind === 'step' || kind === 'event') &&
    typeof position === 'number' &&
    typeof name === 'string' &&
    typeof seq === 'number' &&
    typeof at === 'number' &&
    typeof text === 'string'
    ? { position, kind, name, seq, at, text, ...(typeof ends === 'number' && { ends }) }
    : undefined;
};
