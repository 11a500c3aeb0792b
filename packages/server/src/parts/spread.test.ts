import { describe, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { spread } from './spread.js';

describe('lists that are spread', () => {
  it('are emitted in order, with those of the end', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-2---1---|');
      const spread$ = source$.pipe(
        spread(
          (count, index) => Array.from({ length: Number(count) }, () => String(index)),
          () => ['e'],
        ),
      );
      expectObservable(spread$).toBe('-(aa)b---(e|)', { a: '0', b: '1', e: 'e' });
      expectSubscriptions(source$.subscriptions).toBe('^--------!');
    });
  });

  it('end with the error of a projection, which leaves the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-a-b');
      const failing$ = source$.pipe(
        spread((value) => {
          if (value === 'b') throw new Error('no');
          return [value];
        }),
      );
      expectObservable(failing$).toBe('-a-#', undefined, new Error('no'));
      expectSubscriptions(source$.subscriptions).toBe('^--!');
    });
  });
});
