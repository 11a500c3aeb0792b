import { describe, expect, it, jest } from '@jest/globals';
import { finalize, NEVER, of, range, take, tap, throwError } from 'rxjs';
import { marbles } from '../testing/index.js';
import { timeLimit } from './deadline.js';
import { supervised } from './gather.js';
import { LazyAbort } from './lazy-abort.js';

describe('LazyAbort', () => {
  it('gives one signal, which aborts immediately', () => {
    const abort = new LazyAbort();
    const heard = jest.fn();
    abort.signal.addEventListener('abort', heard);
    expect(abort.signal.aborted).toBe(false);
    abort.abort();
    abort.abort();
    expect(abort.signal.aborted).toBe(true);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('gives a signal that has aborted to a late caller', () => {
    const abort = new LazyAbort();
    abort.abort();
    expect(abort.signal.aborted).toBe(true);
  });
});

describe('supervised', () => {
  it.each([
    ['completes', of(1), false],
    ['errors', throwError(() => 'x'), true],
    ['is left', NEVER, true],
  ])('of a source that %s', (_what, source$, aborts) => {
    const abort = new LazyAbort();
    const running = source$.pipe(supervised({ abort })).subscribe({ error: () => undefined });
    running.unsubscribe();
    expect(abort.signal.aborted).toBe(aborts);
  });

  it('aborts, and stops a source without an end, while that emits synchronously', () => {
    const abort = new LazyAbort();
    const seen: unknown[] = [];
    range(0, Infinity)
      .pipe(
        tap((it) => seen.push([it, abort.signal.aborted])),
        supervised({ abort }),
        take(2),
      )
      .subscribe();
    expect(seen).toEqual([
      [0, false],
      [1, false],
    ]);
    expect(abort.signal.aborted).toBe(true);
  });
});

describe('work that is supervised', () => {
  it.each([
    ['completes', '-a-b|', '-a-b|', '^---!', ['stopped']],
    ['errors', '-a#', '-a(r|)', '^-!', ['stopped', 'aborted', 'handled']],
    ['is late', '-a-----b|', '-a---(r|)', '^----!', ['stopped', 'aborted', 'handled']],
  ] as const)('has stopped if it %s', (_what, source, seen, left, steps) => {
    const order: string[] = [];
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const abort = new LazyAbort();
      abort.signal.addEventListener('abort', () => order.push('aborted'));
      const source$ = cold<string>(source);
      const handle = (): string => {
        abort.abort();
        order.push('handled');
        return 'r';
      };
      const work$ = source$.pipe(finalize(() => order.push('stopped')));
      const limit = timeLimit(5, scheduler, 'It');
      expectObservable(work$.pipe(supervised({ abort, handle, limit }))).toBe(seen);
      expectSubscriptions(source$.subscriptions).toBe(left);
    });
    expect(order).toEqual(steps);
  });

  it('passes an error of the handler on, and costs one subscription', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold<string>('-#', undefined, 'a');
      const handle = (cause: unknown): string => {
        throw new Error(String(cause));
      };
      expectObservable(source$.pipe(supervised({ handle }))).toBe('-#', {}, new Error('a'));
      expectSubscriptions(source$.subscriptions).toBe('^!');
    });
  });
});
