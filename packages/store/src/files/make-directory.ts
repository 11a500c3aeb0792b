import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { codeOf, isGone, isTaken } from './failure.js';

/**
 * Makes a directory that nobody else can read, and those above it that are not there, and sees to it that they are still there after a crash of the machine. One that is there stays as it is. Rejects with the
 * error of the system where it cannot be made.
 */
export const makeDirectory = (directory: string): Promise<void> => make(resolve(directory));

/** What is above is made once: Node's recursive `mkdir` tries for ever where it is there and the system says that it is not, as in `/proc`. */
const make = async (directory: string, isAboveMade = false): Promise<void> => {
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    if (isTaken(error) && (await stat(directory)).isDirectory()) return;
    const above = dirname(directory);
    if (!isGone(error) || isAboveMade || above === directory) throw error;
    await make(above);
    await make(directory, true);
    return;
  }
  await syncDirectory(dirname(directory));
};

/** Not all systems can do it: those that cannot, have no need of it. */
export const syncDirectory = async (directory: string): Promise<void> => {
  try {
    const handle = await open(directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!['EPERM', 'EISDIR', 'EINVAL', 'ENOTSUP'].includes(codeOf(error) ?? '')) throw error;
  }
};

/** Makes a file that is not there yet, which only this user can read, and is on the disk when it resolves. */
export const writeNew = async (path: string, text: string): Promise<void> => {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
};
