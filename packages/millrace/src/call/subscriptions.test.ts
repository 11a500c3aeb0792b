import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
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

  it('adds none for a delta', async () => {
    expect(await steps({ deltas: 1 }, { deltas: 2 }, { deltas: 1_000 })).toEqual([0, 0]);
  });
});
