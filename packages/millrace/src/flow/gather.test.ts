import { describe, expect, it, jest } from '@jest/globals';
import { EMPTY, finalize, first, Observable, of, type Subscription } from 'rxjs';
import { marbles } from '../testing/index.js';
import { MillraceError } from '../values/errors.js';
import { hearContained } from './contained.js';
import { timeLimit } from './deadline.js';
import { gather, oneValue } from './gather.js';
import { continued$, type Eventual, toObservable } from './eventual.js';
import { LazyAbort } from './lazy-abort.js';
import { createTrampoline, deferWorkOn } from './trampoline.js';

const several = new MillraceError('invalidState', 'Several.');

const one = (none: () => Eventual<string> = () => 'none') =>
  oneValue<string, string>(
    (value) => value.toUpperCase(),
    () => several,
    none,
  );

describe('work that is gathered', () => {
  it.each([
    ['one value', '-a-|', '---(A|)', '^--!'],
    ['no value', '---|', '---(n|)', '^--!'],
    ['a second value', '-a-b-|', '---#', '^--!'],
    ['an error', '-a-#', '---#', '^--!'],
  ])('emits when it completes, or has stopped: %s', (_what, source, seen, left) => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold<string>(source, undefined, several);
      const made = gather(() => source$, one());
      expectObservable(toObservable(made)).toBe(seen, { A: 'A', n: 'none' }, several);
      expectSubscriptions(source$.subscriptions).toBe(left);
    });
  });

  it('is a function call if its value is there', () => {
    expect(gather(() => 'a', one())).toBe('A');
    const broken = (): never => {
      throw several;
    };
    expect(() => gather(broken, one())).toThrow('Several.');
    expect(gather(broken, one(), { handle: (cause) => String(cause === several) })).toBe('true');
  });

  it('costs one subscription, and one of its source; each observer begins with the seed', () => {
    const { subscribe } = Observable.prototype;
    const counted: unknown[] = [];
    const source$ = of('a');
    const made = toObservable(gather(() => source$, one()));
    const seen: string[] = [];
    const count = jest.spyOn(Observable.prototype, 'subscribe').mockImplementation(function (
      this: Observable<unknown>,
      ...observer: readonly unknown[]
    ) {
      counted.push(this);
      return Reflect.apply(subscribe, this, observer) as Subscription;
    });
    try {
      made.subscribe((it) => seen.push(it));
      made.subscribe((it) => seen.push(it));
    } finally {
      count.mockRestore();
    }
    expect(counted).toEqual([made, source$, made, source$]);
    expect(seen).toEqual(['A', 'A']);
  });

  it('tears the work down before it handles an error, and an end that fails is one', () => {
    const order: string[] = [];
    const handle = (): string => {
      order.push('handled');
      return 'h';
    };
    const failing = one(() => {
      throw several;
    });
    marbles(({ cold, expectObservable, scheduler }) => {
      const source$ = cold<string>('-a-b-|').pipe(finalize(() => order.push('stopped')));
      const limit = timeLimit(2, scheduler, 'It');
      expectObservable(toObservable(gather(() => source$, one(), { handle }))).toBe('---(h|)');
      expectObservable(toObservable(gather(() => source$, one(), { handle, limit }))).toBe(
        '--(h|)',
      );
      expectObservable(toObservable(gather(() => cold<string>('-|'), failing, { handle }))).toBe(
        '-(h|)',
      );
    });
    expect(order).toEqual(['handled', 'stopped', 'handled', 'stopped', 'handled']);
  });

  it('has not been left by an observer that needs no more than its value', () => {
    const abort = new LazyAbort();
    const work = (): Observable<string> => of('a');
    toObservable(gather(work, one(), { abort }))
      .pipe(first())
      .subscribe();
    expect(abort.signal.aborted).toBe(false);
    toObservable(gather(() => new Observable<string>(), one(), { abort }))
      .subscribe()
      .unsubscribe();
    expect(abort.signal.aborted).toBe(true);
  });

  it('survives a teardown of foreign work that throws', () => {
    const foreign$ = new Observable<string>((to) => {
      to.next('a');
      to.complete();
      return () => {
        throw new Error('teardown');
      };
    });
    const seen: unknown[] = [];
    toObservable(
      gather(
        () => foreign$,
        one(() => EMPTY),
        { listen: hearContained },
      ),
    ).subscribe({
      next: (it) => seen.push(it),
      complete: () => seen.push('complete'),
    });
    expect(seen).toEqual(['A', 'complete']);
  });
});

describe('work that continues a promise', () => {
  it.each([
    ['resolves', Promise.resolve(1), [2, 'complete']],
    ['rejects', Promise.reject(several), [several]],
  ])(
    'emits when it %s, and nothing to an observer that has left',
    async (_what, promise, expected) => {
      const made$ = continued$(promise, (it) => it + 1);
      const seen: unknown[] = [];
      const observer = {
        next: (it: unknown) => seen.push(it),
        error: (cause: unknown) => seen.push(cause),
        complete: () => seen.push('complete'),
      };
      made$.subscribe(observer).unsubscribe();
      made$.subscribe(observer);
      await promise.catch(() => undefined);
      expect(seen).toEqual(expected);
    },
  );
});

describe('work in a turn of a trampoline', () => {
  it('does not begin within another one, nor for an observer that has left', () => {
    const trampoline = createTrampoline();
    const order: unknown[] = [];
    const second$ = deferWorkOn(trampoline, () => order.push('second'));
    deferWorkOn(trampoline, () => {
      second$.subscribe();
      second$.subscribe().unsubscribe();
      return order.push('first');
    }).subscribe();
    expect(order).toEqual(['first', 'second']);
  });
});
