import type { FileHandle } from 'node:fs/promises';
import { damaged, lacking } from './damage.js';
import { batchesIn, type DatedRecord, type Place } from './read-batches.js';
import { hasLine, lineEnd, opened, type Segment, segmentPath } from './segments.js';
import { endIn, type LaterSegments } from './later-segments.js';

/** Some records of a call, and the place behind them. */
export interface Portion {
  readonly records: readonly DatedRecord[];
  readonly place: Place;
}

/** Where every call begins. */
export const beginning: Place = { segment: 0, offset: 0, line: 0, position: 0, seq: -1 };

/** Bytes that are read at once, where a batch is not longer. */
const portionBytes = 256 * 1024;

/** No batch is longer, as its text would not fit into memory. */
const mostBytes = 1024 ** 3;

/** Reads the records of a call that are there behind a place, in portions. */
export async function* readCall(
  directory: string,
  from: Place,
  laterSegments: LaterSegments,
): AsyncGenerator<Portion> {
  let later: readonly Segment[] = [];
  for (let place = from; ;) {
    const { segment } = place;
    // The heads behind it are read once, and not again for each segment.
    later = later.filter(({ number }) => number > segment);
    const endOf = async (): Promise<number | undefined> => {
      if (later.length === 0) later = await laterSegments(directory, segment);
      return endIn(later, segment);
    };
    await endOf();
    for await (const portion of readSegmentFrom(directory, place, endOf)) {
      yield portion;
      place = portion.place;
    }
    const next = later.find(({ number }) => endIn(later, number) !== 0);
    if (next === undefined) return;
    const { number, start, after } = next;
    if (after !== place.position) throw lacking(segmentPath(directory, number), place.position + 1);
    place = { ...place, segment: number, offset: start, line: 1 };
  }
}

/**
 * Reads what counts of a segment, behind a place. `endOf` tells how many of its bytes do; nothing, while it is the last. It is asked after each read: what was
 * read while there was no later segment counts for ever.
 */
export async function* readSegmentFrom(
  directory: string,
  from: Place,
  endOf: () => Promise<number | undefined>,
): AsyncGenerator<Portion> {
  const path = segmentPath(directory, from.segment);
  const file = await opened(path);
  if (file === undefined) return;
  try {
    let place = from;
    let isEndKnown = false;
    for (let size = portionBytes; ;) {
      const buffer = Buffer.allocUnsafe(size);
      const { bytesRead } = await file.read({ buffer, position: place.offset });
      const end = await endOf();
      const length = Math.min(bytesRead, Math.max(0, (end ?? Infinity) - place.offset));
      const { records, place: next, damage } = batchesIn(buffer.subarray(0, length), place);
      if (next.offset > place.offset) {
        yield { records, place: next };
        place = next;
        size = portionBytes;
        continue;
      }
      if (end !== undefined && !isEndKnown) {
        // What came between the read and the end is still to be read.
        isEndKnown = true;
        continue;
      }
      if (damage !== undefined) {
        if (end !== undefined || (await hasRecordBehind(file, damage.offset))) {
          throw damaged(path, damage.line);
        }
        return;
      }
      if (length < size) {
        if (end !== undefined && place.offset < end) throw damaged(path, place.line + 1);
        return;
      }
      size *= 2;
      // No text is longer: what stands there was not written here.
      if (size > mostBytes) throw damaged(path, place.line + 1);
    }
  } finally {
    await file.close();
  }
}

/** Tells whether there is a whole record behind a damaged line: without one, it is the torn end of the file. */
const hasRecordBehind = async (file: FileHandle, offset: number): Promise<boolean> => {
  let line: Buffer[] = [];
  for (let at = offset; ;) {
    const buffer = Buffer.allocUnsafe(portionBytes);
    const { bytesRead } = await file.read({ buffer, position: at });
    if (bytesRead === 0) return false;
    at += bytesRead;
    const read = buffer.subarray(0, bytesRead);
    const end = read.lastIndexOf(lineEnd) + 1;
    if (end === 0) {
      // What is longer than any line is none.
      if (line.length * portionBytes < mostBytes) line.push(read);
      continue;
    }
    if (hasLine('record', Buffer.concat([...line, read.subarray(0, end)]))) return true;
    line = [read.subarray(end)];
  }
};
