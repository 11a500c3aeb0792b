import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  catchError,
  defer,
  mergeMap,
  NEVER,
  Observable,
  of,
  type OperatorFunction,
  Subject,
  take,
  tap,
  throwError,
} from 'rxjs';
import { failing } from './contained.js';
import { andThen, type Eventual, deferWork, toObservable } from './eventual.js';
import { recover } from './gather.js';
import { ending } from '../journal/draining.js';
import { marbles } from '../testing/index.js';

const thenMap =
  <In, Out>(work: (value: In) => Eventual<Out>): OperatorFunction<In, Out> =>
  (source$) =>
    deferWork(() => andThen(source$, work));

const clumsy = <T>(...values: readonly T[]): Observable<T> =>
  new Observable((subscriber) => {
    values.forEach((value) => subscriber.next(value));
    return () => {
      throw new Error('teardown');
    };
  });

describe('andThen', () => {
  it('passes a value on immediately, waits for an Observable, and completes after both', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const slow$ = cold<string>('--(s|)');
      const source$ = cold<string>('-a---|');
      expectObservable(source$.pipe(thenMap((value) => `${value}!`))).toBe('-r---|', { r: 'a!' });
      expectObservable(source$.pipe(thenMap(() => slow$))).toBe('---s-|');
      expectSubscriptions(slow$.subscriptions).toBe('-^-!');
      const later$ = cold<string>('------(s|)');
      expectObservable(source$.pipe(thenMap(() => later$))).toBe('-------(s|)');
    });
  });

  it('leaves its source and what it waits for', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [source$, inner$] = [cold('-a--'), cold('----x')];
      expectObservable(source$.pipe(thenMap(() => inner$)), '^--!').toBe('');
      expectSubscriptions(source$.subscriptions).toBe('^--!');
      expectSubscriptions(inner$.subscriptions).toBe('-^-!');
    });
  });

  it('errors with what it throws, and with an error of either, and leaves the other', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold<string>('-a--');
      const thrown$ = source$.pipe(
        thenMap((): string => {
          throw new Error('thrown');
        }),
      );
      expectObservable(thrown$).toBe('-#', {}, new Error('thrown'));
      expectSubscriptions(source$.subscriptions).toBe('^!');
      const inner$ = cold<string>('---x');
      expectObservable(cold<string>('-a-#').pipe(thenMap(() => inner$))).toBe('---#');
      expectSubscriptions(inner$.subscriptions).toBe('-^-!');
    });
  });

  it.each([
    ['its source', () => of(1, 2, 3).pipe(thenMap((value) => value))],
    ['what it waits for', () => of(0).pipe(thenMap(() => of(1, 2, 3)))],
    ['what deferWork makes', () => deferWork(() => of(1, 2, 3))],
  ])('can be left while %s emits synchronously', (_what, make) => {
    const made: number[] = [];
    make()
      .pipe(
        tap((value) => made.push(value)),
        take(1),
      )
      .subscribe();
    expect(made).toEqual([1]);
  });

  it('loses no value if the source emits and completes while another is worked on', () => {
    const source$ = new Subject<number>();
    const seen: unknown[] = [];
    const work = (it: number): number => {
      if (it < 3) source$.next(it + 1);
      else source$.complete();
      return it;
    };
    source$.pipe(thenMap(work)).subscribe({
      next: (it) => seen.push(it),
      complete: () => seen.push('complete'),
    });
    source$.next(1);
    expect(seen).toEqual([3, 2, 1, 'complete']);
  });

  it('deferWork is cold, and errors with what it throws', () => {
    let count = 0;
    const source$ = deferWork(() => (count += 1));
    expect(count).toBe(0);
    source$.subscribe();
    source$.subscribe();
    expect(count).toBe(2);
    const seen: unknown[] = [];
    deferWork((): number => {
      throw new Error('thrown');
    }).subscribe({ error: (error: unknown) => seen.push(error) });
    expect(seen).toEqual([new Error('thrown')]);
  });
});

