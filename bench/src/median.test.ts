import { expect, it } from '@jest/globals';
import { median } from './median.js';

it.each([
  [[3], 3],
  [[9, 1, 2], 2],
  [[10, 1, 4, 2], 3],
  [[-1, -100, 0], -1],
])('the median of %j is %d', (values, middle) => {
  expect(median(values)).toBe(middle);
});

it('is not a number of none', () => {
  expect(median([])).toBeNaN();
});
