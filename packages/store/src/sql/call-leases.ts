import { type NewRecord, sessionIn } from 'millrace/journal';
import {
  catchError,
  defer,
  EMPTY,
  exhaustMap,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  type Observable,
  type SchedulerLike,
  switchMap,
  timer,
} from 'rxjs';
import { acquireLease$, type LeaseAttempt, type ObservedHolder } from '../acquire-lease.js';
import { callInUse } from '../closing.js';
import { newHolderId } from '../files/holder-id.js';
import type { CallClaim, CallTable } from './call-table.js';

export interface CallLeaseOptions {
  readonly leaseMs: number;
  readonly scheduler: SchedulerLike;
}

/** A call that this store has claimed for writing. */
export interface HeldLease {
  readonly table: CallTable;
  readonly owner: string;
  /** Aborted when the lease is given back. */
  readonly signal: AbortSignal;
  readonly state: {
    isHeld: boolean;
    /** No record exists or is being appended. */
    isEmpty: boolean;
    /** The position of the last record, unless an append has failed. */
    position: number | undefined;
    /** The last append and the last renewal. The lease is released after them, as pooled connections do not keep the order of queries. */
    writing?: Promise<unknown>;
    renewing?: Promise<unknown>;
  };
}

export interface CallLeases {
  /** Claims a call, emits its lease once, and renews it until unsubscribed. Errors with `conflict` if it is lost. Cold. */
  hold$(callId: string, key: string): Observable<HeldLease>;
}

export const createCallLeases = (
  open: (signal?: AbortSignal) => Promise<CallTable>,
  { leaseMs, scheduler }: CallLeaseOptions,
): CallLeases => {
  const held = new Set<string>();
  /** Releases that are under way. This process claims a call again after them, so it does not meet its own lease. */
  const leaving = new Map<string, Promise<unknown>>();
  const release = (key: string, lease: HeldLease): void => {
    const left = giveBack(key, lease).then(() => {
      if (leaving.get(key) === left) leaving.delete(key);
    });
    leaving.set(key, left);
  };
  return {
    hold$: (callId, key) =>
      defer(() => {
        if (held.has(key)) throw callInUse(callId);
        held.add(key);
        const left = new AbortController();
        const lease$ = acquireLease$({
          attempt: async (seen) => {
            await leaving.get(key);
            return claim(
              await open(left.signal),
              { callId, key, leaseMs, signal: left.signal },
              seen,
            );
          },
          release: (lease: HeldLease) => release(key, lease),
          unavailable: () => callInUse(callId),
          leaseMs,
          scheduler,
        });
        return lease$.pipe(
          switchMap((lease) => merge(from([lease]), renewals$(lease, callId, key))),
          finalize(() => {
            left.abort();
            held.delete(key);
          }),
        );
      }),
  };

  /** Renews a held lease. Retries if the database is unreachable: every append checks the lease anyway. */
  function renewals$(lease: HeldLease, callId: string, key: string): Observable<never> {
    const { table, owner, signal, state } = lease;
    return timer(leaseMs / 3, leaseMs / 3, scheduler).pipe(
      exhaustMap(() => {
        const renewing = table.renew(key, owner, leaseMs, signal);
        state.renewing = renewing;
        return from(renewing).pipe(catchError(() => EMPTY));
      }),
      map((isHeld) => {
        if (!isHeld) throw callInUse(callId);
      }),
      ignoreElements(),
    );
  }
};

const giveBack = (key: string, { table, owner, state }: HeldLease): Promise<unknown> => {
  state.isHeld = false;
  // A call without records does not exist.
  const give = (): Promise<unknown> =>
    (state.isEmpty ? table.remove(key, owner) : table.release(key, owner)).catch(() => undefined);
  const { writing, renewing } = state;
  return writing === undefined && renewing === undefined
    ? give()
    : Promise.allSettled([writing, renewing]).then(give);
};

const claim = async (
  table: CallTable,
  wanted: Pick<CallClaim, 'callId' | 'key' | 'leaseMs'> & Pick<HeldLease, 'signal'>,
  seen?: ObservedHolder,
): Promise<LeaseAttempt<HeldLease>> => {
  const { signal, ...call } = wanted;
  const { key, leaseMs } = call;
  const owner = `${newHolderId()}/${leaseMs}`;
  const silent = seen !== undefined && seen.forMs >= leaseIn(seen.holder) ? seen.holder : undefined;
  const position = await table.claim({ ...call, owner, silent }, signal);
  if (position !== undefined) {
    const state = { isHeld: true, isEmpty: position === 0, position };
    return { lease: { table, owner, signal, state } };
  }
  const holder = await table.holder(key);
  return holder === undefined ? claim(table, wanted) : { holder };
};

/** The lease time of the holder, in milliseconds: it may differ from ours. */
const leaseIn = (holder: string): number => Number(/\/(\d+) /.exec(holder)?.[1] ?? Infinity);

/** Appends records to a call. Rejects with `conflict` if the lease was released or is lost. */
export const appendHeld = async (
  { table, owner, state }: HeldLease,
  callId: string,
  key: string,
  records: readonly NewRecord[],
  signal?: AbortSignal,
): Promise<void> => {
  if (!state.isHeld) throw callInUse(callId);
  if (records.length === 0) return;
  const { position: after } = state;
  state.isEmpty = false;
  state.position = undefined;
  const batch = {
    key,
    owner,
    records,
    after,
    sessionId: sessionIn(callId, records),
    isSafe: records.some(({ kind }) => kind === 'step'),
  };
  const writing = table.append(batch, signal);
  state.writing = writing;
  if (!(await writing)) throw callInUse(callId);
  if (after !== undefined) state.position = after + records.length;
};
