import { join } from 'node:path';
import { MillraceError } from '@millrace/core';
import { firstValueFrom, ReplaySubject, type SchedulerLike } from 'rxjs';
import { createAside } from '../files/aside.js';
import { fileFailure } from '../files/failure.js';
import { type FileLock, processIn, tryLock } from '../files/file-lock.js';
import { leased$ } from '../leased.js';

/** The right to use a directory alone. */
export type DirectoryLock = FileLock;

/** A database that starts blocks its process, which gives no sign of life meanwhile, for longer than a short lease. */
const startMs = 60_000;

/**
 * Gets the right to use a directory alone, to start what `start()` of it then says is ready. Nobody takes it from a process that is seen to live, however long that is silent. Where a process cannot be
 * seen, it waits for the right to run out.
 */
export const lockDirectory = async (
  directory: string,
  leaseMs: number,
  scheduler: SchedulerLike,
): Promise<DirectoryLock> => {
  const lock$ = new ReplaySubject<FileLock>(1);
  const aside = createAside(directory);
  const options = { leaseMs, startMs, isKeptByLife: true, onLost: () => undefined };
  const held = leased$({
    attempt: (seen) => tryLock(join(directory, 'database.lock'), aside, options, seen),
    giveBack: (lock: FileLock) => lock.release(),
    taken: (holder) => inUse(directory, processIn(holder)),
    leaseMs,
    patienceMs: startMs + leaseMs,
    scheduler,
  }).subscribe(lock$);
  try {
    const lock = await firstValueFrom(lock$);
    return { ...lock, release: () => held.unsubscribe() };
  } catch (error) {
    throw fileFailure(directory)(error);
  }
};

const inUse = (directory: string, id: number | undefined): MillraceError => {
  const where =
    id === process.pid ? 'in this process already' : `in another process${id ? ` (${id})` : ''}`;
  return new MillraceError(
    'conflict',
    `The embedded database in ${directory} is open ${where}, and one opening of it has it alone. ` +
      'End that one, give this one another directory, or have both use a server: openPostgres() of @millrace/store/postgres.',
    { retryable: true },
  );
};
