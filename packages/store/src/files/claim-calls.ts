import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { MillraceError } from 'millrace';
import { type NewRecord, sessionIn, type Claim } from 'millrace/journal';
import { defer, finalize, merge, type Observable, type SchedulerLike, Subject, from } from 'rxjs';
import { acquireLease$, type LeaseAttempt, type ObservedHolder } from '../acquire-lease.js';
import { callInUse } from '../closing.js';
import { storedName } from '../stored-name.js';
import { recordWriter, type RecordWriter } from './append-records.js';
import type { CallIndex } from './call-index.js';
import { directoryMissing, isMissing } from './file-system.js';
import { type FileLock, tryLock } from './file-lock.js';
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
  const onLost = (): void => lost$.error(callLost(call));
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
const callLost = ({ callId, path, root }: Claimed): MillraceError =>
  existsSync(path) ? callInUse(callId) : directoryMissing(root);

const openCall = async (call: Claimed, lock: FileLock, onLost: () => void): Promise<HeldCall> => {
  const { callId, path, index, sessionIndex, scheduler } = call;
  const segment = await openSegment(path, callId, scheduler.now());
  if (segment === undefined) throw callLost(call);
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
    ...{ callId, lock, onLost, lost: () => callLost(call) },
    writer: recordWriter(path, segment, { scheduler, entry: { before, after: entry.after } }),
    remove: isNew ? remove : undefined,
  });
};

/** A call that this process has claimed for writing. */
interface HeldCall {
  readonly claim: Claim;
  /** Whether it has no records, of this writer or of one that has taken over. */
  isEmpty(): boolean;
  /** Releases the call now, or after the pending write. */
  release(): void;
  /** Another process has taken the lock. Reported now, or after the outcome of the pending write. */
  lose(): void;
}

interface HeldCallOptions {
  readonly callId: string;
  readonly lock: FileLock;
  readonly writer: RecordWriter;
  /** Removes the call, which has no records yet; undefined if it has some. */
  readonly remove: (() => void) | undefined;
  readonly onLost: () => void;
  /** Creates the error for a call that another writer took. */
  readonly lost: () => Error;
}

/** Holds a call, given its lock and its writer. */
const heldCall = (options: HeldCallOptions): HeldCall => {
  const { callId, lock, writer, onLost, lost } = options;
  let { remove } = options;
  const state = { isHeld: true, isWriting: false, isLost: false };
  const end = (): void => {
    // A call without records does not exist.
    if (lock.isHeld()) remove?.();
    lock.release();
    writer.close();
  };
  const write = async (records: readonly NewRecord[]): Promise<void> => {
    state.isWriting = true;
    if (records.length > 0) remove = undefined;
    try {
      if (await writer.append(records)) return;
      state.isLost = true;
      throw lost();
    } finally {
      state.isWriting = false;
      if (!state.isHeld) end();
    }
  };
  return {
    claim: {
      append$: (records) =>
        defer(() => {
          if (!state.isHeld) throw callInUse(callId);
          return from(write(records));
        }).pipe(
          finalize(() => {
            if (state.isLost) onLost();
          }),
        ),
    },
    isEmpty: () => state.isHeld && remove !== undefined && writer.isLast(),
    release: () => {
      state.isHeld = false;
      if (!state.isWriting) end();
    },
    lose: () => {
      state.isLost = true;
      if (!state.isWriting) onLost();
    },
  };
};
