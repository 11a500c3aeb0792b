import { expect, it } from '@jest/globals';
import { hasTellingShape, isTelling, shapeOf } from './shape.js';

it('shapeOf keeps the outline', () => {
  expect(['ORD-1234', 'Tokyo', 'a_b'].map(shapeOf)).toEqual(['A-9', 'Aa', 'a_a']);
});

it.each([
  ['ORD-1234', true],
  ['USD', true],
  ['a_b', true],
  ['Tokyo', false],
  ['hello', false],
  ['42', false],
  ['New York', false],
])('hasTellingShape(%j) is %s', (text, expected) => {
  expect(hasTellingShape(text)).toBe(expected);
});

it('isTelling asks examples or a pattern that refuses ordinary words', () => {
  expect(isTelling(['A-1', 'B-2'], undefined)).toBe(true);
  expect(isTelling(['A-1', 'hello'], undefined)).toBe(false);
  expect(isTelling([], /^\d+-\d+$/u)).toBe(true);
  expect(isTelling([], /./u)).toBe(false);
});
