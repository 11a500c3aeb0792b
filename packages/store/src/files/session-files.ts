import { randomInt, randomUUID } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import { appendedState, type SessionChange } from 'millrace/sessions';
import type { Staging } from './staging.js';
import { isNotFound, openFile, readNames, readWhole } from './file-system.js';
import { syncDirectories, writeNew } from './make-directory.js';
import { storedName } from '../stored-name.js';
import { lineEnd } from './segments.js';
import {
  type AppendedTo,
  broken,
  fittingIn,
  headIn,
  type Part,
  readAppended,
  readEntries,
  readSessionFile,
  renamed,
  type SessionHead,
  writeSessionHead,
} from './session-file.js';

/**
 * A session is a directory of immutable state files, with an empty pointer file that has the name of the current one. A
 * save writes a new state file, then renames the pointer file after it. Of several concurrent saves only one rename
 * succeeds, as all of them start from the same name. The name is a version and a UUID that contains the time of the save.
 *
 * A save that only adds messages appends them to a file that no other writer writes to. Its state file has the rest of the state, and names the files that belong to it, with a length each. So if the rename of a save fails, its messages are part of no state.
 */
export interface SessionPointer {
  readonly version: number;
  /** The name of both files, without the extension. */
  readonly name: string;
  /** The state files in the directory, and the files of messages. */
  readonly states: readonly string[];
  readonly entries: readonly string[];
}

const fileName = /^\d+-[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f-]{17}\.(?:json|current)$/;
const entriesName = /^[0-9a-f-]{36}\.entries$/;

/** The first version is random: a session that is removed and saved again never reuses an old version. */
const firstVersions = 2 ** 47;

/** Finds the current version of a session; undefined if the session does not exist. */
export const readPointer = async (
  directory: string,
  tries = 10,
): Promise<SessionPointer | undefined> => {
  const names = await readNames(directory);
  const files = names.filter((name) => fileName.test(name));
  const states = files.filter((name) => name.endsWith('.json'));
  const entries = names.filter((name) => entriesName.test(name));
  const [pointer] = files
    .filter((name) => name.endsWith('.current'))
    .map((name) => ({
      version: versionIn(name),
      name: basename(name, '.current'),
      states,
      entries,
    }))
    .sort((a, b) => b.version - a.version);
  if (pointer !== undefined || names.length === 0) return pointer;
  // Reading a directory while a file is renamed may miss that file.
  if (tries > 0) return readPointer(directory, tries - 1);
  throw new MillraceError(
    'invalidState',
    `${directory} has no .current file, which names its state. Restore the directory from a backup, or delete it to start over.`,
  );
};

/** Reads a session; undefined if it does not exist. */
export const readSession = (
  directory: string,
  sessionId: string,
): Promise<{ readonly version: number; readonly state: unknown } | undefined> =>
  readCurrent(directory, async (path, { version }) => {
    const bytes = await readWhole(path);
    const { appended } = headIn(path, bytes);
    const expected = { sessionId, version };
    if (appended === undefined) return { version, state: readSessionFile(path, bytes, expected) };
    const change = readAppended(path, bytes, expected);
    const base = join(directory, `${appended.base}.json`);
    const before = { sessionId, version: versionIn(appended.base) };
    const state = readSessionFile(base, await readWhole(base), before);
    const entries: Entry[] = [];
    for (const part of appended.parts) {
      const file = join(directory, part[0]);
      for (const entry of readEntries(file, await readPart(file, part))) entries.push(entry);
    }
    return { version, state: fittingIn(path, () => appendedState(state, { ...change, entries })) };
  });

type Entry = SessionChange['entries'][number];

const readPart = async (path: string, [, size]: Part): Promise<Buffer> => {
  const bytes = await readWhole(path);
  if (bytes.length < size) throw broken(path);
  return bytes.subarray(0, size);
};

/** Reads the beginning of the current state file; undefined if the session does not exist. */
export const readSessionHead = (directory: string): Promise<SessionHead | undefined> =>
  readCurrent(directory, async (path) => {
    const head = headIn(path, await readBeginning(path));
    if (storedName(head.sessionId) !== basename(directory)) throw renamed(path, head.sessionId);
    return head;
  });

const readBeginning = async (path: string): Promise<Buffer> => {
  const file = await openFile(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    const bytes = buffer.subarray(0, bytesRead);
    return bytes.includes(lineEnd) ? bytes : await readWhole(path);
  } finally {
    await file.close();
  }
};

/** More than nearly all heads have. */
const headBytes = 2048;

const readCurrent = async <T>(
  directory: string,
  read: (path: string, pointer: SessionPointer) => Promise<T>,
  missing?: string,
): Promise<T | undefined> => {
  const pointer = await readPointer(directory);
  if (pointer === undefined) return undefined;
  const path = join(directory, `${pointer.name}.json`);
  try {
    return await read(path, pointer);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // The session was saved or removed after the pointer was read.
    if (pointer.name !== missing) return readCurrent(directory, read, pointer.name);
    throw new MillraceError(
      'invalidState',
      `${pathIn(error) ?? path} is missing: a part of the state of the session. Restore the directory from a backup, or delete it to start over.`,
    );
  }
};

