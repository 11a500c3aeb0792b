import { randomUUID } from 'node:crypto';
import { fromPull, openDemand } from '@millrace/core';
import {
  type CallStoreDriver,
  type NewRecord,
  type RecordRange,
  sessionIn,
  type StoredCall,
  type StoredRecord,
} from '@millrace/core/journal';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  type Observable,
  type SchedulerLike,
  switchMap,
  take,
  timer,
} from 'rxjs';
import { type LeaseAttempt, acquireLease$, type ObservedHolder } from '../acquire-lease.js';
import { checkId, storedName } from '../stored-name.js';
import { callInUse } from '../closing.js';
import { callStatements } from './call-statements.js';
import { callOf, columnsOf, recordOf } from './call-rows.js';
import type { LazySql, Sql } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';

export interface SqlCallsOptions {
  readonly leaseMs: number;
  readonly scheduler: SchedulerLike;
}

interface HeldLease {
  readonly sql: Sql;
  readonly owner: string;
  readonly state: {
    isHeld: boolean;
    /** No record exists or is being appended. */
    isEmpty: boolean;
    /** The last append and the last renewal. The lease is released after them, as pooled connections do not keep the order of queries. */
    writing?: Promise<unknown>;
    renewing?: Promise<unknown>;
  };
}

/** Polls in case a notification is lost. */
const pollMs = 1_000;

export const sqlCalls = (
  sql: LazySql,
  { leaseMs, scheduler }: SqlCallsOptions,
): CallStoreDriver => {
  const open = (): Promise<Sql> => sql.open();
  const held = new Set<string>();
  /** Releases that are under way. This process claims a call again after them, so it does not meet its own lease. */
  const leaving = new Map<string, Promise<unknown>>();

  const hold$ = (callId: string, key: string): Observable<HeldLease> =>
    defer(() => {
      if (held.has(key)) throw callInUse(callId);
      held.add(key);
      const lease$ = acquireLease$({
        attempt: async (seen) => {
          await leaving.get(key);
          return claim(open, callId, key, leaseMs, seen);
        },
        release: ({ sql, owner, state }) => {
          state.isHeld = false;
          const { release, remove } = callStatements(sql.schema);
          // A call without records does not exist.
          const give = (): Promise<unknown> =>
            sql.query(state.isEmpty ? remove : release, [key, owner]).catch(() => undefined);
          const { writing, renewing } = state;
          const given =
            writing === undefined && renewing === undefined
              ? give()
              : Promise.allSettled([writing, renewing]).then(give);
          const left = given.then(() => {
            if (leaving.get(key) === left) leaving.delete(key);
          });
          leaving.set(key, left);
        },
        unavailable: () => callInUse(callId),
        leaseMs,
        scheduler,
      });
      return lease$.pipe(
        switchMap((lease) => merge(from([lease]), renewals$(lease, callId, key))),
        finalize(() => held.delete(key)),
      );
    });
  /** Renews a held lease. Retries if the database is unreachable: every append checks the lease anyway. */
  const renewals$ = (lease: HeldLease, callId: string, key: string): Observable<never> =>
    timer(leaseMs / 3, leaseMs / 3, scheduler).pipe(
      exhaustMap(() => {
        const { sql, owner, state } = lease;
        const renewing = sql.query(callStatements(sql.schema).renew, [key, owner, leaseMs]);
        state.renewing = renewing;
        return from(renewing).pipe(catchError(() => EMPTY));
      }),
      map((rows) => {
        if (rows.length === 0) throw callInUse(callId);
      }),
      ignoreElements(),
    );
  const at$ = <T>(callId: string, work$: (key: string) => Observable<T>): Observable<T> =>
    defer(() => {
      checkId('A call', callId);
      return work$(storedName(callId));
    });
  return {
    claim$: (callId) =>
      at$(callId, (key) =>
        hold$(callId, key).pipe(
          map((lease) => ({
            append$: (records) => defer(() => from(append(lease, callId, key, records))),
          })),
        ),
      ),
    read$: (callId, range = {}) =>
      at$(callId, (key) => fromPull(() => readRecords(open, key, range), openDemand)),
    changes$: (callId) =>
      at$(callId, (key) =>
        merge(
          from(open()).pipe(
            switchMap(({ notices$ }) => notices$),
            filter((topic) => topic === key || topic === ''),
            catchError(() => EMPTY),
          ),
          timer(pollMs, pollMs, scheduler),
        ),
      ),
    list$: (sessionId) => fromPull(() => readCalls(open, sessionId), openDemand),
    remove$: (callId) =>
      at$(callId, (key) =>
        hold$(callId, key).pipe(
          concatMap(({ sql, owner }) =>
            from(sql.query(callStatements(sql.schema).remove, [key, owner])),
          ),
          take(1),
        ),
      ),
  };
};

