import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMillraceError } from 'millrace';
import type { StoredCall, StoredRecord } from 'millrace/journal';
import { parseStoredName } from '../stored-name.js';
import { errorCode } from './file-system.js';
import { isLocked } from './file-lock.js';
import type { LaterSegments } from './later-segments.js';
import type { DatedRecord } from './read-batches.js';
import { endedAt, readEnds } from './read-ends.js';
import { readSegment, segmentNumbers } from './segments.js';

export interface NamedCall extends Pick<StoredCall, 'place'> {
  readonly name: string;
  /** Which entry of an index names it. A call without any is `missing`. */
  readonly from: 'session' | 'unfinished' | 'ended' | 'missing';
  /** According to its entry. */
  readonly endedAt?: number;
}

export interface FoundCall {
  readonly call: StoredCall;
  readonly endedAt: number | undefined;
  readonly isDamaged: boolean;
}

export type Calls = AsyncIterable<NamedCall> | Iterable<NamedCall>;

export interface ListOptions {
  readonly laterSegments: LaterSegments;
  readonly leaseMs: number;
  /** The sizes of the pages; the last one is that of all others. */
  readonly pages: readonly number[];
  readonly isShown: (named: NamedCall, found: FoundCall | undefined) => Promise<boolean>;
  readonly matches: (found: FoundCall) => boolean;
}

/** Reads calls in the given order, page by page. */
export async function* listCalls(
  root: string,
  calls: Calls,
  options: ListOptions,
): AsyncGenerator<readonly StoredCall[]> {
  let [size = 0, ...sizes] = options.pages;
  let page: NamedCall[] = [];
  const listed = async (): Promise<readonly StoredCall[]> => {
    const listing = page.map((call) => shownCall(root, call, options));
    page = [];
    [size = size, ...sizes] = sizes;
    return (await Promise.all(listing)).flatMap((call) => call ?? []);
  };
  for await (const call of calls) {
    if (page.push(call) === size) yield await listed();
  }
  yield await listed();
}

const shownCall = async (
  root: string,
  named: NamedCall,
  options: ListOptions,
): Promise<StoredCall | undefined> => {
  const { place } = named;
  const found = await foundCall(root, named.name, options);
  if (!(await options.isShown(named, found)) || found === undefined) return undefined;
  return options.matches(found)
    ? { ...found.call, ...(place !== undefined && { place }) }
    : undefined;
};

/** Reading a damaged call errors; a list shows it without its records, and the other calls as usual. */
const foundCall = async (
  root: string,
  name: string,
  { laterSegments, leaseMs }: ListOptions,
): Promise<FoundCall | undefined> => {
  const path = join(root, name);
  const isOpen = await isLocked(`${path}.lock`, leaseMs).catch(() => false);
  try {
    const ends = await readEnds(path, laterSegments);
    // A process that crashed before its first record may have left an empty segment.
    if (ends === undefined || (ends.first === undefined && !isOpen)) return undefined;
    const { first, last, ...call } = ends;
    const records = first && last && { first: undated(first), last: undated(last) };
    const end = endedAt(call.callId, last);
    return { call: { ...call, ...records, isOpen }, endedAt: end, isDamaged: false };
  } catch (error) {
    if (!isOfOneCall(error)) throw error;
    const callId = parseStoredName(name) ?? (await idInHeads(path));
    if (callId === undefined) return undefined;
    const { mtimeMs: at } = await stat(path);
    const call = { callId, createdAt: at, updatedAt: at, isOpen };
    return { call, endedAt: undefined, isDamaged: true };
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

export const undated = ({ at: _, ends: __, ...record }: DatedRecord): StoredRecord => record;
