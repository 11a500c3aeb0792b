import { describe, expect, it, jest } from '@jest/globals';
import { memoizeLast } from './memoize.js';

describe('onceInARow', () => {
  it('does its work again for another text only', () => {
    const make = jest.fn((text: string) => text.toUpperCase());
    const made = memoizeLast(make);
    expect(['', '', 'a', 'a', 'b', 'a'].map(made)).toEqual(['', '', 'A', 'A', 'B', 'A']);
    expect(make.mock.calls.flat()).toEqual(['', 'a', 'b', 'a']);
  });
});
