import { join } from 'node:path';
import { MillraceError } from '@millrace/core';
import { firstValueFrom, ReplaySubject, type SchedulerLike } from 'rxjs';
import { createStaging } from '../files/staging.js';
import { toStoreError } from '../files/file-system.js';
import { type FileLock, processIn, tryLock } from '../files/file-lock.js';
import { acquireLease$ } from '../acquire-lease.js';

/** The exclusive right to use a directory. */
export type DirectoryLock = FileLock;

/** A starting database blocks its process, which sends no heartbeat meanwhile, for longer than a short lease. */
const startMs = 60_000;

/**
 * Locks a directory; call `start()` when the database has started. A process known to be running keeps the lock, even
 * without heartbeats. If the holder cannot be checked, waits until its lease expires.
 */
export const lockDirectory = async (
  directory: string,
  leaseMs: number,
  scheduler: SchedulerLike,
): Promise<DirectoryLock> => {
  const lock$ = new ReplaySubject<FileLock>(1);
  const staging = createStaging(directory);
  const options = { leaseMs, startMs, keepWhileAlive: true, onLost: () => undefined };
  const held = acquireLease$({
    attempt: (seen) => tryLock(join(directory, 'database.lock'), staging, options, seen),
    release: (lock: FileLock) => lock.release(),
    unavailable: (holder) => inUse(directory, processIn(holder)),
    leaseMs,
    maxWaitMs: startMs + leaseMs,
    scheduler,
  }).subscribe(lock$);
  try {
    const lock = await firstValueFrom(lock$);
    return { ...lock, release: () => held.unsubscribe() };
  } catch (error) {
    throw toStoreError(directory)(error);
  }
};

const inUse = (directory: string, id: number | undefined): MillraceError => {
  const where =
    id === process.pid ? 'in this process' : `in another process${id ? ` (${id})` : ''}`;
  return new MillraceError(
    'conflict',
    `The embedded database in ${directory} is already open ${where}, and only one store can open it at a time. ` +
      'Close that store, choose another directory, or use a server: openPostgres() from @millrace/store/postgres.',
    { retryable: true },
  );
};
