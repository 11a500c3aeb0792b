import { existsSync, unlinkSync } from 'node:fs';
import { unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing, ignoreErrors, readNames } from './file-system.js';
import { makeDirectory, syncDirectories } from './make-directory.js';

/** The index of calls that have not ended: an empty file `.unfinished/<call>` for each. */
export interface UnfinishedCalls {
  readonly directory: string;
  has(name: string): boolean;
  /** Adds an entry, which is not on disk before `sync`. */
  add(name: string): Promise<void>;
  sync(): Promise<unknown>;
  remove(name: string): Promise<void>;
  /** As `remove`, when a claim is released. Does not fail. */
  discard(name: string): void;
  names(): Promise<readonly string[]>;
}

export const unfinishedCalls = (root: string): UnfinishedCalls => {
  const directory = join(root, '.unfinished');
  const write = (name: string): Promise<void> =>
    writeFile(join(directory, name), '', { mode: 0o600 });
  const has = (name: string): boolean => existsSync(join(directory, name));
  return {
    directory,
    has,
    add: async (name) => {
      await ifMissing(write(name), undefined);
      if (has(name)) return;
      await makeDirectory(directory);
      await write(name);
    },
    sync: () => syncDirectories(directory),
    remove: (name) => ifMissing(unlink(join(directory, name)), undefined),
    discard: (name) => ignoreErrors(() => unlinkSync(join(directory, name))),
    names: () => readNames(directory),
  };
};
