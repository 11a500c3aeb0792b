import { expect, it } from '@jest/globals';
import { withoutPoliteness } from './without-politeness.js';

it('withoutPoliteness keeps what is asked', () => {
  expect(withoutPoliteness('Please could you show me a.md')).toBe('show me a.md');
  expect(withoutPoliteness('and now, please')).toBe('and now, please');
});
