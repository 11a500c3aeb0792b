import { rmdirSync, unlinkSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { MillraceError } from '@millrace/core';
import { isGone, isTaken } from './failure.js';
import { writeLine } from './line.js';
import { makeDirectory, syncDirectory } from './make-directory.js';
import { quietly } from './quietly.js';
import type { Place } from './read-batches.js';
import { beginning, readSegmentFrom } from './read-call.js';
import {
  readSegment,
  type Segment,
  type SegmentHead,
  segmentNumbers,
  segmentPath,
} from './segments.js';

/** A segment that is open for writing. */
export interface OpenSegment {
  readonly number: number;
  readonly file: FileHandle;
  /** Behind its head. */
  readonly place: Place;
  /** Removes it, of a call of which nothing is written down, and with it the call. Only for who has the lock. */
  readonly remove: () => void;
}

/** Begins the next segment of a call, with which all before it are at their end; nothing where another one has just begun it. */
export const openSegment = async (
  directory: string,
  callId: string,
  now: number,
): Promise<OpenSegment | undefined> => {
  await makeDirectory(directory);
  const earlier = await segmentNumbers(directory);
  const number = (earlier.at(-1) ?? 0) + 1;
  const file = await created(segmentPath(directory, number));
  if (file === undefined) return undefined;
  try {
    // Only now that it is there: whoever still writes to an earlier one sees it before it says that something is written.
    const last = await lastOf(directory, earlier);
    if (last !== undefined && last.callId !== callId) throw foreign(directory, last.callId);
    const { position, offset } = await endOf(directory, last);
    const ends = earlier
      .filter((it) => it >= (last?.number ?? 0))
      .map((it) => [it, it === last?.number ? offset : 0] as const);
    const head: SegmentHead = { format: 1, callId, after: position, ends, at: now };
    const line = Buffer.from(writeLine('head', head));
    await file.appendFile(line);
    await file.datasync();
    await syncDirectory(directory);
    const place = { ...beginning, segment: number, offset: line.length, line: 1, position };
    return { number, file, place, remove: () => quietly(() => removeSegment(directory, number)) };
  } catch (error) {
    await file.close();
    await rm(segmentPath(directory, number), { force: true });
    throw error;
  }
};

/** A directory in which there is more stays. */
const removeSegment = (directory: string, number: number): void => {
  unlinkSync(segmentPath(directory, number));
  rmdirSync(directory);
};

const foreign = (directory: string, callId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${directory} holds the call '${callId}', and so its name is not its own: do not rename the directories of calls.`,
  );

const created = async (path: string): Promise<FileHandle | undefined> => {
  try {
    return await open(path, 'ax', 0o600);
  } catch (error) {
    if (isTaken(error) || isGone(error)) return undefined;
    throw error;
  }
};

const lastOf = async (
  directory: string,
  numbers: readonly number[],
): Promise<Segment | undefined> => {
  for (const number of [...numbers].reverse()) {
    const segment = await readSegment(directory, number);
    if (segment !== undefined) return segment;
  }
  return undefined;
};

const endOf = async (directory: string, last: Segment | undefined): Promise<Place> => {
  if (last === undefined) return beginning;
  const { number: segment, start: offset, after: position } = last;
  let place: Place = { ...beginning, segment, offset, line: 1, position };
  const open = () => Promise.resolve(undefined);
  for await (const portion of readSegmentFrom(directory, place, open)) place = portion.place;
  return place;
};
