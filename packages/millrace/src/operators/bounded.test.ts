import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  concatMap,
  delay,
  filter,
  from,
  lastValueFrom,
  map,
  of,
  share,
  Subject,
  take,
  timer,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import { createDemand } from '../flow/demand.js';
import { MillraceError } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import { fromPull } from '../flow/from-pull.js';
import { marbles } from '../testing/index.js';
import { bounded, type BoundedOptions } from './bounded.js';
import {
  boundedCoalesceDiagram,
  boundedErrorDiagram,
  boundedPauseDiagram,
} from './diagrams.test-support.js';
import {
  delta,
  essence,
  event,
  eventsOf,
  isNumberedUpwards,
  lettersOf,
  script,
  shown,
  structural,
} from './events.test-support.js';

describe('bounded', () => {
  it('I16: pause closes the gate at its mark, and opens it at half of it', () => {
    const { source, demand: level, inner, output } = boundedPauseDiagram.rows;
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const demand = createDemand(4);
      const work$ = cold(inner.marbles);
      const event$ = timer(0, 1, scheduler).pipe(
        filter(() => demand.isOpen),
        map((_, index) => event(String.fromCharCode(97 + index))),
        take(12),
        share(),
      );
      const out$ = event$.pipe(
        bounded((it) => work$.pipe(map(() => shown(it))), { overflow: 'pause', demand }),
      );
      expectObservable(out$).toBe(output.marbles, lettersOf(output));
      expectObservable(event$.pipe(map(shown))).toBe(source.marbles, lettersOf(source));
      expectObservable(demand.open$.pipe(map((open) => (open ? 'open' : 'closed')))).toBe(
        level.marbles,
        lettersOf(level),
      );
      expectSubscriptions(work$.subscriptions).toBe(
        Array.from({ length: 12 }, (_, n) => `${'-'.repeat(2 * n)}^-!`),
      );
    });
  });

  it('I16: pause keeps no more than the mark, however much there is to read', async () => {
    const demand = createDemand(4);
    let read = 0;
    let done = 0;
    let ahead = 0;
    const event$ = fromPull(async function* () {
      for (; read < 200; read += 1) yield await Promise.resolve(delta('t', { seq: read }));
    }, demand);
    await lastValueFrom(
      event$.pipe(
        bounded(
          async () => {
            await new Promise((resolve) => setImmediate(resolve));
            done += 1;
            ahead = Math.max(ahead, read - done);
          },
          { overflow: 'pause', demand },
        ),
      ),
    );
    expect(done).toBe(200);
    expect(ahead).toBeLessThan(7);
  });

  it('I5, I16: leaving, failing and completing open the gate, which can be used again', () => {
    const demand = createDemand(2);
    const event$ = new Subject<AgentEvent>();
    const work$ = new Subject<number>();
    const out$ = event$.pipe(bounded(() => work$, { overflow: 'pause', demand }));
    const fill = (): void => {
      for (let n = 0; n < 3; n += 1) event$.next(delta('t'));
    };
    const subscription = out$.subscribe();
    fill();
    expect(demand.isOpen).toBe(false);
    subscription.unsubscribe();
    expect(demand.isOpen).toBe(true);
    out$.subscribe({ error: () => undefined });
    fill();
    expect(demand.isOpen).toBe(false);
    work$.error(new Error('broken'));
    expect(demand.isOpen).toBe(true);
  });

  it('I16: a gate with a mark of one is not closed by what is worked on', () => {
    const demand = createDemand(1);
    const levels: boolean[] = [];
    demand.open$.subscribe((open) => levels.push(open));
    const work$ = new Subject<number>();
    const event$ = new Subject<AgentEvent>();
    event$.pipe(bounded(() => work$.pipe(take(1)), { overflow: 'pause', demand })).subscribe();
    event$.next(delta('a'));
    expect(levels).toEqual([true]);
    event$.next(delta('b'));
    expect(levels).toEqual([true, false]);
    work$.next(1);
    expect(levels).toEqual([true, false, true]);
  });

  it('I16: coalesce merges deltas into those that wait, once as many wait as may', () => {
    const { source, inner, output } = boundedCoalesceDiagram.rows;
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold(source.marbles, eventsOf(source));
      const work$ = cold(inner.marbles);
      const out$ = event$.pipe(
        bounded((it) => work$.pipe(map(() => shown(it))), { overflow: 'coalesce', max: 2 }),
      );
      expectObservable(out$).toBe(output.marbles, lettersOf(output));
      expectSubscriptions(event$.subscriptions).toBe('^--------!');
    });
  });

  it('I16: coalesce grows rather than drop a structural event', () => {
    const hold$ = new Subject<AgentEvent>();
    const seen: string[] = [];
    from(['a', 'B', 'C', 'D', 'e', 'f', 'g', 'H'].map(event))
      .pipe(
        bounded(
          (it) => {
            seen.push(shown(it));
            return hold$;
          },
          { overflow: 'coalesce', max: 1 },
        ),
      )
      .subscribe();
    hold$.complete();
    expect(seen).toEqual(['a', 'B', 'C', 'D', 'efg', 'H']);
  });

  it('error errors immediately, and leaves source and work', () => {
    const { source, inner, output } = boundedErrorDiagram.rows;
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold(source.marbles, eventsOf(source));
      const work$ = cold(inner.marbles);
      const out$ = event$.pipe(
        bounded((it) => work$.pipe(map(() => shown(it))), { overflow: 'error', max: 2 }),
      );
      const full = new MillraceError('queueFull', 'More than 2 events wait for bounded().');
      expectObservable(out$).toBe(output.marbles, lettersOf(output), full);
      expectSubscriptions(event$.subscriptions).toBe('^-------!');
      expectSubscriptions(work$.subscriptions).toBe(['^---!', '-----^--!']);
    });
  });

  it('lets 64 wait by default', () => {
    const fails = (waiting: number): boolean => {
      let failed = false;
      from(Array.from({ length: waiting + 1 }, () => structural('S')))
        .pipe(bounded(() => new Subject(), { overflow: 'error' }))
        .subscribe({ error: () => (failed = true) })
        .unsubscribe();
      return failed;
    };
    expect([fails(64), fails(65)]).toEqual([false, true]);
  });

  it('I9, I16: every call has the same text as before, and structural events keep their places', () => {
    fc.assert(
      fc.property(
        script,
        fc.array(fc.nat(5), { minLength: 61, maxLength: 61 }),
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        (events, works, max, pausing) => {
          const scheduler = new VirtualTimeScheduler();
          const options: BoundedOptions = pausing
            ? { overflow: 'pause', demand: createDemand(max) }
            : { overflow: 'coalesce', max };
          const seen: AgentEvent[] = [];
          let worked = 0;
          from(events)
            .pipe(
              concatMap((it) => of(it).pipe(delay(1, scheduler))),
              bounded((it) => {
                seen.push(it);
                worked += 1;
                return timer(works[worked] ?? 0, scheduler);
              }, options),
              toArray(),
            )
            .subscribe();
          scheduler.flush();
          expect(essence(seen)).toEqual(essence(events));
          expect(isNumberedUpwards(seen)).toBe(true);
          if (pausing) expect(seen).toEqual(events);
        },
      ),
    );
  });

  it('refuses options that do not go together', () => {
    const work = () => of(1);
    expect(() => bounded(work, { overflow: 'drop' } as never)).toThrow(
      "bounded(): 'overflow' must be 'pause' or 'coalesce' or 'error', not \"drop\".",
    );
    expect(() => bounded(work, {} as never)).toThrow("bounded() needs 'overflow'");
    expect(() => bounded(work, { overflow: 'pause' } as never)).toThrow(
      "bounded() with overflow 'pause' needs 'demand': a DemandGate, such as createDemand(16): its mark is the bound.",
    );
    expect(() =>
      bounded(work, { overflow: 'pause', demand: createDemand(), max: 3 } as never),
    ).toThrow("bounded() with overflow 'pause' has no option 'max'.");
    expect(() => bounded(work, { overflow: 'error', max: 0 })).toThrow(
      "'max' must be a whole number of at least 1",
    );
    expect(() => bounded(work, { overflow: 'error', demand: createDemand() } as never)).toThrow(
      "bounded() with overflow 'error' has no option 'demand'.",
    );
  });
});
