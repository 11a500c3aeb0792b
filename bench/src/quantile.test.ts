import { expect, it } from '@jest/globals';
import { quantile } from './quantile.js';

it('finds what a part of some numbers does not exceed', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect([0, 0.5, 0.95, 0.99, 1].map((part) => quantile(hundred, part))).toEqual([
    1, 50, 95, 99, 100,
  ]);
  expect(quantile([7], 0.5)).toBe(7);
  expect(quantile([], 0.5)).toBeNaN();
});
