import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isGone, isTaken } from './failure.js';
import { syncDirectory } from './open-segment.js';

/** Removes a directory, which goes at once, and then what is in it: a crash in between leaves no half of it. One that is not there is no error. */
export const discard = async (path: string): Promise<void> => {
  const away = `${path}.removed`;
  await rm(away, { recursive: true, force: true });
  try {
    await rename(path, away);
  } catch (error) {
    if (isGone(error)) return;
    // Another one has just removed it, and it was there again.
    if (isTaken(error)) return discard(path);
    throw error;
  }
  await syncDirectory(dirname(path));
  await rm(away, { recursive: true, force: true });
};
