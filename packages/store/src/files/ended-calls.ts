import { existsSync } from 'node:fs';
import { mkdir, rmdir, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { alreadyExists, ifMissing, isNotFound, readNames } from './file-system.js';
import { syncDirectories } from './make-directory.js';

export interface EndedCall {
  /** The name of its directory. */
  readonly name: string;
  /** When it ended, in whole milliseconds. */
  readonly endedAt: number;
}

/**
 * The index of ended calls by time: an empty file `.ended/<from>/<time>.<call>` for each, in directories of about a thousand, which are
 * named by the time from which on they hold calls. So a list of the newest reads few names, however many calls there are.
 */
export interface EndedCalls {
  readonly directory: string;
  /** Whether the index is built. */
  exists(): boolean;
  /** Adds an entry, and resolves to the directory that must be synced for it; undefined if the index is not built. */
  add(call: EndedCall): Promise<string | undefined>;
  has(call: EndedCall): Promise<boolean>;
  remove(call: EndedCall): Promise<void>;
  sync(directory: string): Promise<unknown>;
  /** The entries, newest first, in portions. */
  until(time: number): AsyncGenerator<readonly EndedCall[]>;
  /** Removes many entries, and the directories that become empty. */
  removeAll(calls: readonly EndedCall[]): Promise<void>;
}

/** Maximum number of entries in a directory, if one process writes. */
const mostEntries = 1_000;

/** How many entries a process adds before it looks again which directories there are. */
const mostUses = 100;

export const endedCalls = (root: string): EndedCalls => {
  const directory = join(root, '.ended');
  const buckets = createBuckets(directory);
  const add = async (call: EndedCall, tries = 3): Promise<string | undefined> => {
    try {
      const path = join(directory, nameOf(await buckets.forTime(call.endedAt)));
      await writeFile(join(path, entryName(call)), '', { mode: 0o600 });
      return path;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      if (!existsSync(directory)) return undefined;
      if (tries === 0) throw error;
      // Another process has removed the directory when it became empty.
      await buckets.look();
      return add(call, tries - 1);
    }
  };
  /** The possible paths of an entry: its writer may not have seen the latest directories. */
  const pathsOf = (known: readonly number[], call: EndedCall): readonly string[] =>
    known
      .slice(0, known.findLastIndex((from) => from <= call.endedAt) + 1)
      .slice(-3)
      .reverse()
      .map((bucket) => join(directory, nameOf(bucket), entryName(call)));
  /** Resolves to the directory that had the entry. */
  const removeFrom = async (
    known: readonly number[],
    call: EndedCall,
  ): Promise<string | undefined> => {
    for (const path of pathsOf(known, call)) if (await isRemoved(path)) return dirname(path);
    return undefined;
  };
  return {
    directory,
    exists: () => existsSync(directory),
    add,
    has: async (call) => pathsOf(await bucketsIn(directory), call).some((path) => existsSync(path)),
    remove: async (call) => {
      await removeFrom(await bucketsIn(directory), call);
    },
    sync: (path) => syncDirectories(path),
    until: (time) => entriesUntil(directory, time),
    removeAll: async (calls) => {
      const known = await bucketsIn(directory);
      const touched = new Set<string>();
      for (const call of calls) {
        const path = await removeFrom(known, call);
        if (path !== undefined) touched.add(path);
      }
      // Fails if the directory has other entries.
      for (const path of touched) await rmdir(path).catch(() => undefined);
    },
  };
};

/** The directories of the index, as this process knows them. */
interface Buckets {
  /** The directory for a time: the last one that begins before, or a new one if that is full. */
  forTime(time: number): Promise<number>;
  /** Finds out which directories there are. */
  look(): Promise<void>;
}

const createBuckets = (directory: string): Buckets => {
  let buckets: readonly number[] = [];
  let uses = mostUses;
  const counts = new Map<number, number>();
  const look = async (): Promise<void> => {
    const found = await bucketsIn(directory);
    // Another process may not have synced a directory yet that it has created.
    if (found.some((bucket) => !buckets.includes(bucket))) await syncDirectories(directory);
    buckets = found;
    uses = 0;
    counts.clear();
  };
  return {
    look,
    forTime: async (time) => {
      if (uses >= mostUses) await look();
      uses += 1;
      const bucket = buckets.findLast((from) => from <= time);
      if (bucket !== undefined) {
        const count =
          counts.get(bucket) ?? (await readNames(join(directory, nameOf(bucket)))).length;
        counts.set(bucket, count + 1);
        if (count < mostEntries || bucket === time) return bucket;
      }
      await mkdir(join(directory, nameOf(time)), { mode: 0o700 }).catch((error: unknown) => {
        if (!alreadyExists(error)) throw error;
      });
      await syncDirectories(directory);
      buckets = [...new Set([...buckets, time])].sort((a, b) => a - b);
      return time;
    },
  };
};

/** Writes the entries into a new directory of the index. */
export const writeEnded = async (made: string, calls: readonly EndedCall[]): Promise<void> => {
  const sorted = [...calls].sort((a, b) => a.endedAt - b.endedAt);
  let path = '';
  let count = mostEntries;
  let before = -1;
  for (const call of sorted) {
    if (count >= mostEntries && call.endedAt !== before) {
      if (path !== '') await syncDirectories(path);
      path = join(made, nameOf(call.endedAt));
      await mkdir(path, { mode: 0o700 });
      count = 0;
    }
    await writeFile(join(path, entryName(call)), '', { mode: 0o600 });
    count += 1;
    before = call.endedAt;
  }
  await syncDirectories(...(path === '' ? [] : [path]), made);
};

async function* entriesUntil(
  directory: string,
  time: number,
): AsyncGenerator<readonly EndedCall[]> {
  const buckets = (await bucketsIn(directory)).filter((from) => from <= time).reverse();
  const read = async (bucket: number | undefined): Promise<readonly EndedCall[]> =>
    bucket === undefined ? [] : (await readNames(join(directory, nameOf(bucket)))).flatMap(endedIn);
  let current = await read(buckets[0]);
  for (const [index, from] of buckets.entries()) {
    // A process that did not know this directory yet has put its entries into the one before.
    const before = await read(buckets[index + 1]);
    const late = before.filter(({ endedAt }) => endedAt >= from);
    yield [...current, ...late]
      .filter(({ endedAt }) => endedAt <= time)
      .sort((a, b) => b.endedAt - a.endedAt);
    current = late.length === 0 ? before : before.filter(({ endedAt }) => endedAt < from);
  }
}

const bucketsIn = async (directory: string): Promise<readonly number[]> =>
  (await readNames(directory))
    .filter((name) => /^\d{16}$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);

const nameOf = (time: number): string => String(time).padStart(16, '0');

const entryName = ({ name, endedAt }: EndedCall): string => `${endedAt}.${name}`;

const endedIn = (file: string): readonly EndedCall[] => {
  const end = file.indexOf('.');
  const endedAt = Number(file.slice(0, end));
  return end > 0 && Number.isSafeInteger(endedAt) ? [{ name: file.slice(end + 1), endedAt }] : [];
};

const isRemoved = (path: string): Promise<boolean> =>
  ifMissing(
    unlink(path).then(() => true),
    false,
  );
