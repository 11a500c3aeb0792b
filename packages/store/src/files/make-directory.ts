import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorCode, isNotFound, alreadyExists } from './file-system.js';

/**
 * Creates a directory with its missing parents, readable only by this user, and syncs them to disk to survive a machine
 * crash. Leaves existing directories as they are. Rejects with the system error if it fails.
 */
export const makeDirectory = (directory: string): Promise<void> => make(resolve(directory));

/** Creates parents only once: Node's recursive `mkdir` loops on `ENOENT` under an existing parent, as in `/proc`. */
const make = async (directory: string, isAboveMade = false): Promise<void> => {
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    if (alreadyExists(error) && (await stat(directory)).isDirectory()) return;
    const above = dirname(directory);
    if (!isNotFound(error) || isAboveMade || above === directory) throw error;
    await make(above);
    await make(directory, true);
    return;
  }
  await syncDirectory(dirname(directory));
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
