import { describe, expect, it, jest } from '@jest/globals';
import { asyncScheduler, finalize, NEVER, of } from 'rxjs';
import { deadline } from './deadline.js';
import { MillraceError } from '../values/errors.js';
import { marbles } from '../testing/index.js';

describe('deadline', () => {
  it('I18: errors when the time is up, on the scheduler of the call, and leaves the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const source$ = cold('a-b-----c|');
      const late = new MillraceError('timeout', 'The tool did not finish within 5 ms (toolMs).');
      expectObservable(source$.pipe(deadline(5, scheduler, 'The tool', 'toolMs'))).toBe(
        'a-b--#',
        undefined,
        late,
      );
      expectSubscriptions(source$.subscriptions).toBe('^----!');
    });
  });

  it('is gone when the source has ended, or been left', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const source$ = cold('a-b|');
      expectObservable(source$.pipe(deadline(5, scheduler, 'It'))).toBe('a-b|');
      expectObservable(source$.pipe(deadline(5, scheduler, 'It')), '^-!').toBe('a');
      expectSubscriptions(source$.subscriptions).toBe(['^--!', '^-!']);
    });
  });

  it('errors even if the teardown of the source throws', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const broken$ = cold('a-b-----c|').pipe(
        finalize(() => {
          throw new Error('The teardown is broken.');
        }),
      );
      const late = new MillraceError('timeout', 'It did not finish within 5 ms.');
      expectObservable(broken$.pipe(deadline(5, scheduler, 'It'))).toBe('a-b--#', undefined, late);
    });
  });

  it('sets no timer for work that ends immediately, and none without a limit', () => {
    const schedule = jest.spyOn(asyncScheduler, 'schedule');
    of(1)
      .pipe(deadline(5, asyncScheduler, 'It'))
      .subscribe();
    NEVER.pipe(deadline(undefined, asyncScheduler, 'It'))
      .subscribe()
      .unsubscribe();
    expect(schedule).not.toHaveBeenCalled();
    NEVER.pipe(deadline(5, asyncScheduler, 'It'))
      .subscribe()
      .unsubscribe();
    expect(schedule).toHaveBeenCalledTimes(1);
    schedule.mockRestore();
  });
});
