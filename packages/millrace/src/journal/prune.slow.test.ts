import { describe, expect, it } from '@jest/globals';
import { defer, throwError } from 'rxjs';
import { MillraceError } from '../values/errors.js';
import { calls$, type CallStoreDriver, prune$ } from './index.js';
import type { PruneOptions } from './call-summary.js';
import { all, begun, event, step, storeWith } from './stored-calls.test-support.js';

/** Calls of each kind, the first 10 ms old and each next one 10 ms younger than that before it; it is 60 now. */
const stored = async () => {
  let now = 0;
  const end = (callId: string, reason: string) =>
    event(1, { rootId: callId, callId, type: 'postCall', reply: { reason } });
  const error = { code: 'timeout', message: 'Late.' };
  const store = await storeWith(
    {
      old: [begun('old'), end('old', 'answer')],
      waiting: [begun('waiting'), end('waiting', 'suspended')],
      failed: [
        begun('failed'),
        event(1, { rootId: 'failed', callId: 'failed', type: 'error', error }),
      ],
      broken: [begun('broken')],
      unreadable: [step('unreadable/call', {})],
      young: [begun('young'), end('young', 'answer')],
    },
    () => (now += 5),
  );
  return { store, scheduler: { now: () => 60 } };
};

const removedBy = async (options: Partial<PruneOptions>) => {
  const { store, scheduler } = await stored();
  const before = (await all(calls$(store))).length;
  const removed = await all(prune$(store, { olderThanMs: 0, scheduler, ...options }));
  expect((await all(calls$(store))).length).toBe(before - removed.length);
  return removed.map(({ callId }) => callId).sort();
};

describe('prune$', () => {
  it('S7: removes what has ended, and reports what', async () => {
    expect(await removedBy({})).toEqual(['failed', 'old', 'waiting', 'young']);
    expect(await removedBy({ olderThanMs: 25 })).toEqual(['failed', 'old', 'waiting']);
    expect(await removedBy({ olderThanMs: 1_000 })).toEqual([]);
    expect(await removedBy({ status: ['unfinished', 'unreadable'] })).toEqual([
      'broken',
      'unreadable',
    ]);
    expect(await removedBy({ keep: ({ callId }) => callId !== 'old' })).toEqual(['old']);
  });

  it('S7: leaves calls that a process has open, and reports failures of the store', async () => {
    const { store, scheduler } = await stored();
    const driver: CallStoreDriver = {
      ...store.driver,
      removeAll$: () => throwError(() => new MillraceError('store', 'Not now.')),
    };
    await expect(all(prune$({ driver }, { olderThanMs: 0 }))).rejects.toThrow('Not now.');
    const held = store.driver.claim$('old').subscribe({ error: fail });
    const removed = await all(prune$(store, { olderThanMs: 0, scheduler }));
    expect(removed.map(({ callId }) => callId).sort()).toEqual(['failed', 'waiting', 'young']);
    held.unsubscribe();
    expect(await all(prune$(store, { olderThanMs: 0, scheduler }))).toHaveLength(1);
  });

  it('X18: holds no more than so many calls at the same time, however many there are', async () => {
    const ids = Array.from({ length: 10_003 }, (_, at) => `c${at}`);
    const store = await storeWith(Object.fromEntries(ids.map((id) => [id, [begun(id)]])));
    let lists = 0;
    let isStuck = false;
    const driver: CallStoreDriver = {
      ...store.driver,
      list$: (query) => defer(() => ((lists += 1), store.driver.list$(query))),
      removeAll$: (callIds) =>
        store.driver.removeAll$(isStuck ? [] : callIds.filter((callId) => callId !== 'c0')),
    };
    const prune = () => all(prune$({ driver }, { olderThanMs: 0, status: ['unfinished'] }));
    isStuck = true;
    expect([(await prune()).length, lists]).toEqual([0, 2]);
    isStuck = false;
    expect([(await prune()).length, lists]).toEqual([10_002, 5]);
  });

  it('refuses what it cannot be', async () => {
    const { store } = await stored();
    expect(() => prune$(store, {} as PruneOptions)).toThrow("needs 'olderThanMs'");
    expect(() => prune$(store, { olderThanMs: 0, status: ['running' as 'ended'] })).toThrow(
      "'status'",
    );
  });
});

const fail = (error: unknown): never => {
  throw error;
};
