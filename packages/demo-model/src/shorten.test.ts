import { expect, it } from '@jest/globals';
import { shorten } from './shorten.js';

it('shorten repeats a part of a question on one short line', () => {
  expect(shorten('and then\n what?! ')).toBe('then what');
  expect(shorten('x'.repeat(200))).toBe(`${'x'.repeat(80)}…`);
});
