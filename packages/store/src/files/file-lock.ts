import { renameSync, rmdirSync, statSync, unlinkSync } from 'node:fs';
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Attempt, Seen } from '../leased.js';
import { type Aside, isRenamed } from './aside.js';
import { isGone, namesIn, statIn } from './failure.js';
import { isHolder, lifeOf, newHolder } from './holder.js';
import { quietly } from './quietly.js';
import { whenExiting } from './when-exiting.js';

/** A lock that is held, also against other processes. */
export interface FileLock {
  /** Tells whether nobody has taken it. */
  isHeld(): boolean;
  /** Says that what was begun is ready; false, where another one has taken it. */
  start(): boolean;
  /** Gives it back at once. */
  release(): void;
}

/** How a lock is got. */
export interface FileLockOptions {
  /** Who has given no sign of life for so long has lost it, in milliseconds. */
  readonly leaseMs: number;
  /** How long one may be silent that has not called `start()`. Default: it has no need to call it. */
  readonly startMs?: number;
  /** Whether a process that is seen to live keeps it, though it gives no sign of life. Default: false. */
  readonly isKeptByLife?: boolean;
  /** Is called when another one has taken it. */
  readonly onLost: () => void;
}

/** Who holds a lock gives a sign of life each second. */
const signMs = 1_000;

const starting = '.starting';

/**
 * Tries to get a lock: a directory with a file in it, whose name says who holds it, and which is touched as long as that one lives. Who takes it over from one who is gone renames
 * that file: of many who do, one finds it, and who has lost it finds its own no more. No clock is trusted: `seen` says how long the file was not touched.
 */
export const tryLock = async (
  path: string,
  aside: Aside,
  { leaseMs, startMs, isKeptByLife = false, onLost }: FileLockOptions,
  seen?: Seen,
): Promise<Attempt<FileLock>> => {
  const own = newHolder();
  const first = startMs === undefined ? own : own + starting;
  for (let tries = 0; tries < mostTries; tries += 1) {
    const name = await holderIn(path);
    if (name === undefined) {
      const isMade = await aside.make(path, (made) => writeFile(join(made, first), ''));
      if (isMade) return { lease: heldLock(path, own, first, onLost) };
      continue;
    }
    const sign = await signOf(path, name);
    if (sign === undefined) continue;
    const life = lifeOf(plain(name));
    const limit = name.endsWith(starting) ? Math.max(leaseMs, startMs ?? leaseMs) : leaseMs;
    const isSilent = seen?.holder === sign && seen.forMs >= limit;
    if (isKeptByLife && life === 'alive') return { holder: sign, isAlive: true };
    if (life !== 'gone' && !isSilent) return { holder: sign };
    if (await isRenamed(join(path, name), join(path, first))) {
      await utimes(join(path, first), new Date(), new Date()).catch(ignored);
      return { lease: heldLock(path, own, first, onLost) };
    }
  }
  // It changes hands all the time, or somebody has put another file there.
  return { holder: '' };
};

/** Tells whether somebody holds a lock. */
export const isLocked = async (path: string, leaseMs: number): Promise<boolean> => {
  const name = await holderIn(path);
  if (name === undefined || lifeOf(plain(name)) === 'gone') return false;
  const found = await statIn(join(path, name));
  return found !== undefined && Math.abs(Date.now() - found.mtimeMs) <= leaseMs;
};

/** The process that holds a lock, where it can be told. */
export const processIn = (sign: string): number | undefined =>
  isHolder(plain(sign.split(' ')[0] ?? '')) ? Number(sign.split('.')[1]) : undefined;

const mostTries = 50;

const heldLock = (path: string, own: string, first: string, onLost: () => void): FileLock => {
  const state = { file: join(path, first) };
  const isHeld = (): boolean => statSync(state.file, { throwIfNoEntry: false }) !== undefined;
  const end = (): void => {
    clearInterval(signs);
    leaveExit();
  };
  const touch = (): void => {
    const { file } = state;
    utimes(file, new Date(), new Date()).catch((error: unknown) => {
      // It may just have been renamed by ourselves. What else may fail is tried again: who waits long enough takes it.
      if (!isGone(error) || file !== state.file || isHeld()) return;
      end();
      onLost();
    });
  };
  const release = (): void => {
    end();
    quietly(() => unlinkSync(state.file));
    // Where another one has it, it is not empty.
    quietly(() => rmdirSync(path));
  };
  // A lock alone keeps no process from its end.
  const signs = setInterval(touch, signMs).unref();
  const leaveExit = whenExiting(release);
  return {
    isHeld,
    release,
    start: () => {
      const started = join(path, own);
      try {
        if (state.file !== started) renameSync(state.file, started);
      } catch (error) {
        if (isGone(error)) return false;
        throw error;
      }
      state.file = started;
      return true;
    },
  };
};

const ignored = (): void => undefined;

const plain = (name: string): string =>
  name.endsWith(starting) ? name.slice(0, -starting.length) : name;

const holderIn = async (path: string): Promise<string | undefined> =>
  (await namesIn(path)).find((name) => isHolder(plain(name)));

const signOf = async (path: string, name: string): Promise<string | undefined> => {
  const found = await statIn(join(path, name));
  return found && `${name} ${found.mtimeMs}`;
};
