import { describe, expect, it } from '@jest/globals';
import { createQuota } from './quota.js';

describe('T21: a quota', () => {
  it('counts what is given back once', () => {
    const { take } = createQuota(4, 2);
    const first = take('eve');
    const second = take('eve');
    expect([typeof first, typeof second, take('eve')]).toEqual(['function', 'function', 'client']);
    if (typeof first === 'function') [1, 2, 3].forEach(first);
    expect([typeof take('eve'), take('eve')]).toEqual(['function', 'client']);
  });

  it('treats all clients without a key as one', () => {
    const { take } = createQuota(3, 1);
    const taken = [undefined, undefined, undefined, undefined, 'ann'].map(take);
    expect(taken.map((it) => (typeof it === 'function' ? 'taken' : it))).toEqual([
      'taken',
      'taken',
      'taken',
      'all',
      'all',
    ]);
  });
});
