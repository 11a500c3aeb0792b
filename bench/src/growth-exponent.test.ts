import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { growthExponent } from './growth-exponent.js';

const sizes = [50, 100, 200, 400];

it('finds the exponent of any power', () => {
  fc.assert(
    fc.property(
      fc.double({ min: -3, max: 3, noNaN: true }),
      fc.double({ min: 0.001, max: 1_000, noNaN: true }),
      (exponent, factor) => {
        const points = sizes.map((size) => ({ size, cost: factor * size ** exponent }));
        expect(growthExponent(points)).toBeCloseTo(exponent, 6);
      },
    ),
  );
});

it('lies between for what grows faster and faster', () => {
  const exponent = growthExponent(sizes.map((size) => ({ size, cost: 100 * size + size ** 2 })));
  expect(exponent).toBeGreaterThan(1.3);
  expect(exponent).toBeLessThan(1.8);
});

it('is not a number of one size', () => {
  expect(growthExponent([{ size: 50, cost: 1 }])).toBeNaN();
});
