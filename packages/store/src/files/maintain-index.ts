import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { wholeMs } from '../whole-ms.js';
import { type EndedCall, type EndedCalls, writeEnded } from './ended-calls.js';
import { tryLock } from './file-lock.js';
import { errorCode, storedDirectories } from './file-system.js';
import { inParallel } from './in-parallel.js';
import type { LaterSegments } from './later-segments.js';
import type { FoundCall, NamedCall } from './list-calls.js';
import { makeDirectory, syncDirectories } from './make-directory.js';
import { endedAt, readEndsIfIntact } from './read-ends.js';
import type { Staging } from './staging.js';
import type { UnfinishedCalls } from './unfinished-calls.js';

/** The parts that an index needs to read calls and to lock them. */
export interface CallReading {
  readonly staging: Staging;
  readonly laterSegments: LaterSegments;
  readonly leaseMs: number;
}

export interface IndexEntries {
  readonly ended: EndedCalls;
  readonly unfinished: UnfinishedCalls;
}

/** Builds the index of a store that has none. Resolves to whether there is one: on a disk that is read-only, it may be missing. */
export const indexBuilder = (
  root: string,
  { ended, unfinished }: IndexEntries,
  { staging, laterSegments }: CallReading,
): (() => Promise<boolean>) => {
  const fill = async (made: string): Promise<void> => {
    const known = new Set(await unfinished.names());
    const names = (await storedDirectories(root)).filter((name) => !known.has(name));
    const found = await inParallel(names, async (name): Promise<readonly EndedCall[]> => {
      const end = await endOf(join(root, name), laterSegments);
      if (end !== undefined) return [{ name, endedAt: end }];
      await unfinished.add(name);
      return [];
    });
    await makeDirectory(unfinished.directory);
    await unfinished.sync();
    await writeEnded(made, found.flat());
  };
  let building: Promise<unknown> | undefined;
  return async () => {
    if (ended.exists() && existsSync(unfinished.directory)) return true;
    if (!existsSync(root)) return false;
    building ??= staging
      .create(ended.directory, fill)
      .then(() => syncDirectories(root))
      .finally(() => (building = undefined));
    try {
      await building;
      return true;
    } catch (error) {
      if (['EROFS', 'EACCES', 'EPERM'].includes(errorCode(error) ?? '')) return false;
      throw error;
    }
  };
};

/** When a call ended, according to its records. */
const endOf = async (path: string, laterSegments: LaterSegments): Promise<number | undefined> => {
  const ends = await readEndsIfIntact(path, laterSegments);
  return ends && endedAt(ends.callId, ends.last);
};

export interface IndexCorrections {
  /** Runs work on a call that is not open; otherwise does nothing. */
  readonly whileClosed: (name: string, work: () => Promise<void>) => Promise<void>;
  /** Replaces the entry that named a call, if it is wrong. */
  readonly correct: (named: NamedCall, found: FoundCall | undefined) => Promise<void>;
}

/** Corrects entries that a crash has left. */
export const createCorrections = (
  root: string,
  { ended, unfinished }: IndexEntries,
  { staging, laterSegments, leaseMs }: CallReading,
): IndexCorrections => {
  const pathOf = (name: string): string => join(root, name);
  const isGone = (name: string): boolean => !existsSync(pathOf(name));
  const whileClosed = async (name: string, work: () => Promise<void>): Promise<void> => {
    const onLost = (): void => undefined;
    const tried = await tryLock(`${pathOf(name)}.lock`, staging, { leaseMs, onLost });
    if (!('lease' in tried)) return;
    await work().finally(() => tried.lease.release());
  };
  const ensureEnded = async (call: EndedCall): Promise<void> => {
    if (await ended.has(call)) return;
    const added = await ended.add(call);
    if (added !== undefined) await ended.sync(added);
  };
  const ensure = (name: string, end: number | undefined): Promise<void> =>
    end === undefined ? unfinished.add(name) : ensureEnded({ name, endedAt: end });
  const correctUnfinished = (name: string): Promise<void> =>
    whileClosed(name, async () => {
      if (isGone(name)) return unfinished.remove(name);
      const end = await endOf(pathOf(name), laterSegments);
      if (end === undefined || !ended.exists()) return;
      await ensureEnded({ name, endedAt: end });
      await unfinished.remove(name);
    });
  const correctEnded = async (call: EndedCall, found: FoundCall | undefined): Promise<void> => {
    const { name } = call;
    if (found === undefined) {
      if (isGone(name)) await whileClosed(name, () => ended.remove(call));
      return;
    }
    await ensure(name, found.endedAt);
    // One of a later time may belong to a record that is being written.
    if (call.endedAt < wholeMs(found.call.updatedAt)) await ended.remove(call);
  };
  const correctMissing = async (name: string, found: FoundCall | undefined): Promise<void> => {
    if (found?.isDamaged === false) await ensure(name, found.endedAt);
    // Removes a lock that a crash has left.
    if (found === undefined && isGone(name)) await whileClosed(name, () => Promise.resolve());
  };
  const correct = async (named: NamedCall, found: FoundCall | undefined): Promise<void> => {
    const { name, from: source, endedAt: time = 0 } = named;
    if (source === 'ended') await correctEnded({ name, endedAt: time }, found);
    if (source === 'missing') await correctMissing(name, found);
    const isIdle = found === undefined ? isGone(name) : !found.call.isOpen;
    if (source === 'unfinished' && isIdle) await correctUnfinished(name);
  };
  return { whileClosed, correct };
};
