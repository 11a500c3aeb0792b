import { readdir } from 'node:fs/promises';
import { isGone } from './failure.js';

/** The directories in a directory that are called as `storedName` calls them; none where there is no such directory. */
export const directoriesIn = async (root: string): Promise<readonly string[]> => {
  try {
    const entries = await readdir(root, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && /^[ih]-[^.]*$/.test(entry.name))
      .map(({ name }) => name);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
};
