import { wholeMs } from '../whole-ms.js';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { isRecord, parsedJson } from 'millrace/values';
import { ifMissing } from './file-system.js';
import { endIn, type LaterSegments } from './later-segments.js';
import { readLine } from './line.js';
import { type DatedRecord, recordIn } from './read-batches.js';
import { beginning, readCall } from './read-call.js';
import {
  headIn,
  lineEnd,
  type Segment,
  type SegmentHead,
  segmentNumbers,
  segmentPath,
  tryOpen,
} from './segments.js';

/** The first and the last record of a call; both are missing if it has none. */
export interface CallEnds {
  readonly callId: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly first?: DatedRecord;
  readonly last?: DatedRecord;
}

/** Reads the ends of a call; undefined if it does not exist. Throws if they are damaged. */
export const readEnds = async (
  directory: string,
  laterSegments: LaterSegments,
): Promise<CallEnds | undefined> =>
  (await shortCall(directory)) ?? longCall(directory, laterSegments);

/** When the call ended, if this is its last record and it has ended. Earlier releases did not record that. */
export const endedAt = (callId: string, last: DatedRecord | undefined): number | undefined => {
  if (last === undefined) return undefined;
  const { kind, name, text, at, ends } = last;
  if (ends !== undefined) return ends;
  const isEnd =
    kind === 'step'
      ? name === `${callId}/reply` || callId.startsWith('~conversation')
      : (name === 'postCall' || name === 'error') && endsCall(callId, parsedJson(text));
  return isEnd ? wholeMs(at) : undefined;
};

/** An aborted call waits for its resume. */
const endsCall = (callId: string, event: unknown): boolean => {
  if (!isRecord(event) || event['callId'] !== callId) return false;
  const { error } = event;
  return !(isRecord(error) && error['code'] === 'aborted');
};

/** Nearly all calls are one short file, which is read as a whole. */
const shortBytes = 64 * 1024;

/** Reads the ends of a call that is one short file; undefined if it is not, or has to be read with care. */
const shortCall = async (directory: string): Promise<CallEnds | undefined> => {
  const path = segmentPath(directory, 1);
  const file = await tryOpen(path);
  if (file === undefined) return undefined;
  try {
    const buffer = Buffer.allocUnsafe(shortBytes);
    const { bytesRead } = await file.read({ buffer, position: 0 });
    // Bytes that were read before a second file existed count.
    if (bytesRead === shortBytes || existsSync(segmentPath(directory, 2))) return undefined;
    return endsOf(path, buffer.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
};

const endsOf = (path: string, bytes: Buffer): CallEnds | undefined => {
  const start = bytes.indexOf(lineEnd) + 1;
  const head: SegmentHead | undefined =
    start === 0 ? undefined : headIn(path, bytes.subarray(0, start - 1));
  const last = lastIn(bytes.subarray(start));
  const first = firstIn(bytes.subarray(start));
  if (head?.after !== 0 || first === undefined || last === undefined) return undefined;
  const { callId } = head;
  return { callId, createdAt: first.at, updatedAt: last.at, first, last };
};

/** The first record of the first batch, if that is whole. */
const firstIn = (bytes: Buffer): DatedRecord | undefined => {
  let first: DatedRecord | undefined;
  for (let start = 0, position = 1; ; position += 1) {
    const end = bytes.indexOf(lineEnd, start);
    const value = end === -1 ? undefined : readLine('record', bytes.subarray(start, end));
    const record = value && recordIn(value);
    if (record?.position !== position) return undefined;
    first ??= record;
    if (value?.['more'] !== true) return first;
    start = end + 1;
  }
};

const longCall = async (
  directory: string,
  laterSegments: LaterSegments,
): Promise<CallEnds | undefined> => {
  const segments = await laterSegments(directory, 0);
  const [segment] = segments;
  if (segment === undefined) return undefined;
  const { callId, at } = segment;
  const first = await firstRecord(directory, laterSegments);
  const last = await lastRecord(directory, segments);
  if (first === undefined || last === undefined) return { callId, createdAt: at, updatedAt: at };
  return { callId, createdAt: first.at, updatedAt: last.at, first, last };
};

const firstRecord = async (
  directory: string,
  laterSegments: LaterSegments,
): Promise<DatedRecord | undefined> => {
  for await (const { records } of readCall(directory, beginning, laterSegments)) return records[0];
  return undefined;
};

export const lastRecord = async (
  directory: string,
  segments: readonly Segment[],
): Promise<DatedRecord | undefined> => {
  for (const { number, start } of [...segments].reverse()) {
    const file = await tryOpen(segmentPath(directory, number));
    if (file === undefined) return undefined;
    try {
      const end = endIn(segments, number) ?? (await file.stat()).size;
      for (let size = shortBytes; end > start; size *= 4) {
        const from = Math.max(start, end - size);
        const buffer = Buffer.allocUnsafe(end - from);
        const { bytesRead } = await file.read({ buffer, position: from });
        const record = lastIn(buffer.subarray(0, bytesRead));
        if (record !== undefined) return record;
        if (from === start) break;
      }
    } finally {
      await file.close();
    }
  }
  return undefined;
};

/** The last record of the last complete batch. The first line may be cut off at its beginning, and is then skipped. */
const lastIn = (bytes: Buffer): DatedRecord | undefined => {
  for (let end = bytes.lastIndexOf('\n'); end >= 0;) {
    const start = end === 0 ? 0 : bytes.lastIndexOf('\n', end - 1) + 1;
    const value = readLine('record', bytes.subarray(start, end));
    if (value !== undefined && value['more'] !== true) return recordIn(value);
    end = start - 1;
  }
  return undefined;
};

/** When a call was last written, by the time of its last file; undefined if it does not exist. */
export const writtenAt = async (directory: string): Promise<number | undefined> => {
  // An unreadable call is handled when it is listed.
  const last = (await segmentNumbers(directory).catch(() => [0])).at(-1);
  if (last === undefined) return undefined;
  const found = await ifMissing(
    stat(last === 0 ? directory : segmentPath(directory, last)),
    undefined,
  );
  return found?.mtimeMs;
};

/** As `readEnds`; undefined also if the call is damaged or cannot be read. */
export const readEndsIfIntact = (
  directory: string,
  laterSegments: LaterSegments,
): Promise<CallEnds | undefined> => readEnds(directory, laterSegments).catch(() => undefined);
