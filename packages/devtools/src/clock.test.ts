import { describe, expect, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import {
  concat,
  ignoreElements,
  interval,
  map,
  merge,
  queueScheduler,
  Subscription,
  take,
  tap,
  timer,
} from 'rxjs';
import { createClock } from './clock.js';

describe('a clock', () => {
  it('is its scheduler while it is not stopped', () => {
    marbles(({ expectObservable, scheduler }) => {
      const clock = createClock(scheduler);
      const times$ = interval(10, clock).pipe(
        take(3),
        map(() => clock.now() - scheduler.now()),
      );
      expectObservable(times$).toBe('10ms a 9ms a 9ms (a|)', { a: 0 });
    });
  });

  it('stands still: what is scheduled waits for as long, and its time does not advance', () => {
    marbles(({ expectObservable, scheduler }) => {
      const clock = createClock(scheduler);
      const still$ = concat(
        timer(30, scheduler).pipe(map(() => clock.stop())),
        timer(1_000, scheduler),
      );
      let go = (): void => undefined;
      const stopping$ = still$.pipe(
        tap((value) => {
          if (typeof value === 'function') go = value;
          else go();
        }),
        ignoreElements(),
      );
      const fired$ = timer(50, clock).pipe(map(() => clock.now() === scheduler.now() - 1_000));
      expectObservable(merge(stopping$, fired$)).toBe('1050ms (t|)', { t: true });
    });
  });

  it('continues after the last of those that stopped it', () => {
    marbles(({ expectObservable, scheduler }) => {
      const clock = createClock(scheduler);
      const [one, other] = [clock.stop(), clock.stop()];
      const letting$ = merge(
        timer(10, scheduler).pipe(tap(one)),
        timer(15, scheduler).pipe(tap(one)),
        timer(20, scheduler).pipe(tap(other)),
      ).pipe(ignoreElements());
      expectObservable(merge(letting$, timer(5, clock))).toBe('25ms (a|)', { a: 0 });
    });
  });

  it('does not run what its own work has unsubscribed', () => {
    const ran: string[] = [];
    const clock = createClock(queueScheduler);
    const go = clock.stop();
    const second = new Subscription();
    clock.schedule(() => {
      ran.push('first');
      second.unsubscribe();
    });
    second.add(clock.schedule(() => void ran.push('second')));
    go();
    expect(ran).toEqual(['first']);
  });

  it('schedules again while it is stopped, and forgets what is unsubscribed', () => {
    marbles(({ expectObservable, expectSubscriptions, cold, scheduler }) => {
      const clock = createClock(scheduler);
      const go = clock.stop();
      const source = cold('(a|)');
      const never = clock.schedule(() => {
        throw new Error('It was unsubscribed.');
      }, 1);
      never.unsubscribe();
      const fired$ = timer(5, clock).pipe(map(() => 'b'));
      const letting$ = timer(100, scheduler).pipe(tap(go), ignoreElements());
      expectObservable(merge(source, letting$, fired$)).toBe('a 104ms (b|)');
      expectSubscriptions(source.subscriptions).toBe('(^!)');
    });
  });
});
