import { existsSync } from 'node:fs';
import { rename, rm, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type RemovedCall, sessionIn } from 'millrace/journal';
import { storedName } from '../stored-name.js';
import type { CallIndex, RemovedEntry } from './call-index.js';
import { alreadyExists, ifMissing, isNotFound, readNames } from './file-system.js';
import { isHolderId } from './holder-id.js';
import { inParallel } from './in-parallel.js';
import { undated } from './list-calls.js';
import type { CallReading } from './maintain-index.js';
import { syncDirectories } from './make-directory.js';
import { endedAt, readEndsIfIntact } from './read-ends.js';
import { segmentEnd } from './segments.js';
import type { SessionIndex } from './session-index.js';

export interface CallRemoval {
  /** Removes calls that are not open. Resolves to those that are removed, or did not exist, and to the others. */
  removeClosed(callIds: readonly string[]): Promise<RemovalResult>;
  /** Removes a call whose lock this process has. */
  removeLocked(callId: string): Promise<RemovedCall>;
}

export interface RemovalResult {
  readonly removed: readonly RemovedCall[];
  readonly open: readonly string[];
}

export interface CallRemovalOptions extends CallReading {
  readonly index: CallIndex;
  readonly sessionIndex: SessionIndex;
}

interface ExaminedCall extends RemovedEntry, RemovedCall {}

/**
 * Removes calls with few operations. A call is moved to the place of its lock, which fails if the lock is held, and so removes and locks it in one operation. Then its entries in the indexes are deleted, and then the files. A crash leaves each call whole or gone.
 * Other remains are deleted by the next claim of the call, and by lists.
 */
export const createCallRemoval = (root: string, options: CallRemovalOptions): CallRemoval => {
  const { index, sessionIndex, staging, laterSegments } = options;
  const pathOf = (callId: string): string => join(root, storedName(callId));
  const lockOf = (callId: string): string => `${pathOf(callId)}.lock`;
  const examined = async (callId: string): Promise<ExaminedCall> => {
    const ends = await readEndsIfIntact(pathOf(callId), laterSegments);
    const sessionId = sessionIn(callId, [ends?.first && undated(ends.first)]);
    const end = endedAt(callId, ends?.last);
    return {
      ...{ callId, name: storedName(callId), endedAt: end },
      ...(sessionId !== undefined && { sessionId }),
    };
  };
  const forget = async (calls: readonly ExaminedCall[]): Promise<void> => {
    await index.forget(calls);
    const sessions = new Map<string, Set<string>>();
    for (const { sessionId, name } of calls) {
      if (sessionId === undefined) continue;
      sessions.set(sessionId, (sessions.get(sessionId) ?? new Set()).add(name));
    }
    for (const [sessionId, names] of sessions) await sessionIndex.forget(sessionId, names);
  };
  const tryRemove = async (callId: string): Promise<readonly ExaminedCall[]> => {
    const call = await examined(callId);
    return (await isMoved(pathOf(callId), lockOf(callId))) ? [call] : [];
  };
  return {
    removeClosed: async (callIds) => {
      const known = callIds.filter((callId) => existsSync(pathOf(callId)));
      const removed = (await inParallel(known, tryRemove)).flat();
      // The files are deleted only when it is on disk that they are gone.
      await syncDirectories(root);
      // Unless the removal took so long that another process has taken the lock.
      const isLocked = ({ callId }: RemovedCall): boolean => existsSync(lockOf(callId));
      await forget(removed.filter(isLocked));
      await inParallel(removed, ({ callId }) => deleteFiles(lockOf(callId)));
      const left = new Set(known);
      for (const { callId } of removed) left.delete(callId);
      const unknown = new Set(callIds);
      for (const callId of known) unknown.delete(callId);
      return {
        removed: [...removed.map(removedCall), ...[...unknown].map((callId) => ({ callId }))],
        open: [...left].filter((callId) => existsSync(pathOf(callId))),
      };
    },
    removeLocked: async (callId) => {
      const call = await examined(callId);
      await staging.discard(pathOf(callId));
      await forget([call]);
      return removedCall(call);
    },
  };
};

const removedCall = ({ name: _, endedAt: __, ...call }: ExaminedCall): RemovedCall => call;

/** Resolves to false if the lock is held, or the call does not exist any more. */
const isMoved = async (path: string, lock: string): Promise<boolean> => {
  try {
    await rename(path, lock);
    return true;
  } catch (error) {
    if (alreadyExists(error) || isNotFound(error)) return false;
    throw error;
  }
};

/** Deletes the files of a call that is in the place of its lock, with few operations. */
const deleteFiles = async (lock: string): Promise<void> => {
  const names = await readNames(lock);
  // Without segments, it would not be known as a removal.
  const isSegment = (name: string): boolean => name.endsWith(segmentEnd);
  for (const name of [...names.filter((it) => !isSegment(it)), ...names.filter(isSegment)]) {
    // Another process has the lock if the removal took very long.
    if (isHolderId(name)) return;
    const path = join(lock, name);
    await ifMissing(unlink(path), undefined).catch(() =>
      rm(path, { recursive: true, force: true }),
    );
  }
  await rmdir(lock).catch(() => undefined);
};
