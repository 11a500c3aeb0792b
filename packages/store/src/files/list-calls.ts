import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMillraceError } from '@millrace/core';
import type { StoredCall, StoredRecord } from '@millrace/core/journal';
import { idIn } from '../stored-name.js';
import { directoriesIn } from './directories-in.js';
import { isLocked } from './file-lock.js';
import { endIn, type LaterSegments } from './later-segments.js';
import { readLine } from './line.js';
import { type DatedRecord, recordIn } from './read-batches.js';
import { beginning, readCall } from './read-call.js';
import { opened, type Segment, segmentPath } from './segments.js';

/** Calls that are emitted at once. */
const portion = 50;

/** Reads what calls there are in a directory, the one that was last written to first, in portions. */
export async function* listCalls(
  root: string,
  laterSegments: LaterSegments,
  leaseMs: number,
): AsyncGenerator<readonly StoredCall[]> {
  const names = await directoriesIn(root);
  const dated: { readonly name: string; readonly updatedAt: number }[] = [];
  for (const name of names) {
    const updatedAt = await orWhenDamaged(
      () => updateOf(join(root, name), laterSegments),
      async () => (await unreadable(root, name))?.updatedAt,
    );
    if (updatedAt !== undefined) dated.push({ name, updatedAt });
  }
  dated.sort((a, b) => b.updatedAt - a.updatedAt);
  for (let at = 0; at < dated.length; at += portion) {
    const some = dated.slice(at, at + portion).map(async ({ name }) => {
      const call = await orWhenDamaged(
        () => callIn(join(root, name), laterSegments),
        () => unreadable(root, name),
      );
      const isOpen = await isLocked(`${join(root, name)}.lock`, leaseMs);
      return call === undefined ? [] : [{ ...call, isOpen }];
    });
    yield (await Promise.all(some)).flat();
  }
}

/** Whoever reads a damaged call hears of it; those who list it, and all others, must not suffer from it. */
const orWhenDamaged = async <T>(
  work: () => Promise<T>,
  otherwise: () => Promise<T>,
): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (isMillraceError(error) && error.code === 'invalidState') return otherwise();
    throw error;
  }
};

/** What is known of a call that cannot be read. Of a long id only a part is in the name: such a call is not listed. */
const unreadable = async (
  root: string,
  name: string,
): Promise<Omit<StoredCall, 'isOpen'> | undefined> => {
  const callId = idIn(name);
  if (callId === undefined) return undefined;
  const { mtimeMs: at } = await stat(join(root, name));
  return { callId, createdAt: at, updatedAt: at };
};

const updateOf = async (
  directory: string,
  laterSegments: LaterSegments,
): Promise<number | undefined> => {
  const segments = await laterSegments(directory, 0);
  return (await lastRecord(directory, segments))?.at ?? segments[0]?.at;
};

const callIn = async (
  directory: string,
  laterSegments: LaterSegments,
): Promise<Omit<StoredCall, 'isOpen'> | undefined> => {
  const segments = await laterSegments(directory, 0);
  const [begun] = segments;
  if (begun === undefined) return undefined;
  const { callId, at } = begun;
  const first = await firstRecord(directory, laterSegments);
  const last = await lastRecord(directory, segments);
  if (first === undefined || last === undefined) return { callId, createdAt: at, updatedAt: at };
  const dates = { createdAt: first.at, updatedAt: last.at };
  return { callId, ...dates, first: undated(first), last: undated(last) };
};

const undated = ({ at: _, ...record }: DatedRecord): StoredRecord => record;

const firstRecord = async (
  directory: string,
  laterSegments: LaterSegments,
): Promise<DatedRecord | undefined> => {
  for await (const { records } of readCall(directory, beginning, laterSegments)) return records[0];
  return undefined;
};

const lastRecord = async (
  directory: string,
  segments: readonly Segment[],
): Promise<DatedRecord | undefined> => {
  for (const { number, start } of [...segments].reverse()) {
    const file = await opened(segmentPath(directory, number));
    if (file === undefined) return undefined;
    try {
      const end = endIn(segments, number) ?? (await file.stat()).size;
      for (let size = 64 * 1024; end > start; size *= 4) {
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

/** The last record of the last whole batch; a line that is cut at the beginning is no record. */
const lastIn = (bytes: Buffer): DatedRecord | undefined => {
  for (let end = bytes.lastIndexOf('\n'); end >= 0;) {
    const start = end === 0 ? 0 : bytes.lastIndexOf('\n', end - 1) + 1;
    const value = readLine('record', bytes.subarray(start, end));
    if (value !== undefined && value['more'] !== true) return recordIn(value);
    end = start - 1;
  }
  return undefined;
};
