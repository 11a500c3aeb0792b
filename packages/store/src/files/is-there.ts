import { stat } from 'node:fs/promises';
import { isGone } from './failure.js';

/** Tells whether there is a file or a directory; with a number, whether it is that very file. */
export const isThere = async (path: string, ino?: number): Promise<boolean> => {
  try {
    const found = await stat(path);
    return ino === undefined || found.ino === ino;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
};