describe('a chain of functions', () => {
  const chain$ = (source$: Observable<string>, seen: string[]) =>
    deferWork(() => source$).pipe(
      thenMap((value) => deferWork(() => `${value}!`)),
      tap((value) => seen.push(value)),
      failing((cause) => `not ${String(cause)}`),
      ending(() => seen.push('ended')),
    );

  it('passes on what is thrown while an error is made of another', () => {
    const seen: unknown[] = [];
    const thrown = new Error('thrown');
    const source$ = new Subject<string>();
    for (const from$ of [source$, deferWork(() => source$), throwError(() => 'x')]) {
      const failing$ = from$.pipe(
        failing(() => {
          throw thrown;
        }),
      );
      failing$.subscribe({ error: (error: unknown) => seen.push(error) });
    }
    source$.error('x');
    expect(seen).toEqual([thrown, thrown, thrown]);
  });

  it('leaves its source when it is left from within, and ends once', () => {
    const seen: string[] = [];
    chain$(of('a', 'b', 'c'), seen)
      .pipe(take(1))
      .subscribe();
    expect(seen).toEqual(['a!', 'ended']);
  });

  it('leaves what it waits for immediately', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [source$, inner$] = [cold('-a--'), cold('----x')];
      const waiting$ = chain$(source$, []).pipe(thenMap(() => deferWork(() => inner$)));
      expectObservable(waiting$, '^--!').toBe('');
      expectSubscriptions(source$.subscriptions).toBe('^--!');
      expectSubscriptions(inner$.subscriptions).toBe('-^-!');
    });
  });

  it('passes an error on, as another, and nothing after it', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold<string>('-a#', undefined, 'there');
      expectObservable(chain$(source$, [])).toBe('-a#', { a: 'a!' }, 'not there');
      const late$ = cold<string>('ab');
      const broken$ = chain$(late$, []).pipe(
        thenMap((): string => {
          throw new Error('thrown');
        }),
      );
      expectObservable(broken$).toBe('#', {}, new Error('thrown'));
      expectSubscriptions(late$.subscriptions).toBe('(^!)');
    });
  });
});

describe('ending', () => {
  it('reports the end or the error when what it returns is over, in every case', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      for (const [source, rest, told] of [
        ['-a|', '--|', '-a--|'],
        ['-a|', '--#', '-a--|'],
        ['-a#', '-x|', '-a--#'],
      ] as const) {
        const source$ = cold(source);
        expectObservable(source$.pipe(ending(() => cold(rest)))).toBe(told);
        expectSubscriptions(source$.subscriptions).toBe('^-!');
      }
    });
  });

  it('goes through with it if it is left', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const rest$ = cold('---|');
      expectObservable(cold('-a--').pipe(ending(() => rest$)), '^-!').toBe('-a');
      expectSubscriptions(rest$.subscriptions).toBe('--^--!');
    });
  });

  it('does it also if the teardown of its source throws', () => {
    let count = 0;
    const running = clumsy('a')
      .pipe(ending(() => (count += 1)))
      .subscribe();
    expect(() => running.unsubscribe()).toThrow('teardown');
    expect(count).toBe(1);
  });

  it('hears the cause of an error', () => {
    const seen: unknown[] = [];
    const fails$ = deferWork((): string => {
      throw new Error('thrown');
    });
    fails$.pipe(ending((cause) => seen.push(cause))).subscribe({ error: () => seen.push('told') });
    expect(seen).toEqual([new Error('thrown'), 'told']);
  });
});

