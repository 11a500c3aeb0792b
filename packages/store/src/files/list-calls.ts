import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMillraceError } from '@millrace/core';
import type { StoredCall, StoredRecord } from '@millrace/core/journal';
import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';
import { parseStoredName } from '../stored-name.js';
import { errorCode, storedDirectories, statIfExists } from './file-system.js';
import { isLocked } from './file-lock.js';
import { endIn, type LaterSegments } from './later-segments.js';
import { readLine } from './line.js';
import { type DatedRecord, recordIn } from './read-batches.js';
import { beginning, readCall } from './read-call.js';
import { tryOpen, readSegment, type Segment, segmentNumbers, segmentPath } from './segments.js';

/** A call by the name of its directory. */
export type NamedCall = Pick<StoredCall, 'place'> & { readonly name: string };

export type Calls = AsyncIterable<NamedCall> | Iterable<NamedCall>;

/** Calls that are examined in parallel: other work of the file system must not wait for all of them. */
const concurrency = 32;

/** Lists calls, the most recently written first. May omit a call that is written meanwhile. */
export async function* newestCalls(root: string): AsyncGenerator<NamedCall> {
  const names = await storedDirectories(root);
  const dated = await lastValueFrom(
    from(names).pipe(
      mergeMap((name) => datedName(root, name), concurrency),
      toArray(),
    ),
  );
  yield* dated.flatMap((it) => it ?? []).sort((a, b) => b.at - a.at);
}

const datedName = async (root: string, name: string) => {
  const path = join(root, name);
  // An unreadable call is handled when it is listed.
  const last = (await segmentNumbers(path).catch(() => [0])).at(-1);
  if (last === undefined) return undefined;
  const found = await statIfExists(last === 0 ? path : segmentPath(path, last));
  return found && { name, at: found.mtimeMs };
};

/** Reads calls in the given order, page by page. */
export async function* listCalls(
  root: string,
  calls: Calls,
  laterSegments: LaterSegments,
  leaseMs: number,
  pageSize: number,
): AsyncGenerator<readonly StoredCall[]> {
  let named: NamedCall[] = [];
  const listed = async (): Promise<readonly StoredCall[]> => {
    const listing = named.map((call) => listedCall(root, call, laterSegments, leaseMs));
    named = [];
    return (await Promise.all(listing)).flatMap((call) => call ?? []);
  };
  for await (const call of calls) {
    if (named.push(call) === pageSize) yield await listed();
  }
  yield await listed();
}

/** Reading a damaged call errors; a list shows it without its records, and the other calls as usual. */
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
    // A process that crashed before its first record may have left an empty segment.
    return call === undefined || (call.first === undefined && !isOpen)
      ? undefined
      : { ...call, ...(place !== undefined && { place }), isOpen };
  } catch (error) {
    if (!isOfOneCall(error)) throw error;
    const callId = parseStoredName(name) ?? (await idInHeads(path));
    const { mtimeMs: at } = await stat(path);
    return callId === undefined ? undefined : { callId, createdAt: at, updatedAt: at, isOpen };
  }
};

const isOfOneCall = (error: unknown): boolean =>
  isMillraceError(error)
    ? error.code === 'invalidState'
    : ['EACCES', 'EPERM', 'EIO', 'EISDIR', 'ENOTDIR', 'ELOOP'].includes(errorCode(error) ?? '');

/** A directory name holds only a part of a long id. Such a call is not listed if no head can be read. */
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
  const [segment] = segments;
  if (segment === undefined) return undefined;
  const { callId, at } = segment;
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
    const file = await tryOpen(segmentPath(directory, number));
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
