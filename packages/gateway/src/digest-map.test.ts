import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  createDemand,
  type EventOf,
  type ModelChunk,
} from 'millrace';
import { marbles, scriptedModel, text } from 'millrace/testing';
import fc from 'fast-check';
import {
  concat,
  filter,
  first,
  ignoreElements,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import { digestMap, type DigestMapOptions } from './index.js';

const common = { rootId: 'r', callId: 'r', agent: ['a'], iteration: 1, at: 0 };
const delta = (seq: number, said: string, kind: 'text' | 'toolInput' = 'text'): AgentEvent => ({
  ...common,
  seq,
  type: 'reasoningChunk',
  messageId: 'r/1',
  kind,
  delta: said,
});
const structural = (seq: number): AgentEvent => ({
  ...common,
  seq,
  type: 'messageDiscarded',
  messageId: 'r/0',
  why: 'test',
});

/** `a` to `d` are deltas, `x` is structural, `j` and `k` are arguments. */
const events: Readonly<Record<string, AgentEvent>> = {
  a: delta(1, 'aaaa'),
  b: delta(2, 'bbbb'),
  c: delta(3, 'cccc'),
  d: delta(4, 'dddd'),
  x: structural(5),
  w: delta(8, 'a long delta'),
  j: delta(6, '{"a":', 'toolInput'),
  k: delta(7, '1234567}', 'toolInput'),
};

const shown = (event: AgentEvent, piled?: string): string => {
  if (event.type !== 'reasoningChunk') return event.type;
  return piled === undefined ? event.delta : `${event.delta} of ${piled}`;
};

/** A reader that takes so long for each event. */
const behind = (
  source: string,
  readMs: number,
  summary: string | Observable<string>,
  check: (
    seen: Parameters<Parameters<typeof marbles>[0]>[0] & {
      readonly read$: Observable<string>;
      readonly event$: ReturnType<Parameters<Parameters<typeof marbles>[0]>[0]['cold']>;
      readonly summaries: readonly string[];
    },
  ) => void,
  options: Partial<DigestMapOptions> = {},
): void => {
  marbles((helpers) => {
    const { cold, scheduler } = helpers;
    const event$ = cold<AgentEvent>(source, events);
    const summaries: string[] = [];
    const summary$ = typeof summary === 'string' ? cold(summary, { s: 'S' }) : summary;
    const read$ = event$.pipe(
      digestMap(
        (event, piled) =>
          readMs === 0
            ? of(shown(event, piled))
            : timer(readMs, scheduler).pipe(map(() => shown(event, piled))),
        {
          summarise: (piled) => {
            summaries.push(piled);
            return summary$;
          },
          from: 6,
          scheduler,
          ...options,
        },
      ),
    );
    check({ ...helpers, read$, event$, summaries });
  });
};

const values = {
  a: 'aaaa',
  b: 'bbbb',
  c: 'cccc',
  d: 'dddd',
  x: 'messageDiscarded',
  w: 'a long delta',
  S: 'S of bbbbcccc',
  T: 'S of bbbbccccdddd',
  p: 'bbbbcccc',
  j: '{"a":1234567}',
};

describe('digestMap', () => {
  it('passes every event to a quick reader as it is', () => {
    behind('abxw(d|)', 0, '(s|)', (seen) => {
      seen.expectObservable(seen.read$).toBe('abxw(d|)', values);
      seen.expectSubscriptions(seen.event$.subscriptions).toBe('^---!');
      seen.scheduler.flush();
      expect(seen.summaries).toEqual([]);
    });
  });

  it('sums up what piled up while the reader was busy; a small pile is only merged', () => {
    behind('abc 9ms d|', 5, '2ms (s|)', (seen) => {
      // `bbbbcccc` waits for `a`, then 2 ms for its summary, and 5 ms for the reader.
      seen.expectObservable(seen.read$).toBe('5ms a 6ms S 4ms (d|)', values);
      seen.scheduler.flush();
      expect(seen.summaries).toEqual(['bbbbcccc']);
    });
    behind(
      'abc|',
      5,
      '(s|)',
      (seen) => seen.expectObservable(seen.read$).toBe('5ms a 4ms (p|)', values),
      { from: 9 },
    );
  });

  it('piles up again during a summary', () => {
    behind('abc 5ms d 20ms |', 5, '4ms (s|)', (seen) => {
      seen.expectObservable(seen.read$).toBe('5ms a 8ms S 4ms d 9ms |', values);
    });
  });

  it('I16: never merges, drops or overtakes a structural event, nor arguments', () => {
    behind('abxcjk|', 5, '(s|)', (seen) => {
      seen.expectObservable(seen.read$).toBe('5ms a 4ms b 4ms x 4ms c 4ms (j|)', values);
      seen.scheduler.flush();
      expect(seen.summaries).toEqual([]);
    });
  });

  it.each<[string, Observable<string>]>([
    ['fails', throwError(() => new Error('No.'))],
    ['is empty', of('  ')],
    ['is not shorter', of('as long as the pile')],
  ])('passes on the plain text if the summary %s', (_what, summary$) => {
    behind('abc|', 5, summary$, (seen) => {
      seen.expectObservable(seen.read$).toBe('5ms a 4ms (p|)', values);
    });
  });

  it('passes on the plain text if the summary takes too long, and cancels it', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const summary$ = cold<string>('-');
      const read$ = cold<AgentEvent>('abc|', events).pipe(
        digestMap((event, piled) => timer(5, scheduler).pipe(map(() => shown(event, piled))), {
          summarise: () => summary$,
          from: 6,
          timeoutMs: 7,
          scheduler,
        }),
      );
      expectObservable(read$).toBe('5ms a 11ms (p|)', values);
      expectSubscriptions(summary$.subscriptions).toBe('5ms ^ 6ms !');
    });
  });

  it('I5: unsubscribing cancels the source and the summary', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const [event$, summary$] = [cold<AgentEvent>('abc-', events), cold<string>('-')];
      const read$ = event$.pipe(
        digestMap((event) => timer(5, scheduler).pipe(map(() => shown(event))), {
          summarise: () => summary$,
          from: 6,
          scheduler,
        }),
      );
      expectObservable(read$, '^ 9ms !').toBe('5ms a', values);
      expectSubscriptions(event$.subscriptions).toBe('^ 9ms !');
      expectSubscriptions(summary$.subscriptions).toBe('5ms ^ 4ms !');
    });
  });

  it('a reader that stops holds back nothing but itself', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold<AgentEvent>('abcx|', events);
      const read$ = event$.pipe(digestMap(() => NEVER, { summarise: () => of('S') }));
      expectObservable(read$, '^ 20ms !').toBe('-');
      expectSubscriptions(event$.subscriptions).toBe('^---!');
    });
  });

  it('an error of the source comes after what waits, one of the reader immediately', () => {
    behind('abc#', 5, '(s|)', (seen) => {
      seen.expectObservable(seen.read$).toBe('5ms a 4ms (S#)', values);
    });
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold<AgentEvent>('abc-', events);
      const read$ = event$.pipe(digestMap(() => cold('--#'), { summarise: () => of('S') }));
      expectObservable(read$).toBe('--#');
      expectSubscriptions(event$.subscriptions).toBe('^-!');
    });
  });

  it('follows a demand: while it is closed, text piles up', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const demand = createDemand(1);
      cold('1ms c 9ms o', { c: 1, o: 0 }).subscribe((size) => demand.backlog(size));
      const read$ = cold<AgentEvent>('a-bcd-x 9ms |', events).pipe(
        digestMap(
          (event, piled) =>
            demand.open$.pipe(
              first((isOpen) => isOpen),
              map(() => shown(event, piled)),
            ),
          { summarise: () => of('S'), from: 6, scheduler },
        ),
      );
      // `b` is in hand when the demand closes.
      const held = { ...values, S: 'S of ccccdddd' };
      expectObservable(read$).toBe('a 10ms (bSx) |', held);
    });
  });

  it('sums up the answer of an agent by another one', async () => {
    const parts = ['One. ', 'Two. ', 'Three. ', 'Four. '];
    const model = scriptedModel(parts.map(text));
    const summariser = createAgent({ model: scriptedModel([text('Numbers.')]) });
    const seen$ = createAgent({ model })
      .stream$('Count.')
      .pipe(
        filter((event): event is EventOf<'reasoningChunk'> => event.type === 'reasoningChunk'),
        digestMap(
          (event, piled) => concat(timer(1).pipe(ignoreElements()), of([event.delta, piled])),
          {
            summarise: (piled) => summariser.call$(piled).pipe(map(({ text: said }) => said)),
            from: 10,
          },
        ),
        toArray(),
      );
    expect(await lastValueFrom(seen$)).toEqual([
      ['One. ', undefined],
      ['Numbers.', 'Two. Three. Four. '],
    ]);
  });

  it('I16: keeps every structural event and every character, in order', () => {
    const one = fc.constantFrom<ModelChunk['type'] | 'x'>('text', 'x');
    fc.assert(
      fc.property(fc.array(fc.tuple(one, fc.nat({ max: 3 })), { maxLength: 30 }), (script) => {
        marbles(({ cold, scheduler, flush }) => {
          const given = script.map(([type], nth) =>
            type === 'x' ? structural(nth) : delta(nth, `<${nth}>`),
          );
          const at = script.map(([, gap], nth) => `${gap}ms ${String.fromCharCode(0x100 + nth)}`);
          const named = Object.fromEntries(
            given.map((event, nth) => [String.fromCharCode(0x100 + nth), event]),
          );
          const read: string[] = [];
          cold<AgentEvent>(`${at.join(' ')}|`, named)
            .pipe(
              digestMap(
                (event, piled) =>
                  timer(2, scheduler).pipe(
                    map(() => (event.type === 'reasoningChunk' ? (piled ?? event.delta) : 'x')),
                  ),
                { summarise: (piled) => of(piled.slice(0, 1)), from: 4, scheduler },
              ),
            )
            .subscribe((value) => read.push(value));
          flush();
          expect(read.join('')).toBe(
            given
              .map((event, nth) => (event.type === 'reasoningChunk' ? `<${nth}>` : 'x'))
              .join(''),
          );
        });
      }),
    );
  });

  it('I10: names a wrong option', () => {
    // @ts-expect-error -- missing
    expect(() => digestMap(() => of(1), {})).toThrow(/needs 'summarise'/);
    const wrong = { summarise: () => of(''), from: 0 };
    expect(() => digestMap(() => of(1), wrong)).toThrow(/'from' must be a whole number/);
  });
});