describe('values that are there immediately', () => {
  it('continues without an Observable', () => {
    expect(andThen(2, (value) => value * 2)).toBe(4);
    expect(
      recover(
        () => 1,
        () => 2,
      ),
    ).toBe(1);
  });

  it('fails at its call, and recovers from that', () => {
    const broken = (): Eventual<number> =>
      andThen(1, () => {
        throw new Error('thrown');
      });
    expect(broken).toThrow('thrown');
    expect(recover(broken, () => 2)).toBe(2);
    expect(() =>
      recover(broken, (cause) => {
        throw new Error('another', { cause });
      }),
    ).toThrow('another');
  });

  it('recovers from an error of an Observable, with a value or an Observable', () => {
    const source$ = throwError(() => 'x');
    for (const instead of [2, of(2)]) {
      const seen: unknown[] = [];
      toObservable(
        recover<number>(
          () => source$,
          () => instead,
        ),
      ).subscribe((it) => seen.push(it));
      expect(seen).toEqual([2]);
    }
  });
});

describe('work that continues other work', () => {
  const observe = <T>(value: Eventual<T>): unknown[] => {
    const seen: unknown[] = [];
    toObservable(value).subscribe({
      next: (it) => seen.push(it),
      error: (error: unknown) => seen.push({ error }),
      complete: () => seen.push('complete'),
    });
    return seen;
  };

  it('costs one subscription, and one of its source, however long it is', () => {
    const counted: unknown[] = [];
    const { subscribe } = Observable.prototype;
    const source$ = new Subject<number>();
    const steps = Array.from({ length: 9 }, () => (it: number) => it + 1);
    const all = steps.reduce<Eventual<number>>(andThen, source$);
    Observable.prototype.subscribe = new Proxy(subscribe, {
      apply: (target, observable, observer): unknown => {
        counted.push(observable);
        return Reflect.apply(target, observable, observer);
      },
    });
    try {
      const seen = observe(all);
      source$.next(1);
      source$.complete();
      expect(seen).toEqual([10, 'complete']);
    } finally {
      Observable.prototype.subscribe = subscribe;
    }
    expect(counted).toEqual([all, source$]);
  });

  it('loses no value that comes while another is worked on', () => {
    const source$ = new Subject<number>();
    const seen: unknown[] = [];
    const work = (it: number): number => {
      if (it < 3) source$.next(it + 1);
      else source$.complete();
      return it;
    };
    deferWork(() =>
      andThen(
        andThen(source$, (it) => it),
        work,
      ),
    ).subscribe({
      next: (it) => seen.push(it),
      complete: () => seen.push('complete'),
    });
    source$.next(1);
    expect(seen).toEqual([3, 2, 1, 'complete']);
  });

  it('does not run for a subscriber that left during the work before', () => {
    const made: unknown[] = [];
    const left = new Subject<string>();
    const all$ = toObservable(
      andThen(
        andThen(left, (it) => {
          running.unsubscribe();
          return it;
        }),
        (it) => made.push(it),
      ),
    );
    const running = all$.subscribe();
    left.next('a');
    expect(made).toEqual([]);
  });

  const step = fc.constantFrom('value', 'Observable', 'work', 'none', 'throw', 'fail', 'recover');
  it('is as with operators, for any steps', () => {
    const made = (kind: string, it: string): Eventual<string> => {
      if (kind === 'throw') throw new Error(it);
      if (kind === 'Observable') return of(`${it}1`, `${it}2`);
      if (kind === 'work') return deferWork(() => `${it}3`);
      if (kind === 'none') return NEVER.pipe(take(0));
      return kind === 'fail' ? throwError(() => new Error(it)) : `${it}0`;
    };
    const not = (cause: unknown): string => `not ${String(cause)}`;
    const own = (before: Eventual<string>, kind: string): Eventual<string> =>
      kind === 'recover' ? recover(() => before, not) : andThen(before, (it) => made(kind, it));
    const operator = (before$: Observable<string>, kind: string): Observable<string> =>
      kind === 'recover'
        ? before$.pipe(catchError((cause) => of(not(cause))))
        : before$.pipe(mergeMap((it) => defer(() => toObservable(made(kind, it)))));
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 6 }), (fails, steps) => {
        const source$ = fails ? throwError(() => new Error('x')) : of('x', 'y');
        const given = steps.reduce<Eventual<string>>(own, source$);
        expect(observe(given)).toEqual(observe(steps.reduce(operator, source$)));
      }),
    );
  });
});
