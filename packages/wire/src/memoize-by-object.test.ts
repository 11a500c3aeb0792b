import { describe, expect, it, jest } from '@jest/globals';
import { memoizeByObject } from './memoize.js';

describe('onceEach', () => {
  it('does its work once for each object, and not for one that looks alike', () => {
    const make = jest.fn(({ name }: { readonly name: string }) => ({ made: name }));
    const made = memoizeByObject(make);
    const [one, other] = [{ name: 'a' }, { name: 'a' }];
    expect(made(one)).toBe(made(one));
    expect(made(other)).toEqual({ made: 'a' });
    expect(make.mock.calls).toEqual([[one], [other]]);
  });
});
