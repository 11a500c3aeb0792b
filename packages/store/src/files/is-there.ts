import { stat } from 'node:fs/promises';
import { whenGone } from './failure.js';

/** Tells whether there is a file or a directory; with a number, whether it is that very file. */
export const isThere = async (path: string, ino?: number): Promise<boolean> => {
  const found = await whenGone(stat(path), undefined);
  return found !== undefined && (ino === undefined || found.ino === ino);
};
