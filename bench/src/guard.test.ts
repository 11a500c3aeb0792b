import { expect, it } from '@jest/globals';
import { isFlag, isListOf, isNumber, isShape, isText } from './guard.js';

it('looks at each field, and at each item of a list', () => {
  const isRow = isShape({ name: isText, sizes: isListOf(isNumber), isWhole: isFlag });
  const row = { name: 'a', sizes: [1, 2], isWhole: true };
  expect(isRow(row)).toBe(true);
  expect(isRow({ ...row, sizes: [] })).toBe(true);
  for (const wrong of [{ name: 1 }, { sizes: ['1'] }, { sizes: 1 }, { isWhole: undefined }]) {
    expect(isRow({ ...row, ...wrong })).toBe(false);
  }
  for (const wrong of [undefined, null, [], 'a', {}]) expect(isRow(wrong)).toBe(false);
});
