import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  concat,
  defer,
  expand,
  finalize,
  ignoreElements,
  last,
  NEVER,
  Observable,
  of,
  range,
  Subject,
  type Subscription,
  take,
  throwError,
} from 'rxjs';
import { MillraceError } from '../../values/errors.js';
import { marbles } from '../../testing/index.js';
import { createSemaphore, type Semaphore } from './limit-concurrency.js';

const busyWith = (semaphore: Semaphore): readonly number[] => [semaphore.held, semaphore.waiting];

describe('createSemaphore', () => {
  it('C6: so many at a time, the others in the order in which they came', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const semaphore = createSemaphore({ max: 2 });
      const works = [cold('--a--|'), cold('---b#'), cold('-c|'), cold('d|')];
      works.forEach((work$, n) => {
        const value = ['-----(a|)', '---b#', '-----c|', '-----d|'][n] ?? '';
        const held$ = semaphore.hold$(() =>
          n === 0 ? concat(work$.pipe(ignoreElements()), of('a')) : work$,
        );
        expectObservable(held$).toBe(value);
      });
      expectSubscriptions(works[0]?.subscriptions ?? []).toBe('^----!');
      expectSubscriptions(works[1]?.subscriptions ?? []).toBe('^---!');
      expectSubscriptions(works[2]?.subscriptions ?? []).toBe('----^-!');
      expectSubscriptions(works[3]?.subscriptions ?? []).toBe('-----^!');
      hot('----------a').subscribe(() => expect(busyWith(semaphore)).toEqual([0, 0]));
    });
  });

  it('C6: one who is left gives its slot on in the same tick, one who waits only leaves', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const semaphore = createSemaphore({ max: 1 });
      const works = [cold('-'), cold('-'), cold('-a|')];
      const leaving = ['---!', '-!', ''];
      works.forEach((work$, n) => {
        const held$ = semaphore.hold$(() => work$);
        expectObservable(held$, leaving[n] === '' ? undefined : leaving[n]).toBe(
          n === 2 ? '----a|' : '-',
        );
      });
      expectSubscriptions(works[0]?.subscriptions ?? []).toBe('^--!');
      expectSubscriptions(works[1]?.subscriptions ?? []).toBe([]);
      expectSubscriptions(works[2]?.subscriptions ?? []).toBe('---^-!');
    });
  });

  it('C6: one too many gets an error immediately, and takes nothing', () => {
    const semaphore = createSemaphore({ max: 1, maxQueue: 1, what: 'calls' });
    const work = new Subject<never>();
    const errors: unknown[] = [];
    semaphore.hold$(() => work).subscribe({ error: (error: unknown) => errors.push(error) });
    const waiting = semaphore.hold$(() => work).subscribe();
    semaphore.hold$(() => work).subscribe({ error: (error: unknown) => errors.push(error) });
    expect(errors).toEqual([
      new MillraceError(
        'queueFull',
        `1 are running, and 1 calls are already waiting ('maxQueue'). Try again when some have ended.`,
      ),
    ]);
    expect(errors).toMatchObject([{ code: 'queueFull', retryable: true }]);
    waiting.unsubscribe();
    expect(busyWith(semaphore)).toEqual([1, 0]);
    semaphore.hold$(() => work).subscribe();
    expect(busyWith(semaphore)).toEqual([1, 1]);
  });

  it('C6: a caller that gets the end finds the slot free, and the next one begins when all is torn down', () => {
    const log: string[] = [];
    const semaphore = createSemaphore({ max: 1, maxQueue: 0 });
    const work = (name: string): Observable<string> =>
      defer(() => {
        log.push(`begin ${name}`);
        return of(name);
      }).pipe(finalize(() => log.push(`end ${name}`)));
    const hold = (work$: Observable<unknown>, andThen?: string): void => {
      const then = (): void => {
        if (andThen !== undefined) hold(work(andThen));
      };
      semaphore.hold$(() => work$).subscribe({ complete: then, error: then });
    };
    hold(work('a'), 'b');
    expect(log).toEqual(['begin a', 'end a', 'begin b', 'end b']);
    hold(
      throwError(() => new Error('no')),
      'c',
    );
    expect(log.splice(0).slice(4)).toEqual(['begin c', 'end c']);
    const later = new Subject<void>();
    hold(later.pipe(finalize(() => log.push('end d'))), 'e');
    later.complete();
    expect(log).toEqual(['end d', 'begin e', 'end e']);
    expect(busyWith(semaphore)).toEqual([0, 0]);
  });

  it('C6: a work that cannot be begun, or throws in its teardown, frees its slot too', () => {
    const semaphore = createSemaphore({ max: 1 });
    const errors: unknown[] = [];
    const broken = (): never => {
      throw new Error('not begun');
    };
    semaphore.hold$(broken).subscribe({ error: (error: unknown) => errors.push(error) });
    expect(errors).toEqual([new Error('not begun')]);
    const torn = new Observable<never>(() => () => {
      throw new Error('torn');
    });
    semaphore
      .hold$(() => torn)
      .subscribe()
      .unsubscribe();
    expect(busyWith(semaphore)).toEqual([0, 0]);
  });

  it('C6: a synchronous work can be left from within', () => {
    const semaphore = createSemaphore({ max: 1 });
    let made = 0;
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed && made < 1_000) subscriber.next((made += 1));
    });
    semaphore
      .hold$(() => endless)
      .pipe(take(3))
      .subscribe();
    expect(made).toBe(3);
    expect(busyWith(semaphore)).toEqual([0, 0]);
  });

  it('C6: is cold: each subscription takes a slot of its own', () => {
    const semaphore = createSemaphore({ max: 2 });
    const held$ = semaphore.hold$(() => NEVER);
    expect(busyWith(semaphore)).toEqual([0, 0]);
    const both = held$.subscribe();
    both.add(held$.subscribe());
    both.add(held$.subscribe());
    expect(busyWith(semaphore)).toEqual([2, 1]);
    both.unsubscribe();
    expect(busyWith(semaphore)).toEqual([0, 0]);
  });

  it('G4, C6: who has the key of a holder shares its slot, until the last of them is done', () => {
    const semaphore = createSemaphore({ max: 1, maxQueue: 1 });
    const works = {
      parent: new Subject<void>(),
      child: new Subject<void>(),
      other: new Subject<void>(),
    };
    const begun: string[] = [];
    const hold = (name: keyof typeof works, key?: string): Subscription =>
      semaphore
        .hold$(() => {
          begun.push(name);
          return works[name];
        }, key)
        .subscribe();
    hold('parent', '__proto__');
    hold('other', 'constructor');
    hold('child', '__proto__');
    expect(begun).toEqual(['parent', 'child']);
    works.parent.complete();
    expect(busyWith(semaphore)).toEqual([1, 1]);
    works.child.complete();
    expect(begun).toEqual(['parent', 'child', 'other']);
    works.other.complete();
    expect(busyWith(semaphore)).toEqual([0, 0]);
  });

  it('G4, C6: works within works of one key never wait for themselves', () => {
    const semaphore = createSemaphore({ max: 1, maxQueue: 0 });
    const nested$ = (depth: number): Observable<number> =>
      semaphore.hold$(() => (depth === 0 ? of(7) : nested$(depth - 1)), 'root');
    const seen: number[] = [];
    nested$(50).subscribe((value) => seen.push(value));
    expect(seen).toEqual([7]);
    expect(busyWith(semaphore)).toEqual([0, 0]);
  });

  it('C6: ten thousand that follow each other synchronously do not nest', () => {
    const semaphore = createSemaphore({ max: 1, maxQueue: 1 });
    const next$ = (n: number): Observable<number> => semaphore.hold$(() => of(n + 1));
    const seen: number[] = [];
    next$(0)
      .pipe(
        expand((n) => (n < 10_000 ? next$(n) : [])),
        last(),
      )
      .subscribe((n) => seen.push(n));
    expect(seen).toEqual([10_000]);
    expect(busyWith(semaphore)).toEqual([0, 0]);
  });

  it('C6, X18: ten thousand that wait and leave cost nothing later', () => {
    const semaphore = createSemaphore({ max: 1, maxQueue: 10_000 });
    const first = semaphore.hold$(() => NEVER).subscribe();
    const others = Array.from({ length: 10_000 }, () => semaphore.hold$(() => NEVER).subscribe());
    // From the back, the front and the middle.
    [...others.slice(5_000).reverse(), ...others].forEach((other) => other.unsubscribe());
    expect(busyWith(semaphore)).toEqual([1, 0]);
    first.unsubscribe();
    range(0, 3).subscribe(() => expect(busyWith(semaphore)).toEqual([0, 0]));
  });

  it('refuses options that it does not have', () => {
    expect(() => createSemaphore({ max: 0 })).toThrow('a whole number of at least 1');
    expect(() => createSemaphore({} as never)).toThrow("needs 'max'");
    expect(() => createSemaphore({ max: 1, maxQueue: -1 })).toThrow('at least 0');
    expect(() => createSemaphore({ max: 1, queue: 1 } as never)).toThrow("no option 'queue'");
  });
});

