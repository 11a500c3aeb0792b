import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type RemovedCall, sessionIn } from '@millrace/core/journal';
import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';
import { storedName } from '../stored-name.js';
import type { CallIndex, CallReading } from './call-index.js';
import { type FileLock, tryLock } from './file-lock.js';
import { undated } from './list-calls.js';
import { endedAt, readEndsIfIntact } from './read-ends.js';
import type { SessionIndex } from './session-index.js';

export interface CallRemoval {
  /**
   * Removes a portion of calls, each as a whole, and resolves to those that are removed and to those that somebody may have
   * open. The order of the operations leaves each call whole or gone in a crash; the entries that it leaves are
   * corrected by lists.
   */
  removeClosed(callIds: readonly string[]): Promise<RemovalResult>;
  /** Removes a call whose lock this process has. */
  removeLocked(callId: string, lock: FileLock): Promise<void>;
}

export interface RemovalResult {
  readonly removed: readonly RemovedCall[];
  readonly open: readonly string[];
}

export interface CallRemovalOptions extends CallReading {
  readonly index: CallIndex;
  readonly sessionIndex: SessionIndex;
  /** The directories of the calls that this store has claimed. */
  readonly claimed: Set<string>;
}

interface LockedCall {
  readonly callId: string;
  readonly name: string;
  readonly path: string;
  readonly lock: FileLock;
}

interface ClosedCall extends LockedCall {
  readonly sessionId: string | undefined;
  readonly endedAt: number | undefined;
}

/** Calls that are examined in parallel. */
const concurrency = 16;

export const createCallRemoval = (root: string, options: CallRemovalOptions): CallRemoval => {
  const { index, sessionIndex, claimed, staging, laterSegments, leaseMs } = options;
  const pathOf = (callId: string): string => join(root, storedName(callId));
  const examined = async (callId: string, lock: FileLock): Promise<ClosedCall> => {
    const [name, path] = [storedName(callId), pathOf(callId)];
    const ends = await readEndsIfIntact(path, laterSegments);
    const sessionId = sessionIn(callId, [ends?.first && undated(ends.first)]);
    return { callId, name, path, lock, sessionId, endedAt: endedAt(callId, ends?.last) };
  };
  const forget = async (calls: readonly ClosedCall[]): Promise<void> => {
    await Promise.all(calls.map(({ name, endedAt: end }) => index.forget(name, end)));
    const sessions = new Map<string, Set<string>>();
    for (const { sessionId, name } of calls) {
      if (sessionId === undefined) continue;
      sessions.set(sessionId, (sessions.get(sessionId) ?? new Set()).add(name));
    }
    for (const [sessionId, names] of sessions) await sessionIndex.forget(sessionId, names);
    await index.tidy();
  };
  const remove = async (calls: readonly ClosedCall[]): Promise<readonly ClosedCall[]> => {
    const locks = new Map(calls.map(({ path, lock }) => [path, lock]));
    const mayRemove = (path: string): boolean =>
      locks.get(path)?.isHeld() === true && existsSync(path);
    const away = await staging.removeAll([...locks.keys()], mayRemove);
    const removed = calls.filter(({ path }) => away.removed.has(path));
    await forget(removed);
    await away.delete();
    return removed;
  };
  const tryClose = async (callId: string): Promise<ClosedCall | undefined> => {
    const path = pathOf(callId);
    if (claimed.has(path)) return undefined;
    claimed.add(path);
    const onLost = (): void => undefined;
    const tried = await tryLock(`${path}.lock`, staging, { leaseMs, onLost }).catch(
      (error: unknown) => {
        claimed.delete(path);
        throw error;
      },
    );
    if ('lease' in tried) return examined(callId, tried.lease);
    claimed.delete(path);
    return undefined;
  };
  return {
    removeClosed: async (callIds) => {
      const isThere = (callId: string): boolean => existsSync(pathOf(callId));
      const tried$ = from(callIds.filter(isThere)).pipe(mergeMap(tryClose, concurrency), toArray());
      const calls = (await lastValueFrom(tried$)).flatMap((call) => call ?? []);
      try {
        const removed = await remove(calls);
        const sessionIds = new Map(removed.map((call) => [call.callId, call.sessionId]));
        const open = callIds.filter((callId) => !sessionIds.has(callId) && isThere(callId));
        const isOpen = new Set(open);
        const gone = callIds
          .filter((callId) => !isOpen.has(callId))
          .map((callId) => ({ callId, ...withSession(sessionIds.get(callId)) }));
        return { removed: gone, open };
      } finally {
        for (const { path, lock } of calls) {
          lock.release();
          claimed.delete(path);
        }
      }
    },
    removeLocked: async (callId, lock) => {
      await remove([await examined(callId, lock)]);
    },
  };
};

const withSession = (sessionId: string | undefined): Pick<RemovedCall, 'sessionId'> =>
  sessionId === undefined ? {} : { sessionId };
