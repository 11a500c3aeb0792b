import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type CallEntry, type ClaimedCall, openEntry } from './call-entry.js';
import { endedCalls } from './ended-calls.js';
import { ifMissing, storedDirectories } from './file-system.js';
import { inParallel } from './in-parallel.js';
import type { FoundCall, NamedCall } from './list-calls.js';
import {
  type CallReading,
  createCorrections,
  indexBuilder,
  type IndexCorrections,
  type IndexEntries,
} from './maintain-index.js';
import { makeDirectory, makeUnsynced, syncDirectories } from './make-directory.js';
import { writtenAt } from './read-ends.js';
import { sessionsName } from './session-index.js';
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
  /** The calls that have not ended, the last written first. May contain others. */
  unfinished(): Promise<readonly NamedCall[]>;
  /** Their names, in no order, without a look at their files. */
  unfinishedNames(): Promise<readonly string[]>;
  /** Whether a list shows what it has found under a name. Corrects the entry if it is wrong. */
  readonly isShown: (named: NamedCall, found: FoundCall | undefined) => Promise<boolean>;
  /** Deletes the entries of calls that are removed. Needs their locks. */
  forget(calls: readonly RemovedEntry[]): Promise<void>;
  readonly whileClosed: IndexCorrections['whileClosed'];
}

export interface RemovedEntry {
  readonly name: string;
  readonly endedAt: number | undefined;
}

export const createCallIndex = (root: string, reading: CallReading): CallIndex => {
  const entries = { ended: endedCalls(root), unfinished: unfinishedCalls(root) };
  const { ended, unfinished } = entries;
  const isBuilt = indexBuilder(root, entries, reading);
  const { whileClosed, correct } = createCorrections(root, entries, reading);
  const unfinishedNames = async (): Promise<readonly string[]> =>
    (await isBuilt()) ? unfinished.names() : storedDirectories(root);
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
      if (await isBuilt()) yield* byIndex(root, entries, until);
      else yield* await byTime(root, await storedDirectories(root), 'missing');
    },
    unfinished: async () => byTime(root, await unfinishedNames(), 'unfinished'),
    unfinishedNames,
    isShown: async (named, found) => {
      const isRight = isEntryOf(named, found);
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

/** Whether the entry that names a call is the one that it should have. */
const isEntryOf = (
  { from: source, endedAt: end }: NamedCall,
  found: FoundCall | undefined,
): boolean => {
  if (source === 'session') return true;
  if (found === undefined) return false;
  if (source === 'ended') return found.isDamaged || found.endedAt === end;
  return source === 'unfinished' && found.endedAt === undefined;
};

/** The calls that were last written until then, the latest first. */
async function* byIndex(
  root: string,
  { ended, unfinished }: IndexEntries,
  until: number,
): AsyncGenerator<NamedCall> {
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