/** What somebody does when its work begins, and what happens from outside. */
const deed = fc.oneof(
  fc.constant({ do: 'nothing' as const }),
  fc.record({ do: fc.constantFrom('complete', 'error', 'leave'), whom: fc.nat(11) }),
  fc.record({ do: fc.constant('come' as const), whom: fc.nat(11) }),
);
const key = fc.option(fc.constantFrom('k', 'l'), { nil: undefined, freq: 2 });
const scripts = fc.record({
  max: fc.integer({ min: 1, max: 3 }),
  maxQueue: fc.nat(6),
  guests: fc.array(fc.record({ key, onBegin: deed, onEnd: deed }), {
    minLength: 12,
    maxLength: 12,
  }),
  steps: fc.array(deed, { maxLength: 40 }),
  keyed: fc.boolean(),
});

describe('createSemaphore, no matter what happens when', () => {
  it('C6, X18: never more than its slots, in order, none forgotten, nothing left over', () => {
    fc.assert(
      fc.property(scripts, ({ max, maxQueue, guests, steps, keyed }) => {
        const semaphore = createSemaphore({ max, maxQueue });
        const works = guests.map(() => new Subject<void>());
        const subscriptions = new Map<number, Subscription>();
        const running = new Set<number>();
        const came: number[] = [];
        const begun: number[] = [];
        const wrongs: unknown[] = [];
        const keyOf = (n: number): unknown => (keyed ? guests[n]?.key : undefined) ?? n;
        const slots = (): number => new Set([...running].map(keyOf)).size;
        // What is thrown in the middle of it would be an error of the work.
        const look = (): void => {
          const { held, waiting } = semaphore;
          if (slots() > max || held > max || waiting > maxQueue) wrongs.push([held, waiting]);
        };
        const come = (n: number): void => {
          const guest = guests[n];
          if (subscriptions.has(n) || came.includes(n) || guest === undefined) return;
          came.push(n);
          const work$ = new Observable<void>((subscriber) => {
            running.add(n);
            begun.push(n);
            look();
            subscriber.add(() => running.delete(n));
            subscriber.add(works[n]?.subscribe(subscriber));
            act(guest.onBegin, n);
          });
          const isOver = {
            next: () => undefined,
            error: () => act(guest.onEnd, n),
            complete: () => act(guest.onEnd, n),
          };
          subscriptions.set(
            n,
            semaphore.hold$(() => work$, keyed ? guest.key : undefined).subscribe(isOver),
          );
        };
        const act = (
          it: typeof deed extends fc.Arbitrary<infer T> ? T : never,
          self?: number,
        ): void => {
          if (it.do === 'nothing') return;
          // Half of what they do, they do to themselves.
          const whom = self !== undefined && it.whom > 5 && it.do !== 'come' ? self : it.whom;
          if (it.do === 'come') come(whom);
          else if (it.do === 'leave') subscriptions.get(whom)?.unsubscribe();
          else if (running.has(whom)) {
            if (it.do === 'complete') works[whom]?.complete();
            else works[whom]?.error(new Error('no'));
          }
          look();
        };
        for (const step of steps) {
          act(step);
          expect(semaphore.held).toBe(slots());
          // A slot is never idle while somebody waits.
          if (semaphore.waiting > 0) expect(semaphore.held).toBe(max);
        }
        if (!keyed) expect(begun).toEqual(came.filter((n) => begun.includes(n)));
        subscriptions.forEach((subscription) => subscription.unsubscribe());
        expect([...busyWith(semaphore), running.size, wrongs]).toEqual([0, 0, 0, []]);
      }),
      { numRuns: 1_000 },
    );
  });
});
