import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setMaxListeners } from 'node:events';
import { concatWith, NEVER, of, Subject } from 'rxjs';
import { type AnswerServer, startAnswerServer } from '../server/start-answer-server.js';
import { httpSorts } from './http-sorts.js';
import { createLedger } from './ledger.js';
import { leftOver } from './left-over.js';
import { measureLeaks } from './measure-leaks.js';
import { scriptedSorts } from './scripted-sorts.js';
import { createShared } from './shared.js';
import type { Sort } from './sort.js';

// Each look at the memory collects all garbage, that of the tests included.
jest.setTimeout(180_000);

/** Far above what compiled code grows by, and far below a conversation for each call. */
const mostKb = 2_000;

/** The test runner has timers of its own, of which one or two may begin or end meanwhile. */
const foundIn = (leaks: Parameters<typeof leftOver>[0]): readonly string[] =>
  leftOver(leaks, mostKb).filter((it) => !/^there are left: Timeout(?:, Timeout)?$/.test(it));

describe('calls of every sort', () => {
  let server: AnswerServer;

  beforeAll(async () => {
    server = await startAnswerServer();
  });
  afterAll(() => server.close());

  it('X18: leave nothing if models play a script', async () => {
    const shared = createShared();
    // Of a single step a table that the runtime doubles would be all; of five the median is none.
    const measure = () => measureLeaks(shared, scriptedSorts(shared), { perBlock: 130, blocks: 6 });
    const first = await measure();
    // What the runtime keeps for itself it keeps once; what leaks is there again.
    const leaks = first.growthKb > mostKb ? await measure() : first;
    expect(foundIn(leaks)).toEqual([]);
    expect(leaks.subscriptions.all).toBeGreaterThan(leaks.calls);
    expect(leaks.sessions.all).toBeGreaterThan(0);
  });

  it('X18: leave nothing over HTTP', async () => {
    const shared = createShared();
    const leaks = await measureLeaks(shared, httpSorts(server, shared), {
      perBlock: 20,
      blocks: 2,
    });
    expect(leftOver(leaks, Infinity)).toEqual([]);
    expect(leaks.sessions.all).toBe(leaks.calls);
  });
});

describe('the search for leaks', () => {
  const search = (call: Sort['call'], shared = createShared()) =>
    measureLeaks(shared, [{ name: 'bad', ends: 'well', call }], { perBlock: 10, blocks: 2 });

  it('finds a call that ends otherwise', async () => {
    const leaks = await search(() => Promise.resolve('badly'));
    expect(leaks.wrongs).toEqual(['a call (bad) ended as badly']);
  });

  it('finds memory, listeners, subscriptions and sessions that are held', async () => {
    const shared = createShared();
    const held: unknown[] = [];
    setMaxListeners(Infinity, shared.options.signal);
    const leaks = await search((id) => {
      shared.options.signal.addEventListener('abort', () => undefined);
      of(id).pipe(concatWith(NEVER), shared.ledger.counted()).subscribe();
      held.push(shared.ledger.held({ big: Array.from({ length: 10_000 }, () => id) }));
      return Promise.resolve('well');
    }, shared);
    const calls = 40;
    expect(held).toHaveLength(calls);
    expect(leaks.growthKb).toBeGreaterThan(1_000);
    expect(foundIn(leaks)).toEqual([
      expect.stringContaining('the memory grows'),
      `${calls} listeners are left at the signal`,
      `there were ${calls} listeners at one signal`,
      `${calls} subscriptions are left`,
      `${calls} sessions are still held`,
    ]);
  });

  it('finds timers that run', async () => {
    const timers: NodeJS.Timeout[] = [];
    const leaks = await search(() => {
      timers.push(setTimeout(() => undefined, 60_000));
      return Promise.resolve('well');
    });
    timers.forEach(clearTimeout);
    expect(new Set(leaks.resources)).toEqual(new Set(['Timeout']));
    // As above.
    expect(Math.abs(leaks.resources.length - timers.length)).toBeLessThanOrEqual(2);
  });
});

it('a ledger counts a subscription until it ends', () => {
  const ledger = createLedger();
  const source$ = new Subject<void>();
  const counted$ = source$.pipe(ledger.counted());
  const subscription = counted$.subscribe();
  counted$.subscribe();
  expect(ledger.subscriptions).toEqual({ all: 2, left: 2 });
  subscription.unsubscribe();
  expect(ledger.subscriptions).toEqual({ all: 2, left: 1 });
  source$.complete();
  expect(ledger.subscriptions).toEqual({ all: 2, left: 0 });
});
