import { expect, it } from '@jest/globals';
import { isAtLeast } from './is-at-least.js';

it.each([
  ['22.12.0', '22.12', true],
  ['22.12.1', '22.12.0', true],
  ['24.0.0', '22.12.0', true],
  ['22.9.0', '22.12.0', false],
  ['20.20.2', '22', false],
  ['22.0.0', '22', true],
])('%s is at least %s: %s', (version, wanted, is) => {
  expect(isAtLeast(version, wanted)).toBe(is);
});