const claim = async (
  open: LazySql['open'],
  callId: string,
  key: string,
  leaseMs: number,
  seen?: ObservedHolder,
): Promise<LeaseAttempt<HeldLease>> => {
  const sql = await open();
  const statements = callStatements(sql.schema);
  const owner = `${randomUUID()}/${leaseMs}`;
  const silent = seen !== undefined && seen.forMs >= leaseIn(seen.holder) ? seen.holder : null;
  const [mine] = await sql.query(statements.claim, [
    key,
    toSqlText(callId),
    owner,
    leaseMs,
    silent,
  ]);
  if (mine !== undefined) {
    const isEmpty = numberIn(mine, 'last_position') === 0;
    return { lease: { sql, owner, state: { isHeld: true, isEmpty } } };
  }
  const [row] = await sql.query(statements.holder, [key]);
  return row === undefined ? claim(open, callId, key, leaseMs) : { holder: textIn(row, 'sign') };
};

/** The lease time of the holder, in milliseconds: it may differ from ours. */
const leaseIn = (holder: string): number => Number(/\/(\d+) /.exec(holder)?.[1] ?? Infinity);

const append = async (
  { sql, owner, state }: HeldLease,
  callId: string,
  key: string,
  records: readonly NewRecord[],
): Promise<void> => {
  if (!state.isHeld) throw callInUse(callId);
  if (records.length === 0) return;
  state.isEmpty = false;
  const sessionId = sessionIn(callId, records);
  const { append, appendEvents } = callStatements(sql.schema);
  const isSafe = records.some(({ kind }) => kind === 'step');
  const writing = sql.query(isSafe ? append : appendEvents, [
    key,
    owner,
    records.length,
    ...columnsOf(records),
    sessionId && toSqlText(sessionId),
  ]);
  state.writing = writing;
  const written = await writing;
  if (written.length === 0) throw callInUse(callId);
  sql.notify(key);
};

async function* readRecords(
  open: LazySql['open'],
  key: string,
  { kind, after = 0, afterSeq = -1 }: RecordRange,
): AsyncGenerator<readonly StoredRecord[]> {
  const { query, schema } = await open();
  const { read } = callStatements(schema);
  for (let position = after; ;) {
    const rows = await query(read, [key, position, afterSeq, kind ?? null]);
    const records = rows.map((row) => recordOf(row));
    const last = records.at(-1);
    if (last === undefined) return;
    yield records;
    position = last.position;
  }
}

/** Lists calls page by page. May omit a call that is written meanwhile. */
async function* readCalls(
  open: LazySql['open'],
  sessionId?: string,
): AsyncGenerator<readonly StoredCall[]> {
  const { query, schema } = await open();
  const { list, listSession } = callStatements(schema);
  // A session usually needs only its latest calls.
  const [page, statement] = sessionId === undefined ? [50, list] : [5, listSession];
  for (let after = 'infinity', key = ''; ;) {
    const rows = await query(statement, [after, key, page, sessionId && toSqlText(sessionId)]);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map(callOf);
    after = String(last['page_end']);
    key = textIn(last, 'key');
  }
}
