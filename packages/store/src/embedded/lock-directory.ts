import { join } from 'node:path';
import { MillraceError } from '@millrace/core';
import { firstValueFrom, ReplaySubject, type SchedulerLike } from 'rxjs';
import { fileFailure } from '../files/failure.js';
import { type FileLock, tryLock } from '../files/file-lock.js';
import { makeDirectory } from '../files/open-segment.js';
import { leased$ } from '../leased.js';

/** The right to use a directory alone. */
export type DirectoryLock = FileLock;

/** Gets the right to use a directory alone; waits for that of a process that is gone to run out. */
export const lockDirectory = async (
  directory: string,
  leaseMs: number,
  scheduler: SchedulerLike,
): Promise<DirectoryLock> => {
  const lock$ = new ReplaySubject<FileLock>(1);
  const held = leased$({
    attempt: async () => {
      await makeDirectory(directory);
      return tryLock(join(directory, 'database.lock'), leaseMs, () => undefined);
    },
    giveBack: (lock: FileLock) => lock.release(),
    taken: () => inUse(directory),
    leaseMs,
    scheduler,
  }).subscribe(lock$);
  try {
    const lock = await firstValueFrom(lock$);
    return { isHeld: () => lock.isHeld(), release: () => held.unsubscribe() };
  } catch (error) {
    throw fileFailure(directory)(error);
  }
};

const inUse = (directory: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The embedded database in ${directory} is open in another process, and one process has it alone. ` +
      'End that one, give this one another directory, or have both use a server: openPostgres() of @millrace/store/postgres.',
    { retryable: true },
  );
