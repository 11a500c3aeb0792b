import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorCode, isNotFound, alreadyExists } from './file-system.js';

/**
 * Creates a directory with its missing parents, readable only by this user, and syncs them to disk to survive a machine
 * crash. Leaves existing directories as they are. Rejects with the system error if it fails.
 */
export const makeDirectory = async (directory: string): Promise<void> => {
  const path = resolve(directory);
  if (await make(path)) await syncDirectory(dirname(path));
};

/** As `makeDirectory`, but leaves it to the caller to sync the parent directory, as one of `syncDirectories`. */
export const makeUnsynced = async (directory: string): Promise<void> => {
  await make(resolve(directory));
};

/** Syncs directories in parallel: a disk takes about as long for all as for one. */
export const syncDirectories = async (...directories: readonly string[]): Promise<void> => {
  await Promise.all(directories.map(syncDirectory));
};

/**
 * Resolves to whether it did not exist. Creates parents only once: Node's recursive `mkdir` loops on `ENOENT` under an
 * existing parent, as in `/proc`.
 */
const make = async (directory: string, isAboveMade = false): Promise<boolean> => {
  try {
    await mkdir(directory, { mode: 0o700 });
    return true;
  } catch (error) {
    if (alreadyExists(error) && (await stat(directory)).isDirectory()) return false;
    const above = dirname(directory);
    if (!isNotFound(error) || isAboveMade || above === directory) throw error;
    await makeDirectory(above);
    return make(directory, true);
  }
};

/** Ignores systems that cannot sync directories: they do not need it. */
export const syncDirectory = async (directory: string): Promise<void> => {
  try {
    const handle = await open(directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!['EPERM', 'EISDIR', 'EINVAL', 'ENOTSUP'].includes(errorCode(error) ?? '')) throw error;
  }
};

/** Creates a file that must not exist yet, readable only by this user. Its text is on disk when this resolves. */
export const writeNew = async (path: string, text: string): Promise<void> => {
  const file = await open(path, 'wx', 0o600);
  try {
    if (text === '') return;
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
};
