import type { StoredRecord } from '@millrace/core/journal';
import { readLine, writeLine } from './line.js';
import { lineEnd } from './segments.js';

/** A record, and when it was written down, in milliseconds since the epoch. */
export interface DatedRecord extends StoredRecord {
  readonly at: number;
}

/** How far a call has been read. */
export interface Place {
  readonly segment: number;
  /** Bytes and lines of the segment that have been read. */
  readonly offset: number;
  readonly line: number;
  /** Records of the call that have been read, and the greatest number of them. */
  readonly position: number;
  readonly seq: number;
}

/** What a piece of a segment holds. */
export interface Batches {
  /** The records of whole batches. */
  readonly records: readonly DatedRecord[];
  /** Behind the last whole batch. */
  readonly place: Place;
  /** The first line that is no whole one: where it begins, and its number. */
  readonly damage?: { readonly offset: number; readonly line: number };
}

/** Writes a batch, which counts as a whole or not at all: each line but the last says that there is more. */
export const writeBatch = (records: readonly DatedRecord[]): string =>
  records
    .map(({ position, kind, name, seq, at, text }, index) => {
      const more = index < records.length - 1 ? { more: true } : {};
      return writeLine('record', { position, kind, name, seq, at, ...more, text });
    })
    .join('');

/** Reads the batches in a piece of a segment that begins at a place. */
export const batchesIn = (bytes: Buffer, from: Place): Batches => {
  const records: DatedRecord[] = [];
  const batch: DatedRecord[] = [];
  let place = from;
  let start = 0;
  for (let line = from.line + 1; ; line += 1) {
    const end = bytes.indexOf(lineEnd, start);
    if (end === -1) return { records, place };
    const value = readLine('record', bytes.subarray(start, end));
    const record = value && recordIn(value);
    const position = place.position + batch.length + 1;
    if (value === undefined || record?.position !== position) {
      return { records, place, damage: { offset: from.offset + start, line } };
    }
    start = end + 1;
    batch.push(record);
    if (value['more'] === true) continue;
    const seq = batch.reduce((most, it) => Math.max(most, it.seq), place.seq);
    place = { ...place, offset: from.offset + start, line, position, seq };
    // One by one: a batch may have more of them than a function has arguments.
    for (const it of batch.splice(0)) records.push(it);
  }
};

/** The record that a line holds; undefined where it is none. */
export const recordIn = (value: Readonly<Record<string, unknown>>): DatedRecord | undefined => {
  const { position, kind, name, seq, at, text } = value;
  return (kind === 'step' || kind === 'event') &&
    typeof position === 'number' &&
    typeof name === 'string' &&
    typeof seq === 'number' &&
    typeof at === 'number' &&
    typeof text === 'string'
    ? { position, kind, name, seq, at, text }
    : undefined;
};
