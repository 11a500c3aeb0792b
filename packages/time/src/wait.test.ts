import { describe, expect, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { map } from 'rxjs';
import { collect, createClock, day } from './world.test-support.js';
import { backOffMs, until$ } from './wait.js';

describe('until$', () => {
  it('waits for days also longer than a timer can be', () => {
    marbles(({ scheduler, expectObservable }) => {
      expectObservable(until$(3 * day, scheduler).pipe(map(() => 'a'))).toBe(`${3 * day}ms (a|)`);
      expectObservable(until$(60 * day, scheduler).pipe(map(() => 'a'))).toBe(`${60 * day}ms (a|)`);
    });
  });

  it('emits immediately for a time that has passed', () => {
    marbles(({ scheduler, expectObservable }) => {
      expectObservable(until$(-5, scheduler).pipe(map(() => 'a'))).toBe('(a|)');
    });
  });

  it('leaves no timer when it is unsubscribed', () => {
    const { scheduler, runTo } = createClock();
    const { seen, stop } = collect(until$(40 * day, scheduler));
    runTo(day);
    stop();
    runTo(50 * day);
    expect(seen).toEqual([]);
    expect(scheduler.actions).toEqual([]);
  });

  it('follows a clock that is set forward or back', () => {
    const { scheduler, runTo } = createClock();
    let offset = 0;
    const set = { ...methods(scheduler), now: () => scheduler.now() + offset };
    const forward = collect(until$(3 * day, set));
    runTo(day);
    offset = 2 * day;
    runTo(day + 60_000);
    expect(forward.state.isComplete).toBe(true);
    offset = 0;
    const back = collect(until$(2 * day, set));
    offset = -day;
    runTo(2 * day + 60_000);
    expect(back.state.isComplete).toBe(false);
    runTo(3 * day);
    expect(back.state.isComplete).toBe(true);
  });
});

const methods = (scheduler: ReturnType<typeof createClock>['scheduler']) => ({
  schedule: scheduler.schedule.bind(scheduler),
});

it('backs off from a second to five minutes', () => {
  expect([1, 2, 3, 9, 10, 99].map(backOffMs)).toEqual([
    1_000, 2_000, 4_000, 256_000, 300_000, 300_000,
  ]);
});
