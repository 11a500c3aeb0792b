import { unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMillraceError } from 'millrace';
import type { CheckedSessionQuery, SessionSummary } from 'millrace/sessions';
import { parseStoredName, storedName } from '../stored-name.js';
import { ifMissing, readNames, storedDirectories } from './file-system.js';
import type { Part } from './file-work.js';
import { makeUnsynced } from './make-directory.js';
import { pointerTime, readPointer, type TimeIndex } from './session-files.js';

/**
 * The index of sessions by time: an empty file `.by-time/<microseconds>.<session>` for each session. A save creates its entry
 * before it changes the session, and deletes the former entry afterwards, so a session has the entry of its current state,
 * and perhaps others, which are ignored. A session without an entry gets one when sessions are listed: an index that is
 * lost fills by itself.
 */
export interface SessionsByTime extends TimeIndex {
  /** The sessions that match a query, newest first, as `read` reads them. Skips those that it skips. */
  find(query: CheckedSessionQuery, read: ReadSummary): Promise<readonly SessionSummary[]>;
}

type ReadSummary = (name: string) => Promise<Omit<SessionSummary, 'savedAt'> | undefined>;

interface Entry {
  readonly name: string;
  readonly micros: number;
}

export const sessionsByTime = (part: Part): SessionsByTime => {
  const { root } = part;
  const { directory, add, remove, all } = createEntries(part);
  /** Whether an entry is that of the current state. If none is, adds it to `missing`. */
  const isCurrent = async (
    entry: Entry,
    entries: readonly Entry[],
    missing: Entry[],
  ): Promise<boolean> => {
    const { name } = entry;
    const micros = await timeOf(join(root, name));
    if (micros === entry.micros) return true;
    // A later entry may belong to a save that is being made, and so may that of a session that does not exist yet.
    const isObsolete = entry.micros < (micros ?? Date.now() * 1000 - pendingMicros);
    if (isObsolete) await tryTo(remove(entry));
    const hasOwn = entries.some((other) => other.name === name && other.micros === micros);
    if (micros !== undefined && !hasOwn) missing.push({ name, micros });
    return false;
  };
  const find = async (
    query: CheckedSessionQuery,
    read: ReadSummary,
    entries: readonly Entry[],
    tries = 5,
  ): Promise<readonly SessionSummary[]> => {
    const found: SessionSummary[] = [];
    const missing: Entry[] = [];
    for (const entry of asked(entries, query)) {
      if (!(await isCurrent(entry, entries, missing))) continue;
      const session = await read(entry.name);
      if (!session?.id.startsWith(query.prefix)) continue;
      found.push({ ...session, savedAt: entry.micros / 1000 });
      if (found.length === query.limit) break;
    }
    if (missing.length === 0 || tries === 0) return found;
    for (const entry of missing) await tryTo(add(entry));
    return find(query, read, [...entries, ...missing], tries - 1);
  };
  return {
    directory,
    add: (name, micros) => add({ name, micros }),
    remove: (name, micros) => remove({ name, micros }),
    find: async (query, read) => find(query, read, await all()),
  };
};

/** An index on a disk that is read-only stays as it is. */
const tryTo = (work: Promise<void>): Promise<void> => work.catch(() => undefined);

const createEntries = ({ root, check }: Part) => {
  const directory = join(root, '.by-time');
  const pathOf = ({ name, micros }: Entry): string =>
    join(directory, `${String(micros).padStart(digits, '0')}.${name}`);
  const add = async (entry: Entry): Promise<void> => {
    check();
    await makeUnsynced(directory);
    await writeFile(pathOf(entry), '', { mode: 0o600 });
  };
  return {
    directory,
    add,
    remove: (entry: Entry): Promise<void> => ifMissing(unlink(pathOf(entry)), undefined),
    /** The entries of all sessions. Adds those that are missing. */
    all: async (): Promise<readonly Entry[]> => {
      // The sessions first: one that is saved meanwhile has an entry already.
      const names = await storedDirectories(root);
      const entries = (await readNames(directory)).flatMap(entryOf);
      const known = new Set(entries.map(({ name }) => name));
      const added: Entry[] = [];
      for (const name of names) {
        if (known.has(name)) continue;
        const micros = await timeOf(join(root, name));
        if (micros === undefined) continue;
        added.push({ name, micros });
        await tryTo(add({ name, micros }));
      }
      return [...entries, ...added];
    },
  };
};

const digits = 16;

/** How long a save may take, by far. */
const pendingMicros = 86_400_000_000;

const entryOf = (file: string): readonly Entry[] => {
  const [time = '', ...rest] = file.split('.');
  const micros = Number(time);
  return time.length === digits && Number.isSafeInteger(micros)
    ? [{ name: rest.join('.'), micros }]
    : [];
};

/** When the current state of a session was saved; undefined if it is damaged or does not exist. */
const timeOf = async (directory: string): Promise<number | undefined> => {
  const pointer = await readPointer(directory).catch((error: unknown) => {
    if (!isMillraceError(error)) throw error;
    return undefined;
  });
  return pointer && pointerTime(pointer);
};

const asked = (
  entries: readonly Entry[],
  { prefix, before }: CheckedSessionQuery,
): readonly Entry[] => {
  const after = before && {
    name: storedName(before.id),
    micros: Math.round(before.savedAt * 1000),
  };
  return entries
    .filter((entry) => after === undefined || newestFirst(after, entry) < 0)
    .filter(({ name }) => prefix === '' || (parseStoredName(name) ?? prefix).startsWith(prefix))
    .sort(newestFirst);
};

const newestFirst = (one: Entry, other: Entry): number => {
  if (one.micros !== other.micros) return other.micros - one.micros;
  if (one.name === other.name) return 0;
  return one.name < other.name ? 1 : -1;
};
