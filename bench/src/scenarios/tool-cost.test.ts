import { expect, it } from '@jest/globals';
import type { Costs } from '../jobs/calls-job.js';
import { toolCostOf } from './tool-cost.js';

const cost = (oldMs: number, youngMs = 99): Costs => ({
  young: { cpuMs: youngMs, wallMs: 99 },
  old: { cpuMs: oldMs, wallMs: 99 },
});

it('takes the tools of a call apart from the rest of it', () => {
  const first = [cost(99), cost(99, 3.4), cost(99)];
  const second = [cost(0.2), cost(1.8), cost(0.3)];
  const costs = toolCostOf([...first, ...second], [0, 16, 1]);
  expect(costs.toolUs).toBeCloseTo(100);
  expect(costs.moreUs).toBeCloseTo(100);
  expect(costs.youngUs).toBeCloseTo(200);
  expect(toolCostOf([...first, cost(0.2), cost(1.8), cost(1.05)], [0, 16, 1]).moreUs).toBeCloseTo(
    50,
  );
});

it('is no number where something has not been measured', () => {
  expect(toolCostOf([], [])).toEqual({ toolUs: NaN, moreUs: NaN, youngUs: NaN });
});
