import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { keyedBuckets } from './token-bucket.js';

// The time of the process, not of a clock: others may keep the machine busy.
const cpuMs = (): number => process.cpuUsage().user / 1_000;

describe('keyedBuckets', () => {
  it('C6: each key has a bucket of its own', () => {
    const buckets = keyedBuckets({ capacity: 2, refillPerMinute: 60 });
    expect(buckets.tryTake('ann', 0)).toEqual({ ok: true });
    expect(buckets.tryTake('ann', 0)).toEqual({ ok: true });
    expect(buckets.tryTake('ann', 100)).toEqual({ ok: false, waitMs: 900 });
    expect(buckets.tryTake('bob', 100)).toEqual({ ok: true });
    expect(buckets.tryTake('ann', 999)).toEqual({ ok: false, waitMs: 1 });
    expect(buckets.tryTake('ann', 1_000)).toEqual({ ok: true });
  });

  it('C6: forgets who has a full bucket again, and remembers who has not', () => {
    const buckets = keyedBuckets({ capacity: 2, refillPerMinute: 60 });
    for (let n = 0; n < 100; n += 1) buckets.tryTake(`user-${n}`, 0);
    expect(buckets.size).toBe(100);
    for (let n = 0; n < 100; n += 1) buckets.tryTake('ann', 60_000 + n);
    expect(buckets.size).toBe(1);
  });

  it('C6: among too many, the one that was not used for the longest time begins again', () => {
    const buckets = keyedBuckets({ capacity: 1, refillPerMinute: 1, maxKeys: 2 });
    ['a', 'b', 'a', 'c'].forEach((key) => buckets.tryTake(key, 0));
    expect(buckets.size).toBe(2);
    expect(buckets.tryTake('a', 0)).toMatchObject({ ok: false });
    expect(buckets.tryTake('b', 0)).toEqual({ ok: true });
  });

  it('C6, X15: remembers no more than it may, and else says what a bucket for each key says', () => {
    const key = fc.constantFrom('a', 'b', '__proto__', 'constructor', 'toString', '');
    const calls = fc.array(fc.record({ key, ms: fc.nat(40_000) }), { maxLength: 60 });
    fc.assert(
      fc.property(calls, fc.integer({ min: 1, max: 8 }), (script, maxKeys) => {
        const options = { capacity: 2, refillPerMinute: 3 };
        const buckets = keyedBuckets({ ...options, maxKeys });
        const alone = new Map<string, ReturnType<typeof keyedBuckets>>();
        let now = 0;
        for (const { key: it, ms } of script) {
          now += ms;
          const own = alone.get(it) ?? keyedBuckets(options);
          alone.set(it, own);
          const result = buckets.tryTake(it, now);
          const expected = own.tryTake(it, now);
          if (maxKeys >= 6) expect(result).toEqual(expected);
          expect(buckets.size).toBeLessThanOrEqual(maxKeys);
        }
        expect({}).not.toHaveProperty('tokens');
      }),
    );
  });

  it('C6, X18: a rush of keys costs linear time, and no more memory than it may', () => {
    const rush = (keys: number): number => {
      const buckets = keyedBuckets({ capacity: 5, refillPerMinute: 1, maxKeys: 5_000 });
      const start = cpuMs();
      for (let n = 0; n < keys; n += 1) buckets.tryTake(`user-${n}`, n / 1_000);
      expect(buckets.size).toBeLessThanOrEqual(5_000);
      return cpuMs() - start;
    };
    rush(10_000);
    const once = Math.min(rush(10_000), rush(10_000));
    // What is quadratic would take sixteen times as long.
    expect(Math.min(rush(40_000), rush(40_000))).toBeLessThan(12 * Math.max(once, 20));
  });

  it('C6: a guard that is misused fails closed', () => {
    const buckets = keyedBuckets({ capacity: 1, refillPerMinute: 1 });
    expect(() => buckets.tryTake('a', NaN)).toThrow('a time in milliseconds');
    expect(() => buckets.tryTake('a'.repeat(1_025), 0)).toThrow('up to 1024 characters');
    expect(buckets.tryTake('a'.repeat(1_024), 0)).toEqual({ ok: true });
    expect(() => keyedBuckets({ capacity: 0.5, refillPerMinute: 1 })).toThrow('at least 1');
    expect(() => keyedBuckets({ capacity: 1, refillPerMinute: 1, maxKeys: 0 })).toThrow('maxKeys');
  });
});
