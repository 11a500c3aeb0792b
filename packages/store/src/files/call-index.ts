import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type CallEntry, type ClaimedCall, openEntry } from './call-entry.js';
import { type EndedCall, endedCalls, writeEnded } from './ended-calls.js';
import { tryLock } from './file-lock.js';
import { errorCode, ifMissing, storedDirectories } from './file-system.js';
import { inParallel } from './in-parallel.js';
import type { LaterSegments } from './later-segments.js';
import type { FoundCall, NamedCall } from './list-calls.js';
import { makeDirectory, makeUnsynced, syncDirectories } from './make-directory.js';
import { wholeMs } from '../whole-ms.js';
import { endedAt, readEndsIfIntact, writtenAt } from './read-ends.js';
import { sessionsName } from './session-index.js';
import type { Staging } from './staging.js';
import { unfinishedCalls } from './unfinished-calls.js';

/**
 * The index of calls. One that has not ended has an entry in `.unfinished`, which is on disk before its first record; one that has
 * ended has an entry by time in `.ended`, which is on disk before the other is deleted. The last record of a call says when
 * it ended, so a list knows which entries a crash has left, and corrects them. While a call is open, only its writer deletes its
 * entry in `.unfinished`.
 */
export interface CallIndex {
  /** Creates the index of a store without calls. That of others is built by the first list. */
  prepare(): Promise<void>;
  /** Opens the entry of a call whose lock this process has. */
  open(call: ClaimedCall): Promise<CallEntry>;
  /** The calls that were last written until then, the latest first. */
  calls(until: number): AsyncGenerator<NamedCall>;
  /** The calls that have not ended. May contain others. */
  unfinished(): Promise<readonly NamedCall[]>;
  /** Whether a list shows what it has found under a name. Corrects the entry if it is wrong. */
  readonly isShown: (named: NamedCall, found: FoundCall | undefined) => Promise<boolean>;
  /** Deletes the entries of calls that are removed. Needs their locks. */
  forget(calls: readonly RemovedEntry[]): Promise<void>;
  /** Runs work on a call that is not open; otherwise does nothing. */
  whileClosed(name: string, work: () => Promise<void>): Promise<void>;
}

export interface RemovedEntry {
  readonly name: string;
  readonly endedAt: number | undefined;
}

/** The parts that an index needs to read calls and to lock them. */
export interface CallReading {
  readonly staging: Staging;
  readonly laterSegments: LaterSegments;
  readonly leaseMs: number;
}

export const createCallIndex = (root: string, reading: CallReading): CallIndex => {
  const { staging, laterSegments, leaseMs } = reading;
  const ended = endedCalls(root);
  const unfinished = unfinishedCalls(root);
  const pathOf = (name: string): string => join(root, name);
  const isGone = (name: string): boolean => !existsSync(pathOf(name));
  const endOf = async (name: string): Promise<number | undefined> => {
    const ends = await readEndsIfIntact(pathOf(name), laterSegments);
    return ends && endedAt(ends.callId, ends.last);
  };

  const fill = async (made: string): Promise<void> => {
    const known = new Set(await unfinished.names());
    const names = (await storedDirectories(root)).filter((name) => !known.has(name));
    const found = await inParallel(names, async (name): Promise<readonly EndedCall[]> => {
      const end = await endOf(name);
      if (end !== undefined) return [{ name, endedAt: end }];
      await unfinished.add(name);
      return [];
    });
    await makeDirectory(unfinished.directory);
    await unfinished.sync();
    await writeEnded(made, found.flat());
  };
  let building: Promise<unknown> | undefined;
  /** Resolves to whether there is an index: on a disk that is read-only, it may be missing. */
  const isBuilt = async (): Promise<boolean> => {
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
      const end = await endOf(name);
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

  async function* byIndex(until: number): AsyncGenerator<NamedCall> {
    const open = await byTime(root, await unfinished.names(), 'unfinished');
    const isOpen = new Set(open.map(({ name }) => name));
    const seen = new Set(isOpen);
    let next = 0;
    for await (const calls of ended.until(until)) {
      for (const call of calls) {
        for (; (open[next]?.at ?? -1) > call.endedAt; next += 1) yield* open.slice(next, next + 1);
        if (!isOpen.has(call.name)) yield { ...call, from: 'ended' };
        seen.add(call.name);
      }
    }
    yield* open.slice(next);
    if (until === Infinity) yield* missing(root, seen);
  }

  return {
    prepare: async () => {
      if (existsSync(root)) return;
      await makeDirectory(root);
      const parts = [ended.directory, unfinished.directory, join(root, sessionsName)];
      await Promise.all(parts.map((part) => makeUnsynced(part)));
      await syncDirectories(root);
    },
    open: (call) => openEntry(unfinished, ended, call),
    calls: async function* (until) {
      if (await isBuilt()) yield* byIndex(until);
      else yield* await byTime(root, await storedDirectories(root), 'missing');
    },
    unfinished: async () => {
      const names = (await isBuilt()) ? unfinished.names() : storedDirectories(root);
      return (await names).map((name) => ({ name, from: 'unfinished' }));
    },
    isShown: async (named, found) => {
      const isRight =
        named.from === 'session' ||
        (found !== undefined &&
          (named.from === 'ended'
            ? found.isDamaged || found.endedAt === named.endedAt
            : named.from === 'unfinished' && found.endedAt === undefined));
      // An index on a disk that is read-only stays as it is.
      if (!isRight) await correct(named, found).catch(() => undefined);
      return found !== undefined && (isRight || named.from !== 'ended');
    },
    forget: async (calls) => {
      await inParallel(
        calls.filter(({ name }) => unfinished.has(name)),
        ({ name }) => unfinished.remove(name),
      );
      await ended.removeAll(
        calls.flatMap(({ name, endedAt: end }) =>
          end === undefined ? [] : [{ name, endedAt: end }],
        ),
      );
    },
    whileClosed,
  };
};

type DatedName = NamedCall & { readonly at: number };

/** Calls by the time of their files, the latest first. */
const byTime = async (
  root: string,
  names: readonly string[],
  source: NamedCall['from'],
): Promise<readonly DatedName[]> => {
  const dated = await inParallel(names, async (name) => ({
    name,
    from: source,
    at: (await writtenAt(join(root, name))) ?? 0,
  }));
  return dated.sort((a, b) => b.at - a.at);
};

/** Names that have no entry, as when their directories were copied here, and those of locks that crashes have left. */
async function* missing(root: string, seen: ReadonlySet<string>): AsyncGenerator<NamedCall> {
  const directories = new Set(await storedDirectories(root));
  for (const name of directories) if (!seen.has(name)) yield { name, from: 'missing' };
  for (const file of await ifMissing(readdir(root), [])) {
    const name = file.endsWith(lockSuffix) ? file.slice(0, -lockSuffix.length) : '';
    if (name !== '' && !directories.has(name)) yield { name, from: 'missing' };
  }
}

const lockSuffix = '.lock';
