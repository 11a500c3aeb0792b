import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { alreadyExists, readNames, ifMissing } from './file-system.js';
import { processStatus, newHolderId } from './holder-id.js';
import { makeDirectory, syncDirectories } from './make-directory.js';

/** A staging directory: directories are built here before they appear, and moved here before they are deleted. */
export interface Staging {
  /** Creates a directory atomically with its content. Resolves to false if one that is not empty already exists. */
  create(path: string, fill: (made: string) => Promise<unknown>): Promise<boolean>;
  /** Removes a directory atomically, then deletes its content. A missing directory is not an error. */
  discard(path: string): Promise<void>;
}

/** Stages in `.aside` under `root`, unless `check` throws. Deletes the leftovers of crashes before the first use. */
export const createStaging = (root: string, check?: () => void): Staging => {
  const directory = join(root, '.aside');
  let isSwept = false;
  const ready = async (): Promise<void> => {
    check?.();
    if (isSwept) return;
    await makeDirectory(directory);
    // Leftovers only cost disk space.
    await sweep(directory).catch(() => undefined);
    isSwept = true;
  };
  return {
    create: async (path, fill) => {
      await ready();
      const made = join(directory, newHolderId());
      try {
        await mkdir(made, { mode: 0o700, recursive: true });
        await fill(made);
        await rename(made, path);
        return true;
      } catch (error) {
        await removeAll(made);
        if (alreadyExists(error)) return false;
        throw error;
      }
    },
    discard: async (path) => {
      if (!existsSync(path)) return;
      await ready();
      await makeDirectory(directory);
      const away = join(directory, newHolderId());
      if (!(await tryRename(path, away))) return;
      await syncDirectories(dirname(path));
      await removeAll(away);
    },
  };
};

const removeAll = (path: string): Promise<void> =>
  rm(path, { recursive: true, force: true, maxRetries: 3 });

/** Renames a file or a directory. Resolves to false if it does not exist. */
export const tryRename = (from: string, to: string): Promise<boolean> =>
  ifMissing(
    rename(from, to).then(() => true),
    false,
  );

const sweep = async (place: string): Promise<unknown> => {
  const names = await readNames(place);
  return Promise.allSettled(
    names.map(async (name) => {
      const path = join(place, name);
      if (await isAbandoned(name, path)) await removeAll(path);
    }),
  );
};

const staleMs = 3_600_000;

/** Whether the process that created this path, named by `newHolderId`, has exited or is presumed to have. */
export const isAbandoned = async (name: string, path: string): Promise<boolean> => {
  if (processStatus(name) === 'gone') return true;
  return processStatus(name) === 'unknown' && Date.now() - (await stat(path)).mtimeMs > staleMs;
};
