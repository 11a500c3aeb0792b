import { existsSync, rmdirSync, statSync, unlinkSync } from 'node:fs';
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LeaseAttempt, ObservedHolder } from '../acquire-lease.js';
import { type Staging, tryRename } from './staging.js';
import { ignoreErrors, isNotFound, readNames, statIfExists } from './file-system.js';
import { segmentEnd } from './segments.js';
import { isHolderId, processStatus, newHolderId } from './holder-id.js';

/** An acquired lock, exclusive across processes. */
export interface FileLock {
  isHeld(): boolean;
  release(): void;
}

export interface FileLockOptions {
  /** A holder without a heartbeat for this long loses the lock, in milliseconds. */
  readonly leaseMs: number;
  /** Called when another process has taken the lock. */
  readonly onLost: () => void;
}

const heartbeatMs = 1_000;

/**
 * Tries to acquire a lock. A lock is a directory with one file, which is named after the holder and touched as its
 * heartbeat. A process takes over an expired lock by renaming that file: only one rename succeeds, and the old holder
 * no longer finds its own. No clock is trusted: `seen` says how long the caller has observed the same heartbeat.
 */
export const tryLock = async (
  path: string,
  staging: Staging,
  { leaseMs, onLost }: FileLockOptions,
  seen?: ObservedHolder,
): Promise<LeaseAttempt<FileLock>> => {
  const own = newHolderId();
  for (let tries = 0; tries < maxTries; tries += 1) {
    const name = await holderIn(path);
    if (name === undefined) {
      const removal = await removalIn(path);
      if (removal !== undefined) {
        const isSilent = seen?.holder === removal.holder && seen.forMs >= leaseMs;
        if (!isSilent && !removal.isOld) return { holder: removal.holder };
        await staging.discard(path);
      }
      const isMade = await staging.create(path, (made) => writeFile(join(made, own), ''));
      if (isMade) return { lease: heldLock(path, own, onLost) };
      continue;
    }
    const holder = await heartbeatOf(path, name);
    if (holder === undefined) continue;
    const status = processStatus(name);
    const isSilent = seen?.holder === holder && seen.forMs >= leaseMs;
    if (status !== 'gone' && !isSilent) return { holder };
    if (await tryRename(join(path, name), join(path, own))) {
      await utimes(join(path, own), new Date(), new Date()).catch(ignored);
      return { lease: heldLock(path, own, onLost) };
    }
  }
  // The lock keeps changing hands, or its directory contains a foreign file.
  return { holder: '' };
};

export const isLocked = async (path: string, leaseMs: number): Promise<boolean> => {
  if (!existsSync(path)) return false;
  const name = await holderIn(path);
  if (name === undefined || processStatus(name) === 'gone') return false;
  const found = await statIfExists(join(path, name));
  return found !== undefined && Math.abs(Date.now() - found.mtimeMs) <= leaseMs;
};

/** The id of the process that holds a lock, if its heartbeat names one. */
export const processIn = (heartbeat: string): number | undefined =>
  isHolderId(heartbeat.split(' ')[0] ?? '') ? Number(heartbeat.split('.')[1]) : undefined;

const maxTries = 50;

const heldLock = (path: string, own: string, onLost: () => void): FileLock => {
  const file = join(path, own);
  const isHeld = (): boolean => statSync(file, { throwIfNoEntry: false }) !== undefined;
  const stop = (): void => {
    clearInterval(heartbeat);
    removeExitHandler();
  };
  const touch = (): void => {
    utimes(file, new Date(), new Date()).catch((error: unknown) => {
      // Other errors: the next heartbeat tries again.
      if (!isNotFound(error)) return;
      stop();
      onLost();
    });
  };
  const release = (): void => {
    stop();
    ignoreErrors(() => unlinkSync(file));
    // Fails if the directory already holds the file of another process.
    ignoreErrors(() => rmdirSync(path));
  };
  // A lock alone does not keep the process running.
  const heartbeat = setInterval(touch, heartbeatMs).unref();
  const removeExitHandler = whenExiting(release);
  return { isHeld, release };
};

const exitWorks = new Set<() => void>();

const runExitWorks = (): void => exitWorks.forEach((work) => work());

/** Runs the work on process exit; returns a function that cancels it. All share one `exit` listener. */
const whenExiting = (work: () => void): (() => void) => {
  if (exitWorks.size === 0) process.on('exit', runExitWorks);
  exitWorks.add(work);
  return () => {
    exitWorks.delete(work);
    if (exitWorks.size === 0) process.off('exit', runExitWorks);
  };
};

const ignored = (): void => undefined;

const holderIn = async (path: string): Promise<string | undefined> =>
  (await readNames(path)).find(isHolderId);

/** A removal that is under way or was interrupted: the call itself is in the place of its lock. */
const removalIn = async (path: string) => {
  if (!(await readNames(path)).some((name) => name.endsWith(segmentEnd))) return undefined;
  const found = await statIfExists(path);
  if (found === undefined) return undefined;
  const { ino, ctimeMs } = found;
  // If the clock misleads, the removal notices that it has lost the lock.
  return { holder: `removal ${ino} ${ctimeMs}`, isOld: Date.now() - ctimeMs > oldMs };
};

/** Far longer than the removal of a portion of calls takes. */
const oldMs = 60_000;

const heartbeatOf = async (path: string, name: string): Promise<string | undefined> => {
  const found = await statIfExists(join(path, name));
  return found && `${name} ${found.mtimeMs}`;
};
