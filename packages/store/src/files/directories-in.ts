import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { whenGone } from './failure.js';

/** Tells whether an entry of a directory is a directory that is called as `storedName` calls it. */
export const isStored = (entry: Dirent): boolean =>
  entry.isDirectory() && /^[ih]-[^.]*$/.test(entry.name);

/** The directories in a directory that are called as `storedName` calls them; none where there is no such directory. */
export const directoriesIn = async (root: string): Promise<readonly string[]> =>
  (await whenGone(readdir(root, { withFileTypes: true }), []))
    .filter(isStored)
    .map(({ name }) => name);
