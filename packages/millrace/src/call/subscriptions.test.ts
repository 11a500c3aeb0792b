import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { asyncScheduler, lastValueFrom, type Observable } from 'rxjs';
import { createAgent } from '../index.js';
import { scriptedModel, text } from '../testing/index.js';
import {
  type MeasuredCall,
  subscriptionCosts,
  subscriptionsOf,
} from './subscriptions.test-support.js';

const file = join(import.meta.dirname, '../../../../scripts/house/ceilings.json');
const ceilings = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, number>>;
const costs = await subscriptionCosts();

/** Subscriptions that each call of the list adds to those of the one before. */
const steps = async (...calls: readonly MeasuredCall[]): Promise<number[]> => {
  const counts: number[] = [];
  for (const call of calls) counts.push(await subscriptionsOf(call));
  return counts.slice(1).map((count, index) => count - (counts[index] ?? 0));
};

describe('subscriptions of a call', () => {
  it.each(Object.entries(costs))('%s: no more than the ceiling', (name, count) => {
    expect(count).toBeLessThanOrEqual(ceilings[`subscriptions: ${name}`] ?? -1);
  });

  it('counts the same in every run', async () => {
    expect(await subscriptionCosts()).toEqual(costs);
  });

  it('adds the same number for every turn', async () => {
    const turn = costs['turn with a tool'];
    expect(await steps({ turns: 1 }, { turns: 2 }, { turns: 3 }, { turns: 4 })).toEqual([
      turn,
      turn,
      turn,
    ]);
  });

  it('adds the same number for every tool call of a turn', async () => {
    const added = await steps(...[2, 3, 4, 5, 9].map((toolCalls) => ({ turns: 1, toolCalls })));
    const one = costs['further tool call'];
    expect(added).toEqual([one, one, one, 4 * one]);
  });

  it('adds the same number for every async tool call of a turn', async () => {
    const calls = [2, 3, 4, 9].map((toolCalls) => ({ turns: 1, toolCalls, async: true }));
    const one = costs['further async tool call'];
    expect(await steps(...calls)).toEqual([one, one, 5 * one]);
  });

  it('adds none for a delta', async () => {
    expect(await steps({ deltas: 1 }, { deltas: 2 }, { deltas: 1_000 })).toEqual([0, 0]);
  });
});

describe('events of a call', () => {
  /** How often a call with so many deltas reads the time. */
  const readsOf = async (deltas: number, isHeard: boolean): Promise<number> => {
    const script = Array.from({ length: deltas }, () => text('Yes. '));
    const agent = createAgent({ model: scriptedModel(script) });
    let reads = 0;
    const now = (): number => (reads += 1);
    const scheduler = new Proxy(asyncScheduler, {
      get: (target, key): unknown => (key === 'now' ? now : Reflect.get(target, key)),
    });
    const call = { scheduler };
    const seen$: Observable<unknown> = isHeard ? agent.stream$('?', call) : agent.call$('?', call);
    await lastValueFrom(seen$);
    return reads;
  };

  it('are made for each delta if there is a listener, and for none without', async () => {
    expect((await readsOf(101, true)) - (await readsOf(1, true))).toBe(100);
    expect((await readsOf(101, false)) - (await readsOf(1, false))).toBe(0);
  });
});
