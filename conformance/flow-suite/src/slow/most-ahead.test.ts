import { expect, it } from '@jest/globals';
import { mostAhead } from './most-ahead.js';

const marks = (...all: readonly (readonly [at: number, deltas: number])[]) =>
  all.map(([at, deltas]) => ({ at, deltas }));

it('compares each mark with the last one that the other side had made by then', () => {
  expect(mostAhead(marks([10, 100], [20, 150]), marks([11, 90], [20, 120], [21, 150]))).toBe(100);
  expect(mostAhead(marks([10, 100], [20, 250]), marks([11, 90], [20, 120], [21, 150]))).toBe(130);
});

it('is nothing if no reader is ahead', () => {
  expect(mostAhead([], marks([1, 5]))).toBe(0);
  expect(mostAhead(marks([2, 5]), marks([1, 5]))).toBe(0);
});
