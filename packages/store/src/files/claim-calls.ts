import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { MillraceError } from 'millrace';
import { type NewRecord, sessionIn } from 'millrace/journal';
import { defer, finalize, merge, type Observable, type SchedulerLike, Subject } from 'rxjs';
import { acquireLease$, type LeaseAttempt, type ObservedHolder } from '../acquire-lease.js';
import { callInUse } from '../closing.js';
import { storedName } from '../stored-name.js';
import { recordWriter } from './append-records.js';
import type { CallIndex } from './call-index.js';
import { directoryMissing, isMissing } from './file-system.js';
import { type FileLock, tryLock } from './file-lock.js';
import { heldCall, type HeldCall } from './held-call.js';
import { openSegment } from './open-segment.js';
import { endedAt } from './read-ends.js';
import type { SessionIndex } from './session-index.js';
import type { Staging } from './staging.js';

/** Calls have one writer at a time, in all processes. */
export interface CallClaims {
  /** Acquires the lock of a call, and emits once; releases it on unsubscribe. Errors with `conflict` if another writer has it. */
  lock$(callId: string): Observable<FileLock>;
  /** As `lock$`, and opens the call for writing. Errors with `conflict` also when the call is lost. */
  claim$(callId: string): Observable<HeldCall>;
  /** Whether a call is known to have no records: it does not exist, or this process has claimed it and has written nothing. */
  isEmpty(callId: string): boolean;
}

export interface CallClaimsOptions {
  readonly root: string;
  readonly staging: Staging;
  readonly index: CallIndex;
  readonly sessionIndex: SessionIndex;
  readonly leaseMs: number;
  readonly scheduler: SchedulerLike;
}

/** A call to claim. */
interface Claimed extends CallClaimsOptions {
  readonly callId: string;
  readonly path: string;
}

export const createCallClaims = (options: CallClaimsOptions): CallClaims => {
  const claimed = new Set<string>();
  const opened = new Map<string, HeldCall>();
  const pathOf = (callId: string): string => join(options.root, storedName(callId));
  const held$ = <Held extends Holder>(
    callId: string,
    open: (call: Claimed, lock: FileLock, onLost: () => void) => Promise<Held>,
  ): Observable<Held> =>
    defer(() => {
      const path = pathOf(callId);
      if (claimed.has(path)) throw callInUse(callId);
      claimed.add(path);
      const call = { ...options, callId, path };
      return hold$(call, (lock, onLost) => open(call, lock, onLost)).pipe(
        finalize(() => {
          claimed.delete(path);
          opened.delete(path);
        }),
      );
    });
  return {
    lock$: (callId) => held$(callId, (_, lock) => Promise.resolve(lock)),
    claim$: (callId) =>
      held$(callId, async (call, lock, onLost) => {
        const held = await openCall(call, lock, onLost);
        if (claimed.has(call.path)) opened.set(call.path, held);
        return held;
      }),
    isEmpty: (callId) => {
      const path = pathOf(callId);
      return isMissing(path) || opened.get(path)?.isEmpty() === true;
    },
  };
};

interface Holder {
  release(): void;
  /** Called instead of `onLost`, if present. */
  lose?(): void;
}

/** Acquires the lock of a call and emits what `open` creates; releases it on unsubscribe. */
const hold$ = <Held extends Holder>(
  call: Claimed,
  open: (lock: FileLock, onLost: () => void) => Promise<Held>,
): Observable<Held> => {
  const { callId, path, index, staging, leaseMs, scheduler } = call;
  const lost$ = new Subject<never>();
  const onLost = (): void => lost$.error(lost(call));
  let held: Holder | undefined;
  const attempt = async (seen?: ObservedHolder): Promise<LeaseAttempt<Held>> => {
    await index.prepare();
    const loseLock = (): void => (held?.lose ?? onLost)();
    const tried = await tryLock(`${path}.lock`, staging, { leaseMs, onLost: loseLock }, seen);
    if (!('lease' in tried)) return tried;
    try {
      const lease = await open(tried.lease, onLost);
      held = lease;
      return { lease };
    } catch (error) {
      tried.lease.release();
      throw error;
    }
  };
  const release = (it: Held): void => it.release();
  const unavailable = (): MillraceError => callInUse(callId);
  return merge(acquireLease$({ attempt, release, unavailable, leaseMs, scheduler }), lost$);
};

/** A call is lost to another writer, or because its directory was moved or deleted. */
const lost = ({ callId, path, root }: Claimed): MillraceError =>
  existsSync(path) ? callInUse(callId) : directoryMissing(root);

const openCall = async (call: Claimed, lock: FileLock, onLost: () => void): Promise<HeldCall> => {
  const { callId, path, index, sessionIndex, scheduler } = call;
  const segment = await openSegment(path, callId, scheduler.now());
  if (segment === undefined) throw lost(call);
  const isNew = segment.cursor.position === 0;
  const end = endedAt(callId, segment.last);
  const entry = await index.open({ name: storedName(callId), isNew, endedAt: end });
  const before = async (records: readonly NewRecord[], at: number | undefined) => {
    const sessionId = sessionIn(callId, records);
    const added = sessionId === undefined ? sessionId : sessionIndex.add(sessionId, callId);
    const [directories] = await Promise.all([entry.before(at), added]);
    return directories;
  };
  const remove = (): void => {
    segment.remove();
    entry.discard();
  };
  return heldCall({
    ...{ callId, lock, onLost, lost: () => lost(call) },
    writer: recordWriter(path, segment, { scheduler, entry: { before, after: entry.after } }),
    remove: isNew ? remove : undefined,
  });
};
