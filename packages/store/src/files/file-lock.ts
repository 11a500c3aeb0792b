import { type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import lockfile from 'proper-lockfile';
import type { Attempt } from '../leased.js';
import { codeOf, isGone } from './failure.js';

/** A lock that is held, also against other processes. */
export interface FileLock {
  /** Tells whether nobody has taken it. */
  isHeld(): boolean;
  /** Gives it back at once. */
  release(): void;
}

/** Who holds a lock gives a sign of life each second. */
const signMs = 1_000;

/**
 * Tries to get a lock: a directory that is made, and touched as long as it is held. Who has given no sign of life for `leaseMs` (at least 2,000) has lost it.
 * `onLost` is called when another one has taken it.
 */
export const tryLock = async (
  path: string,
  leaseMs: number,
  onLost: () => void,
): Promise<Attempt<FileLock>> => {
  const held = { isLost: false };
  const options = { lockfilePath: path, realpath: false };
  const onCompromised = (): void => {
    held.isLost = true;
    onLost();
  };
  try {
    await lockfile.lock(path, { ...options, stale: leaseMs, update: signMs, onCompromised });
  } catch (error) {
    if (codeOf(error) !== 'ELOCKED') throw error;
    const found = await statOf(path);
    if (found === undefined) return tryLock(path, leaseMs, onLost);
    return { holder: `${birthOf(found)} ${found.mtimeMs}` };
  }
  const own = await statOf(path);
  const isHeld = (): boolean => {
    if (held.isLost || own === undefined) return false;
    const found = statSync(path, { throwIfNoEntry: false });
    return found !== undefined && birthOf(found) === birthOf(own);
  };
  const release = (): void => {
    // The lock of another one is not ours to give back, even where we have not noticed yet.
    if (isHeld()) lockfile.unlockSync(path, options);
  };
  return { lease: { isHeld, release } };
};

/** Tells whether somebody holds a lock. */
export const isLocked = async (path: string, leaseMs: number): Promise<boolean> => {
  const found = await statOf(path);
  return found !== undefined && found.mtimeMs >= Date.now() - leaseMs;
};

const birthOf = ({ ino, birthtimeMs }: Stats): string => `${ino} ${birthtimeMs}`;

const statOf = async (path: string): Promise<Stats | undefined> => {
  try {
    return await stat(path);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
};
