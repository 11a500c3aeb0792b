import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import {
  concatMap,
  delay,
  EMPTY,
  from,
  map,
  of,
  Subject,
  tap,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import type { AgentEvent } from '../events.js';
import { createAgent, textOf, tool } from '../index.js';
import { finish, marbles, scriptedModel, text, toolCall, verifyEvents } from '../testing/index.js';
import { coalesceMap } from './bounded.js';
import { coalesceMapDiagram } from './diagrams.test-support.js';
import {
  delta,
  essence,
  eventsOf,
  isNumberedUpwards,
  lettersOf,
  script,
  shown,
  structural,
} from './events.test-support.js';

// The time of the process, not of a clock: others may keep the machine busy.
const cpuMs = (): number => process.cpuUsage().user / 1_000;

describe('coalesceMap', () => {
  it('I16: merges the deltas that wait after the running inner, and no structural event', () => {
    const { source, inner, output } = coalesceMapDiagram.rows;
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold(source.marbles, eventsOf(source));
      const work$ = cold(inner.marbles);
      const out$ = event$.pipe(coalesceMap((event) => work$.pipe(map(() => shown(event)))));
      expectObservable(out$).toBe(output.marbles, lettersOf(output));
      expectSubscriptions(event$.subscriptions).toBe('^--------!');
      expectSubscriptions(work$.subscriptions).toBe([
        '^--!',
        '---^--!',
        '------^--!',
        '---------^--!',
      ]);
    });
  });

  it('I16: hands on the last seq and at of what it merged, and one event as it is', () => {
    const gate$ = new Subject<void>();
    const seen: AgentEvent[] = [];
    const events = [1, 2, 3].map((seq) => delta(`${seq}`, { seq }));
    from(events)
      .pipe(
        coalesceMap((event) => {
          seen.push(event);
          return gate$;
        }),
      )
      .subscribe();
    gate$.complete();
    expect(seen).toEqual([events[0], { ...events[2], delta: '23' }]);
    expect(seen[0]).toBe(events[0]);
    expect(Object.isFrozen(seen[1])).toBe(true);
  });

  it('I16: never merges citations, which are whole', () => {
    const gate$ = new Subject<void>();
    const titles: unknown[] = [];
    const events = ['A', 'B', 'C', 'D'].map((title, at) =>
      delta('', { seq: at + 1, kind: 'citation', citation: { title } }),
    );
    from(events)
      .pipe(
        coalesceMap((event) => {
          titles.push(event.citation?.title);
          return gate$;
        }),
      )
      .subscribe();
    gate$.complete();
    expect(titles).toEqual(['A', 'B', 'C', 'D']);
  });

  it('I16: merges only what continues the same text', () => {
    const toolInput = (it: string, index: number, name = 'n') =>
      delta(it, { kind: 'toolInput', toolCall: { index, id: `${index}`, name } });
    const events = [
      structural('first'),
      delta('a'),
      delta('b', { kind: 'thinking' }),
      delta('c', { message: 'other' }),
      delta('d', { type: 'summaryChunk' }),
      toolInput('e', 0, ''),
      toolInput('f', 0),
      toolInput('g', 1),
      toolInput('h', 1),
      delta('i'),
      delta('j'),
    ];
    const hold$ = new Subject<void>();
    const seen: string[] = [];
    from(events)
      .pipe(
        coalesceMap((event) => {
          seen.push(shown(event));
          return hold$;
        }),
      )
      .subscribe();
    hold$.complete();
    expect(seen).toEqual(['first', 'a', 'b', 'c', 'd', 'ef', 'gh', 'ij']);
  });

  it('I16: merges the deltas of calls that alternate, each with its own', () => {
    const hold$ = new Subject<void>();
    const seen: AgentEvent[] = [];
    const place = (call: string, seq: number) => ({ root: 'c', call, seq });
    from([
      structural('begin', { seq: 1 }),
      delta('a', place('c/a', 2)),
      delta('b', place('c/b', 3)),
      delta('A', place('c/a', 4)),
      delta('x', { call: 'x', seq: 1 }),
      delta('B', place('c/b', 5)),
      structural('end of a', place('c/a', 6)),
      delta('!', place('c/b', 7)),
      delta('y', { call: 'x', seq: 2 }),
    ])
      .pipe(
        coalesceMap((event) => {
          seen.push(event);
          return hold$;
        }),
      )
      .subscribe();
    hold$.complete();
    expect(seen.map((event) => `${event.seq} ${shown(event)}`)).toEqual([
      '1 begin',
      '4 aA',
      '5 bB',
      '6 end of a',
      '7 !',
      '2 xy',
    ]);
  });

  it('I9, I16: every call has the same text as before, and structural events keep their places', () => {
    fc.assert(
      fc.property(
        script,
        fc.array(fc.nat(3), { minLength: 60, maxLength: 60 }),
        fc.array(fc.nat(5), { minLength: 60, maxLength: 60 }),
        (events, gaps, works) => {
          const scheduler = new VirtualTimeScheduler();
          const seen: AgentEvent[] = [];
          let worked = 0;
          from(events)
            .pipe(
              concatMap((event, index) => of(event).pipe(delay(gaps[index] ?? 0, scheduler))),
              coalesceMap((event) => {
                seen.push(event);
                worked += 1;
                const ms = works[worked] ?? 0;
                return ms === 0 ? EMPTY : timer(ms, scheduler);
              }),
            )
            .subscribe();
          scheduler.flush();
          expect(essence(seen)).toEqual(essence(events));
          expect(isNumberedUpwards(seen)).toBe(true);
        },
      ),
    );
  });

  it('H1, I16: keeps the grammar of a call whose sub-agents speak at the same time', () => {
    marbles(({ cold, scheduler, flush }) => {
      const says = () => cold('t'.repeat(40) + '(f|)', { t: text('t'), f: finish() });
      const helper = createAgent({ name: 'helper', model: scriptedModel(says(), says()) });
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        run: (_input, parent) => helper.call$('?', { parent }).pipe(map(textOf)),
      });
      const model = scriptedModel([toolCall('ask'), toolCall('ask'), finish()], says());
      const plain: AgentEvent[] = [];
      const merged: AgentEvent[] = [];
      createAgent({ model, tools: [ask] })
        .stream$('?', { scheduler })
        .pipe(
          tap((event) => plain.push(event)),
          coalesceMap((event) => timer(3).pipe(map(() => event))),
          verifyEvents(),
        )
        .subscribe((event) => merged.push(event));
      flush();
      expect(essence(merged)).toEqual(essence(plain));
      expect(plain.length).toBeGreaterThan(120);
      expect(merged.length).toBeLessThan(plain.length / 2);
    });
  });

  it('I16: an error of the source comes after what waits, one of an inner immediately', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const work$ = cold('---(x|)');
      const failing$ = cold('ab-c#', eventsOf({ label: '', marbles: 'abc' }));
      const behind$ = failing$.pipe(coalesceMap((event) => work$.pipe(map(() => shown(event)))));
      expectObservable(behind$).toBe('---a--(x#)', { a: 'a', x: 'bc' });
      expectSubscriptions(failing$.subscriptions).toBe('^---!');
      const event$ = cold('ab-c----', eventsOf({ label: '', marbles: 'abc' }));
      const broken$ = cold('--#');
      expectObservable(event$.pipe(coalesceMap(() => broken$))).toBe('--#');
      expectSubscriptions(event$.subscriptions).toBe('^-!');
      expectSubscriptions(broken$.subscriptions).toBe('^-!');
    });
  });

  it('I5: unsubscribing leaves the source and the inner in the same tick, and drops what waits', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold('abc-----', eventsOf({ label: '', marbles: 'abc' }));
      const work$ = cold('------');
      expectObservable(event$.pipe(coalesceMap(() => work$)), '----!').toBe('-----');
      expectSubscriptions(event$.subscriptions).toBe('^---!');
      expectSubscriptions(work$.subscriptions).toBe('^---!');
    });
  });

  it('takes an inner that completes immediately twenty thousand times, and a project that throws', () => {
    const first$ = new Subject<number>();
    const events = Array.from({ length: 20_000 }, (_, index) => structural(`${index}`));
    let count = 0;
    let completed = false;
    from(events)
      .pipe(coalesceMap((event) => (event.message === '0' ? first$ : of(event))))
      .subscribe({ next: () => (count += 1), complete: () => (completed = true) });
    expect(count).toBe(0);
    first$.complete();
    expect([count, completed]).toEqual([19_999, true]);
    const fails = jest.fn();
    of(delta('a'))
      .pipe(
        coalesceMap(() => {
          throw new Error('no work');
        }),
      )
      .subscribe({ error: fails });
    expect(fails).toHaveBeenCalledWith(new Error('no work'));
  });

  it('takes each subscription by itself', () => {
    marbles(({ cold, expectObservable }) => {
      const out$ = cold('abc|', eventsOf({ label: '', marbles: 'abc' })).pipe(
        coalesceMap((event) => timer(3).pipe(map(() => shown(event)))),
      );
      expectObservable(out$).toBe('---a--(x|)', { a: 'a', x: 'bc' });
      expectObservable(out$, '--^').toBe('-----a--(x|)', { a: 'a', x: 'bc' });
    });
  });

  it('I16: costs time in proportion to what waits', () => {
    const waiting = (deltas: number, calls: number): number => {
      const hold$ = new Subject<void>();
      const events = Array.from({ length: deltas }, (_, seq) =>
        delta('t', { call: `c/${seq % calls}`, root: 'c', seq }),
      );
      let length = 0;
      const began = cpuMs();
      from(events)
        .pipe(
          coalesceMap((event) => {
            length += event.delta.length;
            return hold$;
          }),
        )
        .subscribe();
      hold$.complete();
      expect(length).toBe(deltas);
      return cpuMs() - began;
    };
    waiting(10_000, 3);
    const ratios = [1, 2, 3].map(() => waiting(100_000, 50) / waiting(25_000, 50));
    // The law is 4, and 16 would be quadratic; the machine may be busy with other things.
    expect(Math.min(...ratios)).toBeLessThan(9);
  });
});
