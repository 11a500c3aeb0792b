import { describe, expect, it, jest } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { asyncScheduler } from 'rxjs';
import { type LeaseAttempt, acquireLease$ } from './acquire-lease.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

/** What comes of each attempt, one after the other, at once; the last again and again. */
const attempts = (...outcomes: readonly (LeaseAttempt<string> | Error)[]) => {
  const made = { count: 0, given: [] as string[] };
  return {
    made,
    attempt: (): PromiseLike<LeaseAttempt<string>> => ({
      // Virtual time does not wait for promises.
      then: (onValue, onError) => {
        const outcome = outcomes[Math.min(made.count, outcomes.length - 1)];
        made.count += 1;
        const given: unknown =
          outcome instanceof Error ? onError?.(outcome) : outcome && onValue?.(outcome);
        return given as PromiseLike<never>;
      },
    }),
    release: (lease: string) => {
      made.given.push(lease);
    },
    unavailable: () => 'taken' as unknown as Error,
    leaseMs: 800,
  };
};

describe('acquireLease$', () => {
  it('S7: emits immediately what is free, until it is left', () => {
    const { made, ...options } = attempts({ lease: 'l' });
    marbles(({ expectObservable, scheduler, flush }) => {
      expectObservable(acquireLease$({ ...options, scheduler }), '^ 4ms !').toBe('l');
      flush();
      expect(made).toEqual({ count: 1, given: ['l'] });
    });
  });

  it('S7: waits for a holder that gives no sign of life, looking less and less often', () => {
    const gone = { holder: 'a' };
    const { made, ...options } = attempts(gone, gone, gone, gone, { lease: 'l' });
    marbles(({ expectObservable, scheduler, flush }) => {
      expectObservable(acquireLease$({ ...options, scheduler }), '^ 999ms !').toBe('275ms l');
      flush();
      expect(made).toEqual({ count: 5, given: ['l'] });
    });
  });

  it('S7: is refused as soon as the holder gives a sign of life', () => {
    const { made, ...options } = attempts({ holder: 'a' }, { holder: 'a' }, { holder: 'b' });
    marbles(({ expectObservable, scheduler, flush }) => {
      expectObservable(acquireLease$({ ...options, scheduler })).toBe('75ms #', undefined, 'taken');
      flush();
      expect(made.given).toEqual([]);
    });
  });

  it('S7: says with each attempt for how long it has seen the same sign', () => {
    const { made: _, attempt, ...options } = attempts({ holder: 'a' });
    const seen: unknown[] = [];
    marbles(({ expectObservable, scheduler, flush }) => {
      const told = (it: unknown): ReturnType<typeof attempt> => {
        seen.push(it);
        return attempt();
      };
      expectObservable(acquireLease$({ ...options, attempt: told, scheduler }), '^ 200ms !').toBe(
        '',
      );
      flush();
      const signs = [25, 75, 175].map((forMs) => ({ holder: 'a', forMs }));
      expect(seen).toEqual([undefined, ...signs]);
    });
  });

  it('S7: is refused when a lease does not end, though its holder seems dead', () => {
    const { made: _, ...options } = attempts({ holder: 'a' });
    marbles(({ expectObservable, scheduler }) => {
      expectObservable(acquireLease$({ ...options, scheduler })).toBe(
        '2475ms #',
        undefined,
        'taken',
      );
    });
  });

  it('S7: ends the wait when it is left', () => {
    const { made, ...options } = attempts({ holder: 'a' });
    marbles(({ expectObservable, scheduler, flush }) => {
      expectObservable(acquireLease$({ ...options, scheduler }), '^ 80ms !').toBe('');
      flush();
      expect(made.count).toBe(3);
    });
  });

  it('S7: gives back what it gets after it was left', async () => {
    const { made, release, unavailable, leaseMs } = attempts();
    const late = Promise.resolve({ lease: 'late' });
    acquireLease$({ attempt: () => late, release, unavailable, leaseMs, scheduler: asyncScheduler })
      .subscribe()
      .unsubscribe();
    await late;
    expect(made.given).toEqual(['late']);
  });
});
