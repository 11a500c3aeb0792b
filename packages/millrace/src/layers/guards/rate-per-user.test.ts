import { describe, expect, it } from '@jest/globals';
import { VirtualTimeScheduler } from 'rxjs';
import { verdictOn } from './guards.test-support.js';
import { ratePerUser } from './rate-per-user.js';

const ann = { userId: 'ann' };
const ask = (guard: ReturnType<typeof ratePerUser>, metadata: Record<string, string> = ann) =>
  verdictOn(guard, 'Hello!', false, metadata);

describe('ratePerUser', () => {
  it('C1, C6: each user has so many calls at the same time, and gets them back evenly', () => {
    const clock = new VirtualTimeScheduler();
    const guard = ratePerUser({ calls: 2, perMs: 10_000, clock });
    expect([ask(guard), ask(guard)]).toEqual(['allowed', 'allowed']);
    expect(ask(guard)).toMatchObject({
      code: 'guardRejected',
      retryable: true,
      retryAfterMs: 5_000,
      message: expect.stringContaining('more than 2 times in 10000 ms'),
      userMessage: 'Too many requests. Please try again in a moment.',
    });
    expect(ask(guard, { userId: 'bob' })).toBe('allowed');
    clock.frame = 4_999;
    expect(ask(guard)).toMatchObject({ retryAfterMs: 1 });
    clock.frame = 5_000;
    expect([ask(guard), ask(guard)]).toMatchObject(['allowed', { retryAfterMs: 5_000 }]);
  });

  it('C1: a call without a user is refused, with what to do', () => {
    const guard = ratePerUser({ calls: 5 });
    for (const metadata of [{}, { userId: '' }, { name: 'ann' }]) {
      expect(ask(guard, metadata)).toMatchObject({
        code: 'guardRejected',
        retryable: false,
        message: expect.stringContaining('Pass { metadata: { userId } } with the call'),
      });
    }
  });

  it('C1: users are distinguished by your function, and no user stays no user', () => {
    const guard = ratePerUser({ calls: 1, by: ({ metadata }) => metadata['tenant'] });
    expect(ask(guard, { tenant: 'a', userId: 'x' })).toBe('allowed');
    expect(ask(guard, { tenant: 'a', userId: 'y' })).toMatchObject({ retryable: true });
    expect(ask(guard)).toMatchObject({ retryable: false });
  });

  it('X15: a user may be called anything', () => {
    const guard = ratePerUser({ calls: 1 });
    for (const userId of ['__proto__', 'constructor', 'toString']) {
      expect(ask(guard, { userId })).toBe('allowed');
      expect(ask(guard, { userId })).toMatchObject({ code: 'guardRejected' });
    }
    expect(ask(guard, { userId: 'x'.repeat(2_000) })).toMatchObject({
      code: 'guardRejected',
      cause: { code: 'tooLarge' },
    });
  });

  it('C1: a clock or a key that fails lets no one pass', () => {
    const broken = () => {
      throw new Error('No.');
    };
    for (const options of [{ clock: { now: broken } }, { by: broken }]) {
      expect(ask(ratePerUser({ calls: 1, ...options }))).toMatchObject({ code: 'guardRejected' });
    }
    const clock = { now: () => NaN };
    expect(ask(ratePerUser({ calls: 1, clock }))).toMatchObject({ code: 'config' });
  });

  it('C1: reports the time itself, by default', () => {
    expect(ask(ratePerUser({ calls: 1 }))).toBe('allowed');
  });

  it('C1: refuses options that cannot be', () => {
    const wrong = (options: object) => () => ratePerUser(options as never);
    expect(wrong({})).toThrow("needs 'calls'");
    expect(wrong({ calls: 1.5 })).toThrow('a whole number');
    expect(wrong({ calls: 1, perMs: 0 })).toThrow("'perMs' must be a number above 0");
    expect(wrong({ calls: 1, clock: {} })).toThrow('a clock with now()');
    expect(wrong({ calls: 1, maxUsers: 0 })).toThrow("'maxUsers'");
  });
});
