import { expect, it } from '@jest/globals';
import { readNumberWords } from './number-words.js';

it.each([
  ['two', '2', 1],
  ['two hundred and five apples', '205', 4],
  ['hundred', '100', 1],
  ['twenty - one', '21', 3],
  ['three thousand four hundred', '3400', 4],
  ['one million two', '1000002', 3],
  ['three point one four', '3.14', 4],
  ['two and three', '2', 1],
  ['two three', '2', 1],
  ['twelve hundred', '1200', 2],
  ['three point', '3', 1],
])('%s', (words, text, length) => {
  expect(readNumberWords(words.split(' '))).toEqual({ text, length });
});

it('gives nothing for other words', () => {
  expect(readNumberWords(['constructor'])).toBeUndefined();
  expect(readNumberWords([])).toBeUndefined();
});
