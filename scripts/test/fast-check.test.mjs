import { expect, it } from '@jest/globals';
import fc from 'fast-check';

const drawn = () => {
  const values = [];
  fc.assert(
    fc.property(fc.integer(), (value) => {
      values.push(value);
    }),
    { numRuns: 1_000 },
  );
  return values;
};

const seen = [];

it('runs a property with the same values each time', () => {
  const values = drawn();
  expect(drawn()).toEqual(values);
  expect(fc.sample(fc.integer(), 5)).toEqual(fc.sample(fc.integer(), 5));
  expect(values.length).toBeLessThanOrEqual(1_000);
  expect(values.length).toBeGreaterThanOrEqual(30);
  seen.push(values);
});

it('gives another test other values', () => {
  expect(drawn()).not.toEqual(seen[0]);
});
