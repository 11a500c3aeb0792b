import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type BucketState, tokenBucket } from './token-bucket.js';

const positive = fc.integer({ min: 1, max: 5_000 });
const options = fc.record({ capacity: positive, refillPerMinute: positive });
const steps = fc.array(
  fc.record({ ms: fc.nat(30_000), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  { minLength: 1, maxLength: 40 },
);

interface Take {
  readonly at: number;
  readonly amount: number;
}

describe('tokenBucket', () => {
  const bucket = tokenBucket({ capacity: 10, refillPerMinute: 60 });

  it('C6: gives what it holds immediately, and then what flows in', () => {
    const first = bucket.take(bucket.full, 10, 5_000);
    expect(first).toEqual({ ok: true, state: { tokens: 0, at: 5_000 } });
    const second = bucket.take(first.state, 2, 5_500);
    expect(second).toEqual({ ok: false, state: { tokens: 0.5, at: 5_500 }, waitMs: 1_500 });
    expect(bucket.take(second.state, 2, 6_999).ok).toBe(false);
    expect(bucket.take(second.state, 2, 7_000)).toEqual({
      ok: true,
      state: { tokens: 0, at: 7_000 },
    });
  });

  it('C6: gives more than it holds when it is full, and then nothing until that has flowed in', () => {
    const state = { tokens: 9, at: 0 };
    expect(bucket.take(state, 25, 0)).toEqual({ ok: false, state, waitMs: 1_000 });
    const taken = bucket.take(state, 25, 1_000);
    expect(taken).toEqual({ ok: true, state: { tokens: -15, at: 1_000 } });
    expect(bucket.take(taken.state, 1, 1_000)).toMatchObject({ ok: false, waitMs: 16_000 });
  });

  it('C6: takes back what was not needed, up to what it holds, and takes what is owed', () => {
    expect(bucket.refund({ tokens: 1, at: 0 }, 5, 0)).toEqual({ tokens: 6, at: 0 });
    expect(bucket.refund({ tokens: 8, at: 0 }, 5, 0)).toEqual({ tokens: 10, at: 0 });
    expect(bucket.refund({ tokens: 1, at: 0 }, -5, 1_000)).toEqual({ tokens: -3, at: 1_000 });
  });

  it('C6: never gives more than it holds and what flows in meanwhile, within any time', () => {
    fc.assert(
      fc.property(options, steps, (given, script) => {
        const { full, take } = tokenBucket(given);
        const taken: Take[] = [];
        let state: BucketState = full;
        let at = 0;
        for (const { ms, share } of script) {
          at += ms;
          const amount = share * given.capacity;
          const result = take(state, amount, at);
          ({ state } = result);
          if (result.ok) taken.push({ at, amount });
        }
        taken.forEach((first, from) => {
          let sum = 0;
          for (const { at: now, amount } of taken.slice(from)) {
            sum += amount;
            const allowed = given.capacity + ((now - first.at) * given.refillPerMinute) / 60_000;
            expect(sum).toBeLessThanOrEqual(allowed * (1 + 1e-6));
          }
        });
      }),
    );
  });

  it('C6: has enough after the wait that it said, and not a millisecond before', () => {
    fc.assert(
      fc.property(options, steps, fc.integer({ min: 1, max: 3 }), (given, script, times) => {
        const { full, take } = tokenBucket(given);
        let state: BucketState = full;
        let at = 1.7e12;
        for (const { ms, share } of script) {
          at += ms;
          const amount = share * given.capacity * times;
          const first = take(state, amount, at);
          ({ state } = first);
          if (first.ok) continue;
          expect(first.waitMs).toBeGreaterThanOrEqual(1);
          expect(take(state, amount, at + first.waitMs - 1).ok).toBe(false);
          at += first.waitMs;
          const second = take(state, amount, at);
          expect(second.ok).toBe(true);
          ({ state } = second);
        }
      }),
      {
        examples: [
          [
            { capacity: 1, refillPerMinute: 1 },
            [
              { ms: 0, share: 0.9999999999470943 },
              { ms: 0, share: 3.0290575603331154e-10 },
            ],
            2,
          ],
        ],
      },
    );
  });

  it('C6: is not broken by a clock that is set back or forward', () => {
    const empty = { tokens: 0, at: 1e12 };
    const back = bucket.take(empty, 1, 0);
    expect(back).toEqual({ ok: false, state: { tokens: 0, at: 0 }, waitMs: 1_000 });
    expect(bucket.take(back.state, 1, 1_000).ok).toBe(true);
    expect(bucket.refund(empty, 0, 1e15)).toEqual({ tokens: 10, at: 1e15 });
  });

  it('C6: is full when nothing is missing', () => {
    expect(bucket.isFull(bucket.full, -5)).toBe(true);
    expect(bucket.isFull({ tokens: 0, at: 0 }, 9_999)).toBe(false);
    expect(bucket.isFull({ tokens: 0, at: 0 }, 10_000)).toBe(true);
  });

  it('C6: refuses what would let everything through', () => {
    expect(() => bucket.take(bucket.full, NaN, 0)).toThrow('needs an amount and a time');
    expect(() => bucket.take(bucket.full, 1, NaN)).toThrow('needs an amount and a time');
    expect(() => bucket.take(bucket.full, -1, 0)).toThrow('use refund()');
    expect(() => bucket.refund(bucket.full, Infinity, 0)).toThrow('needs an amount and a time');
    expect(() => tokenBucket({ capacity: 0, refillPerMinute: 1 })).toThrow('a number above 0');
    expect(() => tokenBucket({ capacity: 1 } as never)).toThrow("needs 'refillPerMinute'");
  });
});
