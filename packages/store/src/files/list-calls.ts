import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMillraceError } from '@millrace/core';
import type { StoredCall, StoredRecord } from '@millrace/core/journal';
import { idIn } from '../stored-name.js';
import { codeOf, directoriesIn, statIn } from './failure.js';
import { isLocked } from './file-lock.js';
import { endIn, type LaterSegments } from './later-segments.js';
import { readLine } from './line.js';
import { type DatedRecord, recordIn } from './read-batches.js';
import { beginning, readCall } from './read-call.js';
import { opened, readSegment, type Segment, segmentNumbers, segmentPath } from './segments.js';

/** A call, by the name of its directory, and what is known of it beside that. */
export type NamedCall = Pick<StoredCall, 'place'> & { readonly name: string };

export type Calls = AsyncIterable<NamedCall> | Iterable<NamedCall>;

/** Calls that are looked at at the same time. */
const together = 32;

/** Emits the names of the directories of calls, the one that was last written to first. One that is written to meanwhile may be left out. */
export async function* newestCalls(root: string): AsyncGenerator<NamedCall> {
  const names = await directoriesIn(root);
  const dated: { readonly name: string; readonly at: number }[] = [];
  for (let first = 0; first < names.length; first += together) {
    const some = names.slice(first, first + together).map((name) => datedName(root, name));
    dated.push(...(await Promise.all(some)).flatMap((it) => it ?? []));
  }
  yield* dated.sort((a, b) => b.at - a.at);
}

/** Nothing, where there is no call, or no more. */
const datedName = async (root: string, name: string) => {
  const path = join(root, name);
  // Whoever lists one that cannot be read says so.
  const last = (await segmentNumbers(path).catch(() => [0])).at(-1);
  if (last === undefined) return undefined;
  const found = await statIn(last === 0 ? path : segmentPath(path, last));
  return found && { name, at: found.mtimeMs };
};

/** Reads calls in a directory, in their order, in portions. */
export async function* listCalls(
  root: string,
  calls: Calls,
  laterSegments: LaterSegments,
  leaseMs: number,
  portion: number,
): AsyncGenerator<readonly StoredCall[]> {
  let named: NamedCall[] = [];
  const listed = async (): Promise<readonly StoredCall[]> => {
    const listing = named.map((call) => listedCall(root, call, laterSegments, leaseMs));
    named = [];
    return (await Promise.all(listing)).flatMap((call) => call ?? []);
  };
  for await (const call of calls) {
    if (named.push(call) === portion) yield await listed();
  }
  yield await listed();
}

/** Whoever reads a damaged call hears of it; those who list it, and all others, must not suffer from it. */
const listedCall = async (
  root: string,
  { name, place }: NamedCall,
  laterSegments: LaterSegments,
  leaseMs: number,
): Promise<StoredCall | undefined> => {
  const path = join(root, name);
  const isOpen = await isLocked(`${path}.lock`, leaseMs).catch(() => false);
  try {
    const call = await callIn(path, laterSegments);
    // Who has ended before anything was written down may have left its beginning.
    return call === undefined || (call.first === undefined && !isOpen)
      ? undefined
      : { ...call, ...(place !== undefined && { place }), isOpen };
  } catch (error) {
    if (!isOfOneCall(error)) throw error;
    const callId = idIn(name) ?? (await idInHeads(path));
    const { mtimeMs: at } = await stat(path);
    return callId === undefined ? undefined : { callId, createdAt: at, updatedAt: at, isOpen };
  }
};

const isOfOneCall = (error: unknown): boolean =>
  isMillraceError(error)
    ? error.code === 'invalidState'
    : ['EACCES', 'EPERM', 'EIO', 'EISDIR', 'ENOTDIR', 'ELOOP'].includes(codeOf(error) ?? '');

/** Of a long id only a part is in the name. Where no head can be read, such a call is not listed. */
const idInHeads = async (path: string): Promise<string | undefined> => {
  for (const number of await segmentNumbers(path).catch(() => [])) {
    const segment = await readSegment(path, number).catch(() => undefined);
    if (segment !== undefined) return segment.callId;
  }
  return undefined;
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

export const undated = ({ at: _, ...record }: DatedRecord): StoredRecord => record;

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
