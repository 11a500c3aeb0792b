import { closeSync, fsync, openSync, statSync } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { alreadyExists, errorCode, isNotFound } from './file-system.js';

/**
 * Creates a directory with its missing parents, readable only by this user, and syncs them to disk to survive a machine
 * crash. Leaves existing directories as they are. Rejects with the system error if it fails.
 */
export const makeDirectory = async (directory: string): Promise<void> => {
  if (await makeUnsynced(directory)) await syncDirectories(dirname(directory));
};

/**
 * As `makeDirectory`, but leaves it to the caller to sync the parent. Resolves to whether it did not exist. Creates parents only once: Node's recursive `mkdir` loops on `ENOENT` under an existing parent, as in `/proc`.
 */
export const makeUnsynced = async (directory: string, isAboveMade = false): Promise<boolean> => {
  if (isDirectory(directory)) return false;
  try {
    await mkdir(directory, { mode: 0o700 });
    return true;
  } catch (error) {
    if (alreadyExists(error) && isDirectory(directory)) return false;
    const above = dirname(directory);
    if (!isNotFound(error) || isAboveMade || above === directory) throw error;
    await makeDirectory(above);
    return makeUnsynced(directory, true);
  }
};

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Syncs in parallel: a disk takes about as long for all as for one. Systems that cannot sync directories do not need it. */
export const syncDirectories = (...directories: readonly string[]): Promise<unknown> =>
  Promise.all(
    directories.map(async (directory) => {
      try {
        // Only the sync waits for the disk, so only that needs another thread.
        const opened = openSync(directory, 'r');
        try {
          await sync(opened);
        } finally {
          closeSync(opened);
        }
      } catch (error) {
        if (!['EPERM', 'EISDIR', 'EINVAL', 'ENOTSUP'].includes(errorCode(error) ?? '')) throw error;
      }
    }),
  );

const sync = promisify(fsync);

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
