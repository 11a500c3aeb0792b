import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { userLimits } from './index.js';

describe('the limits of users', () => {
  it('count what is taken and what runs, until it is given back', () => {
    const take = userLimits({ calls: 3 });
    const free = take('a', 1);
    take('a', 1);
    expect(() => take('a', 1)).toThrow('too many unanswered questions');
    expect(take('b', 2)).toBeDefined();
    free();
    free();
    expect(take('a', 1)).toBeDefined();
    expect(() => take('a', 1)).toThrow('too many unanswered questions');
  });

  it('allow the calls of a minute in a burst, and then evenly spaced', () => {
    let now = 0;
    const take = userLimits({ perMinute: 6 }, () => now);
    const starts = (): number => {
      for (let count = 0; ; count += 1) {
        try {
          take('a', 0);
        } catch {
          return count;
        }
      }
    };
    expect(starts()).toBe(6);
    now = 9_999;
    expect(starts()).toBe(0);
    now = 10_000;
    expect(starts()).toBe(1);
    now = 1_000_000;
    expect(starts()).toBe(6);
    try {
      take('a', 0);
    } catch (error) {
      expect(error).toMatchObject({ code: 'busy', status: 429, retryAfterMs: 10_000 });
    }
  });

  it('count on if the clock is set back: nothing is gained, and no one waits longer', () => {
    const hourMs = 3_600_000;
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 20 }),
        fc.integer({ min: 1, max: 10 * hourMs }),
        (before, backMs) => {
          let now = 10 * hourMs;
          const take = userLimits({ perMinute: 20 }, () => now);
          for (let count = 0; count < before; count += 1) take('a', 0)();
          now -= backMs;
          for (let count = before; count < 20; count += 1) take('a', 0)();
          expect(() => take('a', 0)).toThrow('Too many requests');
          now += 3_000;
          take('a', 0)();
        },
      ),
    );
  });

  it('keep a bounded number of users', () => {
    let now = 0;
    const take = userLimits({ perMinute: 60 }, () => now);
    for (let user = 0; user < 30_000; user += 1) {
      now += 1;
      take(String(user), 0)();
    }
    // Those of the last second only.
    expect(() => {
      for (let count = 0; count < 60; count += 1) take('29999', 0);
    }).toThrow('Too many requests');
  });
});
