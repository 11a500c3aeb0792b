import { expect, it } from '@jest/globals';
import { shieldsOf } from './shields.js';

it.each([
  ['say "a, b" and (c (d))', ['"a, b"', '(c (d))']],
  ["it's 'fine' and Ann's", ["'fine'"]],
  ['an "open end\nand (another', []],
])('shieldsOf(%j)', (text, expected) => {
  expect(shieldsOf(text).map(({ start, end }) => text.slice(start, end))).toEqual(expected);
});
