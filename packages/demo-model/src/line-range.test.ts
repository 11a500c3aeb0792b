import { expect, it } from '@jest/globals';
import { lineRange, unsayable } from './line-range.js';
import { readSlots } from './read-slots.js';

const integer = { type: 'integer' };
const slotsOf = (...names: readonly string[]) =>
  readSlots({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, integer])),
  });

it.each([
  [['fromLine', 'lines'], 'lines 10 to 14 of a.md', { fromLine: 10, lines: 5 }],
  [['offset', 'limit'], 'lines 10-14', { offset: 10, limit: 5 }],
  [['startLine', 'endLine'], 'lines 10 through 14', { startLine: 10, endLine: 14 }],
  [['fromLine', 'lines'], 'line 7', { fromLine: 7, lines: 1 }],
  [['fromLine', 'lines'], 'lines 14 to 10', {}],
  [['lines'], 'lines 10 to 14', {}],
  [['fromLine', 'lines'], 'the first 5 lines', {}],
])('%j take %j', (names, text, expected) => {
  const range = [...lineRange(slotsOf(...names), text)];
  expect(Object.fromEntries(range.map(([{ name }, { value }]) => [name, value]))).toEqual(expected);
});

it.each([
  [['fromLine', 'lines'], 'the last 3 lines of a.md', 'last 3 lines'],
  [['tail'], 'the last 3 lines of a.md', undefined],
  [['lines'], 'lines 10 to 14', 'lines 10 to 14'],
  [['fromLine', 'lines'], 'lines 10 to 14', undefined],
  [['lines'], 'the first 3 lines', undefined],
])('%j cannot say of %j: %j', (names, text, expected) => {
  expect(unsayable(slotsOf(...names), text)).toBe(expected);
});