const pathIn = (error: unknown): string | undefined =>
  isRecord(error) && typeof error['path'] === 'string' ? error['path'] : undefined;

export interface TimeIndex {
  readonly directory: string;
  /** Adds an entry, which is not on disk before `directory` is synced. */
  add(name: string, micros: number): Promise<void>;
  remove(name: string, micros: number): Promise<void>;
}

/** The parts of a store of sessions that a save needs. */
export interface SessionWriter {
  readonly staging: Staging;
  readonly byTime: TimeIndex;
  /** The current time in microseconds. */
  readonly clock: () => number;
}

export interface SavedSession {
  readonly sessionId: string;
  readonly title?: string;
  /** As `writeState` or `writeAppended` writes it. */
  readonly state: string;
  readonly appended?: AppendedTo;
}

/**
 * Saves a session as the successor of `previous`. Resolves to its version, undefined on a conflict. `prepare` writes what
 * must be on disk with the state.
 */
export const writeSession = async (
  { staging, byTime, clock }: SessionWriter,
  directory: string,
  { state, ...head }: SavedSession,
  previous: SessionPointer | undefined,
  prepare: () => Promise<unknown> = () => Promise.resolve(),
): Promise<number | undefined> => {
  const version = previous === undefined ? 1 + randomInt(firstVersions) : previous.version + 1;
  const before = previous && pointerTime(previous);
  // Later than the state before, even if the clock was set back.
  const micros = Math.max(clock(), (before ?? 0) + 1);
  const name = `${version}-${timedId(micros)}`;
  const text = writeSessionHead({ ...head, version }) + state;
  const session = basename(directory);
  await byTime.add(session, micros);
  const isSaved = await (
    previous === undefined
      ? makeSession(staging, directory, byTime.directory, name, text)
      : replaceState(directory, byTime.directory, previous.name, name, text, prepare)
  ).catch(async (error: unknown) => {
    await byTime.remove(session, micros).catch(() => undefined);
    throw error;
  });
  if (!isSaved) {
    await byTime.remove(session, micros);
    return undefined;
  }
  // Leftovers only cost disk space.
  await Promise.allSettled([
    ...obsoleteFiles(previous, version, head.appended).map((file) =>
      rm(join(directory, file), { force: true }),
    ),
    ...(before === undefined ? [] : [byTime.remove(session, before)]),
  ]);
  return version;
};

/**
 * The files to which the new state does not refer. They were there before it became current, so a save that may refer to
 * them follows an earlier state, and fails.
 */
const obsoleteFiles = (
  previous: SessionPointer | undefined,
  version: number,
  appended: AppendedTo | undefined,
): readonly string[] => {
  if (previous === undefined) return [];
  const used = new Set([
    `${appended?.base}.json`,
    ...(appended?.parts ?? []).map(([file]) => file),
  ]);
  // Higher versions may belong to a session that was removed and created again.
  const states = previous.states.filter((state) => versionIn(state) <= version);
  return [...states, ...previous.entries].filter((file) => !used.has(file));
};

const makeSession = async (
  staging: Staging,
  directory: string,
  index: string,
  name: string,
  text: string,
): Promise<boolean> => {
  const isMade = await staging.create(directory, async (made) => {
    await writeNew(join(made, `${name}.json`), text);
    await writeNew(join(made, `${name}.current`), '');
    await syncDirectories(made, index);
  });
  if (isMade) await syncDirectories(dirname(directory));
  return isMade;
};

const replaceState = async (
  directory: string,
  index: string,
  before: string,
  name: string,
  text: string,
  prepare: () => Promise<unknown>,
): Promise<boolean> => {
  const state = join(directory, `${name}.json`);
  try {
    // Both have ended before anything is removed.
    const written = await Promise.allSettled([prepare(), writeNew(state, text)]);
    for (const it of written) if (it.status === 'rejected') throw it.reason;
    // The state and the entry of the index must reach the disk before the pointer does.
    await syncDirectories(directory, index);
    await rename(join(directory, `${before}.current`), join(directory, `${name}.current`));
  } catch (error) {
    await rm(state, { force: true });
    if (isNotFound(error)) return false;
    throw error;
  }
  await syncDirectories(directory);
  return true;
};

/** A UUID of version 7 (RFC 9562), with microseconds. */
const timedId = (micros: number): string => {
  const time = Math.floor(micros / 1000)
    .toString(16)
    .padStart(12, '0');
  const fraction = (micros % 1000).toString(16).padStart(3, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${fraction}${randomUUID().slice(18)}`;
};

/** When a state was saved, in microseconds. */
export const pointerTime = ({ name }: Pick<SessionPointer, 'name'>): number => {
  const [, first = '', second = '', fraction = ''] = name.split('-');
  return Number.parseInt(first + second, 16) * 1000 + Number.parseInt(fraction.slice(1), 16);
};

const versionIn = (name: string): number => Number.parseInt(name, 10);
