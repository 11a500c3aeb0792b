import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  concat,
  concatMap,
  delay,
  from,
  map,
  of,
  Subject,
  throwError,
  VirtualTimeScheduler,
} from 'rxjs';
import { messageOf } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import { marbles } from '../testing/index.js';
import { sampleDeltasDiagram } from './diagrams.test-support.js';
import {
  delta,
  essence,
  eventsOf,
  isNumberedUpwards,
  lettersOf,
  script,
  shown,
} from './events.test-support.js';
import { sampleDeltas } from './bounded.js';

/** A row of letters that stand for themselves. */
const plain = (marbles: string) => ({ label: '', marbles });

describe('sampleDeltas', () => {
  it('I16, I18: lets deltas through every so often, and a structural event immediately', () => {
    const { source, output } = sampleDeltasDiagram.rows;
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const event$ = cold(source.marbles, eventsOf(source));
      expectObservable(event$.pipe(sampleDeltas(5, scheduler), map(shown))).toBe(
        output.marbles,
        lettersOf(output),
      );
      expectSubscriptions(event$.subscriptions).toBe('^-----------------!');
    });
  });

  it('keeps time from frame to frame, and begins again after a frame without deltas', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const event$ = cold('abcdefgh----------i-j---', eventsOf(plain('abcdefghij')));
      expectObservable(event$.pipe(sampleDeltas(3, scheduler), map(shown))).toBe(
        'a--x--y--z--------i--j--',
        { a: 'a', x: 'bcd', y: 'efg', z: 'h', i: 'i', j: 'j' },
      );
    });
  });

  it('lets a frame of several messages through together, one event for each', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const seqs = [1, 2, 3, 4, 5];
      const values = Object.fromEntries(
        seqs.map((seq) => {
          const call = seq % 2 === 0 ? 'c/a' : 'c/b';
          return [`${seq}`, delta(`${seq}`, { root: 'c', call, seq })];
        }),
      );
      const event$ = cold('12345-|', values);
      expectObservable(
        event$.pipe(
          sampleDeltas(6, scheduler),
          map((event) => `${event.seq}: ${shown(event)}`),
        ),
      ).toBe('a-----(bc|)', { a: '1: 1', b: '4: 24', c: '5: 35' });
    });
  });

  it('lets through what waits when the events end or fail, immediately', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const letters = { a: 'a', x: 'bc' };
      const ending$ = cold('abc-|', eventsOf(plain('abc')));
      expectObservable(ending$.pipe(sampleDeltas(50, scheduler), map(shown))).toBe(
        'a---(x|)',
        letters,
      );
      const failing$ = cold('abc-#', eventsOf(plain('abc')));
      expectObservable(failing$.pipe(sampleDeltas(50, scheduler), map(shown))).toBe(
        'a---(x#)',
        letters,
      );
      expectSubscriptions(failing$.subscriptions).toBe('^---!');
    });
  });

  it('I18: waits on the scheduler that it is given, and on no other', () => {
    const scheduler = new VirtualTimeScheduler();
    const event$ = new Subject<AgentEvent>();
    const seen: string[] = [];
    event$.pipe(sampleDeltas(1000, scheduler), map(shown)).subscribe((it) => seen.push(it));
    for (const label of ['a', 'b', 'c']) event$.next(delta(label));
    expect(seen).toEqual(['a']);
    scheduler.flush();
    expect(seen).toEqual(['a', 'bc']);
    expect(scheduler.now()).toBe(2000);
  });

  it('I5: unsubscribing leaves the source and the timer in the same tick', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions, flush }) => {
      const event$ = cold('ab------', eventsOf(plain('ab')));
      const sampled$ = event$.pipe(sampleDeltas(5, scheduler), map(shown));
      expectObservable(sampled$, '---!').toBe('a---');
      expectSubscriptions(event$.subscriptions).toBe('^--!');
      flush();
      // What is left to do is cancelled: the clock stops with the source's last marble.
      expect(scheduler.frame).toBeLessThan(10);
    });
  });

  it('keeps the order if an event comes while others are let through', () => {
    const seen: string[] = [];
    marbles(({ hot, scheduler, flush }) => {
      const event$ = hot('abS', eventsOf(plain('abS')));
      event$
        .pipe(
          sampleDeltas(5, scheduler),
          map(shown),
          concatMap((label) => (label === 'b' ? of('b1', 'b2') : of(label))),
        )
        .subscribe((label) => seen.push(label));
      flush();
    });
    expect(seen).toEqual(['a', 'b1', 'b2', 'S']);
  });

  it('takes synchronous events', () => {
    const seen: string[] = [];
    concat(
      from(['a', 'b', 'S', 'c'].map((label) => Object.values(eventsOf(plain(label)))).flat()),
      throwError(() => new Error('over')),
    )
      .pipe(sampleDeltas(1000), map(shown))
      .subscribe({
        next: (it) => seen.push(it),
        error: (error: unknown) => seen.push(messageOf(error)),
      });
    expect(seen).toEqual(['a', 'b', 'S', 'c', 'over']);
  });

  it('I9, I16: every call has the same text as before, and structural events keep their places', () => {
    fc.assert(
      fc.property(
        script,
        fc.array(fc.nat(3), { minLength: 60, maxLength: 60 }),
        fc.nat(9),
        (events, gaps, ms) => {
          const scheduler = new VirtualTimeScheduler();
          const seen: AgentEvent[] = [];
          let completed = false;
          from(events)
            .pipe(
              concatMap((event, index) => of(event).pipe(delay(gaps[index] ?? 0, scheduler))),
              sampleDeltas(ms, scheduler),
            )
            .subscribe({ next: (event) => seen.push(event), complete: () => (completed = true) });
          scheduler.flush();
          expect(completed).toBe(true);
          expect(essence(seen)).toEqual(essence(events));
          expect(isNumberedUpwards(seen)).toBe(true);
        },
      ),
    );
  });

  it('refuses a time that no timer can wait', () => {
    expect(() => sampleDeltas(-1)).toThrow(
      'sampleDeltas() needs a number of milliseconds from 0 to 2,147,483,647.',
    );
    expect(() => sampleDeltas(Number.NaN)).toThrow('needs a number');
  });
});
