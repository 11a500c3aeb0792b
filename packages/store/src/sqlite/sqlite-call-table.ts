import type { StoredCall } from 'millrace/journal';
import {
  catchError,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  from,
  map,
  merge,
  type Observable,
  type SchedulerLike,
  share,
  Subject,
  timer,
} from 'rxjs';
import { processStatus } from '../files/holder-id.js';
import type { CallClaim, CallTable } from '../sql/call-table.js';
import { wholeMs } from '../whole-ms.js';
import type { SqliteEngine } from './engine.js';

/** How often a follower asks whether another process has written. It costs less than 0.1 ms. */
const pollMs = 100;

export const sqliteCallTable = (engine: SqliteEngine, scheduler: SchedulerLike): CallTable => {
  const written$ = new Subject<string>();
  const now = (): number => wholeMs(scheduler.now());
  const claim = (call: CallClaim): Promise<number | undefined> =>
    engine.run('claimCall', call, now());
  const holder = (key: string): Promise<string | undefined> => engine.run('callHolder', key);
  return {
    claim: async (call) => {
      const position = await claim(call);
      if (position !== undefined || call.silent !== undefined) return position;
      const sign = await holder(call.key);
      // The lease of a process that was killed need not expire.
      return sign !== undefined && isGone(sign) ? claim({ ...call, silent: sign }) : undefined;
    },
    holder,
    renew: (key, owner, leaseMs) => engine.run('renewCall', key, owner, now() + leaseMs),
    release: (key, owner) => engine.run('releaseCall', key, owner),
    releaseAll: (keys) => engine.run('releaseCalls', keys),
    append: async (batch) => {
      const isHeld = await engine.run(batch.isSafe ? 'appendSteps' : 'appendEvents', batch, now());
      if (isHeld) written$.next(batch.key);
      return isHeld;
    },
    read: (key, range) => engine.run('readRecords', key, range),
    list: async (query, after) => {
      const { calls, owners, end } = await engine.run('listCalls', query, after, now());
      const isOpen = (call: StoredCall, at: number): boolean =>
        call.isOpen && !isGone(owners[at] ?? '');
      return { calls: calls.map((call, at) => ({ ...call, isOpen: isOpen(call, at) })), end };
    },
    remove: (key, owner) => engine.run('removeCall', key, owner),
    removeAll: (keys) => engine.run('removeCalls', keys, now()),
    notices$: merge(written$, others$(engine, scheduler).pipe(map(() => ''))),
  };
};

const isGone = (sign: string): boolean =>
  processStatus(sign.slice(0, sign.indexOf('/'))) === 'gone';

/** Emits when another connection may have written: first, and with each change. One poll for all followers. */
const others$ = (engine: SqliteEngine, scheduler: SchedulerLike): Observable<unknown> =>
  timer(0, pollMs, scheduler).pipe(
    exhaustMap(() => from(engine.run('dataVersion')).pipe(catchError(() => EMPTY))),
    distinctUntilChanged(),
    share(),
  );
