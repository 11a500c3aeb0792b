import { describe, expect, it } from '@jest/globals';
import { concatMap, from, map, mergeMap, of, ReplaySubject, share, toArray } from 'rxjs';
import { journalContract } from '../testing/journal-contract.js';
import type { CallStoreDriver, NewRecord } from './call-store-driver.js';
import { inProcessCalls } from './in-process-calls.js';

describe('inProcessCalls', () => {
  for (const { name, run } of journalContract(() => ({ first: inProcessCalls() }))) {
    it(`S6: ${name}`, run);
  }
});

describe('S6: the contract of stores of calls sees what breaks it', () => {
  const writing =
    (written: (records: readonly NewRecord[]) => readonly NewRecord[]) =>
    ({ claim$ }: CallStoreDriver): Partial<CallStoreDriver> => ({
      claim$: (callId) =>
        claim$(callId).pipe(
          map(({ append$ }) => ({ append$: (records) => append$(written(records)) })),
        ),
    });
  const unended = ({ ends: _, ...record }: NewRecord): NewRecord => record;
  const broken: Readonly<Record<string, (driver: CallStoreDriver) => Partial<CallStoreDriver>>> = {
    'lists ended calls as unfinished': ({ list$ }) => ({
      list$: ({ isUnfinished: _, ...query } = {}) => list$(query),
    }),
    'does not see where a call ends': writing((records) => records.map(unended)),
    'takes every call for one that has ended': writing((records) =>
      records.map((record) => ({ ...record, ends: true })),
    ),
    'takes a batch with an end for an end': writing((records) =>
      records.map((record) => ({ ...record, ends: records.some(({ ends }) => ends === true) })),
    ),
    'ends a call for good': (driver) => {
      const over = new Set<string>();
      return {
        claim$: (callId) =>
          driver.claim$(callId).pipe(
            map(({ append$ }) => ({
              append$: (records) => {
                if (records.some(({ ends }) => ends === true)) over.add(callId);
                return append$(records.map((it) => ({ ...it, ends: over.has(callId) })));
              },
            })),
          ),
      };
    },
    'returns the end with the record': (driver) => ({
      read$: (callId, range) =>
        driver.read$(callId, range).pipe(map((all) => all.map((it) => ({ ...it, ends: false })))),
    }),
    'ignores the time': ({ list$ }) => ({
      list$: ({ writtenUntil: _, ...query } = {}) => list$(query),
    }),
    'leaves out what was written at the time': ({ list$ }) => ({
      list$: (query = {}) =>
        list$(query).pipe(
          map((calls) => calls.filter(({ updatedAt }) => updatedAt !== query.writtenUntil)),
        ),
    }),
    'ignores the session of unfinished calls': ({ list$ }) => ({
      list$: ({ sessionId, ...query } = {}) =>
        list$(
          query.isUnfinished === true || sessionId === undefined ? query : { ...query, sessionId },
        ),
    }),
    'lists unfinished calls in the order of their beginnings': ({ list$ }) => ({
      list$: (query = {}) =>
        list$(query).pipe(
          map((calls) =>
            query.isUnfinished === true
              ? calls.toSorted((a, b) => a.createdAt - b.createdAt)
              : calls,
          ),
        ),
    }),
    'stops a removal at a call that is open': ({ remove$ }) => ({
      removeAll$: (callIds) =>
        from(callIds).pipe(
          concatMap((callId) => remove$(callId).pipe(map(() => ({ callId })))),
          toArray(),
        ),
    }),
    'does not tell the sessions of what it removes': ({ removeAll$ }) => ({
      removeAll$: (callIds) =>
        removeAll$(callIds).pipe(map((all) => all.map(({ callId }) => ({ callId })))),
    }),
    'does not tell that an unknown call is gone': ({ removeAll$, list$ }) => ({
      removeAll$: (callIds) =>
        list$().pipe(
          mergeMap((calls) =>
            removeAll$(callIds.filter((id) => calls.some(({ callId }) => callId === id))),
          ),
        ),
    }),
    'tells that it has removed an open call': ({ removeAll$ }) => ({
      removeAll$: (callIds) =>
        removeAll$(callIds).pipe(
          map((removed) =>
            callIds.map((callId) => removed.find((other) => other.callId === callId) ?? { callId }),
          ),
        ),
    }),
    'removes nothing': () => ({
      removeAll$: (callIds) => of(callIds.map((callId) => ({ callId }))),
    }),
    'removes at once': ({ removeAll$ }) => ({
      removeAll$: (callIds) => {
        const removed$ = removeAll$(callIds).pipe(share({ connector: () => new ReplaySubject(1) }));
        removed$.subscribe();
        return removed$;
      },
    }),
  };

  it.each(Object.entries(broken))('%s', async (_name, breaking) => {
    const checks = journalContract(() => {
      const first = inProcessCalls();
      return { first: { ...first, ...breaking(first) } };
    });
    const results = await Promise.allSettled(checks.map(({ run }) => run()));
    expect(results.map(({ status }) => status)).toContain('rejected');
  });
});
