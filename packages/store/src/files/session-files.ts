import { randomInt, randomUUID } from 'node:crypto';
import { readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MillraceError } from '@millrace/core';
import type { Staging } from './staging.js';
import { isNotFound, readNames } from './file-system.js';
import { syncDirectories, writeNew } from './make-directory.js';
import { headIn, readSessionFile, writeSessionHead } from './session-file.js';

/**
 * A session is a directory of immutable state files, with an empty pointer file that has the name of the current one. A
 * save writes a new state file, then renames the pointer file after it. Of several concurrent saves only one rename
 * succeeds, as all of them start from the same name.
 */
export interface SessionPointer {
  readonly version: number;
  /** The name of both files, without the extension. */
  readonly name: string;
  /** The state files in the directory. */
  readonly states: readonly string[];
}

const fileName = /^\d+-[0-9a-f-]{36}\.(?:json|current)$/;

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
  const [pointer] = files
    .filter((name) => name.endsWith('.current'))
    .map((name) => ({ version: versionIn(name), name: basename(name, '.current'), states }))
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
  readCurrent(directory, async (path, { version }) => ({
    version,
    state: readSessionFile(path, await readFile(path), { sessionId, version }),
  }));

/** Reads the id of a session; undefined if it does not exist. */
export const readSessionId = (directory: string): Promise<string | undefined> =>
  readCurrent(directory, async (path) => headIn(path, await readFile(path)).sessionId);

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
      `${path} is missing: the state of the session. Restore the directory from a backup, or delete it to start over.`,
    );
  }
};

/** Saves a state from `writeState` as the successor of `previous`. Resolves to its version, undefined on a conflict. */
export const writeSession = async (
  staging: Staging,
  directory: string,
  sessionId: string,
  state: string,
  previous: SessionPointer | undefined,
): Promise<number | undefined> => {
  const version = previous === undefined ? 1 + randomInt(firstVersions) : previous.version + 1;
  const name = `${version}-${randomUUID()}`;
  const text = writeSessionHead({ sessionId, version }) + state;
  const isSaved =
    previous === undefined
      ? await makeSession(staging, directory, name, text)
      : await replaceState(directory, previous.name, name, text);
  if (!isSaved) return undefined;
  // These states are obsolete. Higher versions may belong to a session that was removed and created again.
  const obsolete = previous?.states.filter((state) => versionIn(state) <= version) ?? [];
  // Leftovers only cost disk space.
  await Promise.allSettled(obsolete.map((state) => rm(join(directory, state), { force: true })));
  return version;
};

const makeSession = async (
  staging: Staging,
  directory: string,
  name: string,
  text: string,
): Promise<boolean> => {
  const isMade = await staging.create(directory, async (made) => {
    await writeNew(join(made, `${name}.json`), text);
    await writeNew(join(made, `${name}.current`), '');
    await syncDirectories(made);
  });
  if (isMade) await syncDirectories(dirname(directory));
  return isMade;
};

const replaceState = async (
  directory: string,
  before: string,
  name: string,
  text: string,
): Promise<boolean> => {
  const state = join(directory, `${name}.json`);
  try {
    await writeNew(state, text);
    // The state must reach the disk before the pointer does.
    await syncDirectories(directory);
    await rename(join(directory, `${before}.current`), join(directory, `${name}.current`));
  } catch (error) {
    await rm(state, { force: true });
    if (isNotFound(error)) return false;
    throw error;
  }
  await syncDirectories(directory);
  return true;
};

const versionIn = (name: string): number => Number.parseInt(name, 10);
