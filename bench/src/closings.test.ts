import { expect, it } from '@jest/globals';
import { closings } from './closings.js';

const aborts = [10, 20, 30].map((abortedAt) => ({ abortedAt, settledAt: abortedAt + 1 }));

it('finds the first socket that closed after each abort and before the next', () => {
  expect(closings(aborts, [5, 12, 13, 31, 99], 40)).toEqual([2, undefined, 1]);
});

it('counts none that closed with the process', () => {
  expect(closings(aborts, [41], 40)).toEqual([undefined, undefined, undefined]);
});
