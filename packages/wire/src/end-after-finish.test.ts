import { describe, it } from '@jest/globals';
import { createDemand, MillraceError, openDemand } from '@millrace/core';
import { finish, marbles, text } from '@millrace/core/testing';
import { endAfterFinish } from './end-after-finish.js';
import type { Piece } from './piece.js';

const usage: Piece = { type: 'usage', usage: { outputTokens: 1 } };
const values: Readonly<Record<string, Piece>> = {
  t: text('t'),
  f: finish(),
  p: finish('pause'),
  u: usage,
  d: { type: 'done' },
};
const fail = (thrown: unknown): MillraceError =>
  thrown instanceof MillraceError ? thrown : new MillraceError('unknown', String(thrown));

const incomplete = new MillraceError(
  'invalidResponse',
  'The answer of Acme is incomplete: its stream ended without a finish.',
  { retryable: true },
);

describe('wholeAnswer', () => {
  it.each<[string, string, string, string]>([
    ['completes with the source', 't-f-u-|', '^-----!', 't-f-u-|'],
    ['passes content behind the finish over', 't-f-t-f-u-|', '^---------!', 't-f-----u-|'],
    ['takes a pause for a finish', 't-p-|', '^---!', 't-p-|'],
    ['passes an error behind the finish over', 't-f-#', '^---!', 't-f-|'],
    ['is left 2 s behind the finish', 't-f-u', '^- 2000ms !', 't-f-u 1997ms |'],
    ['does not wait longer for another finish', 'f 1s f 1s f', '^ 1999ms !', 'f 1999ms |'],
    ['is left 50 ms behind the end that it names', 't-f-d', '^--- 50ms !', 't-f- 50ms |'],
    ['does not wait longer for another end', 'f-d-d', '^- 50ms !', 'f- 50ms |'],
    ['waits for usage behind a finish that comes late', 'd-f-u', '^- 2000ms !', '--f-u 1997ms |'],
  ])('%s', (_, source, subscription, expected) => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const piece$ = cold(source, values);
      const answer$ = piece$.pipe(endAfterFinish('Acme', { demand: openDemand, scheduler }, fail));
      expectObservable(answer$).toBe(expected, values);
      expectSubscriptions(piece$.subscriptions).toBe(subscription);
    });
  });

  it('X1: a stream that ends without a finish is incomplete', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const answer$ = cold('t-u-|', values).pipe(
        endAfterFinish('Acme', { demand: openDemand, scheduler }, fail),
      );
      expectObservable(answer$).toBe('t-u-#', values, incomplete);
    });
  });

  it('I16: does not give up a finished answer while demand is closed', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const demand = createDemand(4);
      scheduler.schedule(() => demand.backlog(4), 10);
      scheduler.schedule(() => demand.backlog(0), 10_000);
      const answer$ = cold('f', values).pipe(endAfterFinish('Acme', { demand, scheduler }, fail));
      expectObservable(answer$).toBe('f 11999ms |', values);
    });
  });

  it('I18: leaves no timer behind an answer that has ended, or was left', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      for (const [source, unsubscription, waiting] of [
        ['f--|', undefined, '^--!'],
        ['f-d-|', undefined, ['^-!', '--^-!']],
        ['f---', '^--!', '^--!'],
      ] as const) {
        const open$ = cold('o', { o: true });
        const demand = { isOpen: true, open$ };
        const answer$ = cold(source, values).pipe(
          endAfterFinish('Acme', { demand, scheduler }, fail),
        );
        const expected = source.replace('d', '-');
        expectObservable(answer$, unsubscription).toBe(expected, values);
        expectSubscriptions(open$.subscriptions).toBe([...[waiting].flat()]);
      }
    });
  });

  it('I18: has no timer running before the finish', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const piece$ = cold('t', values);
      const answer$ = piece$.pipe(endAfterFinish('Acme', { demand: openDemand, scheduler }, fail));
      expectObservable(answer$, '^ 10s !').toBe('t', values);
      expectSubscriptions(piece$.subscriptions).toBe('^ 10s !');
    });
  });
});
