import { describe, expect, it, jest } from '@jest/globals';
import { memoize } from './memoize.js';

describe('remembered', () => {
  it('makes what it is asked for again once', () => {
    const make = jest.fn((text: string) => [text]);
    const made = memoize(make);
    expect(made('a')).toBe(made('a'));
    expect(made('b')).toEqual(['b']);
    expect(make).toHaveBeenCalledTimes(2);
  });

  it('I18: does not grow, for any request', () => {
    const make = jest.fn((text: string) => [text]);
    const made = memoize(make);
    const first = made('0');
    for (let at = 1; at <= 100; at += 1) made(`${at}`);
    expect(made('0')).toEqual(first);
    expect(make).toHaveBeenCalledTimes(102);
  });
});
