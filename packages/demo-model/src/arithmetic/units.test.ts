import { expect, it } from '@jest/globals';
import { unitOf } from './units.js';

it.each([
  ['miles', 'miles'],
  ['kilometres', 'kilometers'],
  ['litre', 'liter'],
  ['lbs', 'lb'],
  ['KM', 'km'],
  ['°C', 'degC'],
  ['mph', 'mi/h'],
  ['gigabytes', 'gigabytes'],
])('%s is written %s', (word, unit) => {
  expect(unitOf(word)).toBe(unit);
});

it.each(['apples', 'toString', '__proto__', ''])('%j is no unit', (word) => {
  expect(unitOf(word)).toBeUndefined();
});
