import { describe, expect, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import fc from 'fast-check';
import { concat, defer, lastValueFrom, map, Observable, of, tap, timer } from 'rxjs';
import { graphOf, scopeOf } from './graph.test-support.js';
import { type GraphResult, joinOutputs, runGraph$ } from './run-graph.js';
import { done, type Work } from './work.js';

const saidBy = (ran: GraphResult): string =>
  ran.status === 'done' ? ran.outputs.map(({ text }) => text).join(',') : ran.status;

const slow =
  (source$: Observable<unknown>, id: string, to?: readonly string[]): Work =>
  () =>
    source$.pipe(map(() => ({ ...done({ text: id }), ...(to && { to }) })));

describe('runGraph$', () => {
  it('G6: runs independent components immediately, and those that wait for several when all have settled', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [b, c, d] = [cold('--(x|)'), cold('-----(x|)'), cold('-(x|)')];
      const graph = graphOf('a>b a>c b>d c>d', {
        b: slow(b, 'b'),
        c: slow(c, 'c'),
        d: slow(d, 'd'),
      });
      const said$ = runGraph$(graph, scopeOf()).pipe(map(saidBy));
      expectObservable(said$).toBe('------(r|)', { r: 'a,b,c,d' });
      expectSubscriptions(b.subscriptions).toBe('^-!');
      expectSubscriptions(c.subscriptions).toBe('^----!');
      expectSubscriptions(d.subscriptions).toBe('-----^!');
    });
  });

  it('G6, I5: leaving ends all that runs in the same tick, and begins nothing', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [b, c, d] = [cold('-----(x|)'), cold('-------'), cold('-')];
      const graph = graphOf('a>b a>c b>d', { b: slow(b, 'b'), c: slow(c, 'c'), d: slow(d, 'd') });
      expectObservable(runGraph$(graph, scopeOf()), '^--!').toBe('----');
      expectSubscriptions(b.subscriptions).toBe('^--!');
      expectSubscriptions(c.subscriptions).toBe('^--!');
      expectSubscriptions(d.subscriptions).toBe([]);
    });
  });

  it('G6, I5: an error leaves the others before it is emitted', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [b, c] = [cold('---#'), cold('-------')];
      const graph = graphOf('a>b a>c b>d', { b: slow(b, 'b'), c: slow(c, 'c') });
      expectObservable(runGraph$(graph, scopeOf())).toBe('---#');
      expectSubscriptions(b.subscriptions).toBe('^--!');
      expectSubscriptions(c.subscriptions).toBe('^--!');
    });
  });

  it('G6: skips what nothing has led to, and all after it', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [b, c, e] = [cold('--(x|)'), cold('-(x|)'), cold('-(x|)')];
      const graph = graphOf('a>b a>c c>d b>e d>e', {
        a: slow(of(1), 'a', ['b']),
        b: slow(b, 'b'),
        c: slow(c, 'c'),
        e: slow(e, 'e'),
      });
      expectObservable(runGraph$(graph, scopeOf()).pipe(map(saidBy))).toBe('---(r|)', {
        r: 'a,b,e',
      });
      expectSubscriptions(c.subscriptions).toBe([]);
      expectSubscriptions(e.subscriptions).toBe('--^!');
    });
  });

  it('G6: no more than so many wait at the same time', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const sources = ['b', 'c', 'd'].map(() => cold('--(x|)'));
      const works = Object.fromEntries(
        ['b', 'c', 'd'].map((id, at) => [id, slow(sources[at] ?? of(1), id)]),
      );
      const graph = graphOf('a>b a>c a>d', works, 2);
      expectObservable(runGraph$(graph, scopeOf()).pipe(map(saidBy))).toBe('----(r|)', {
        r: 'a,b,c,d',
      });
      expectSubscriptions(sources[0]?.subscriptions ?? []).toBe('^-!');
      expectSubscriptions(sources[1]?.subscriptions ?? []).toBe('^-!');
      expectSubscriptions(sources[2]?.subscriptions ?? []).toBe('--^-!');
    });
  });

  it('G6: an end from outside ends all, and is the result', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [b, c] = [cold('--(x|)'), cold('-----')];
      const ended = { status: 'ended', reply: { id: 'r' } } as unknown as ReturnType<typeof done>;
      const graph = graphOf('a>b a>c b>d', { b: () => b.pipe(map(() => ended)), c: slow(c, 'c') });
      expectObservable(runGraph$(graph, scopeOf())).toBe('--(e|)', { e: ended });
      expectSubscriptions(b.subscriptions).toBe('^-!');
      expectSubscriptions(c.subscriptions).toBe('^-!');
    });
  });

  it('G6: shows each the outputs that it names, empty if they were skipped', async () => {
    const seen: string[] = [];
    const graph = graphOf('a>b a>c b>d c>d', {
      a: slow(of(1), 'A', ['b']),
      d: ({ outputs }) => {
        seen.push([...outputs].map(([id, { text }]) => `${id}=${text}`).join());
        return of(done({ text: 'd' }));
      },
    });
    await lastValueFrom(runGraph$(graph, scopeOf()));
    expect(seen).toEqual(['b=b,c=']);
  });

  it('G6: a long chain that settles immediately does not overflow the stack', async () => {
    const ids = Array.from({ length: 100 }, (_, index) => `n${index}`);
    const ways = ids.slice(1).map((id, index) => `${ids[index] ?? ''}>${id}`);
    const graph = graphOf(ways.join(' '), { n0: slow(timer(0), 'n0') });
    let depth = 0;
    const last: Work = () => {
      const limit = Error.stackTraceLimit;
      Error.stackTraceLimit = Infinity;
      depth = (new Error('depth').stack ?? '').split('\n').length;
      Error.stackTraceLimit = limit;
      return of(done({ text: 'n99' }));
    };
    const nodes = graph.nodes.map((node) => (node.id === 'n99' ? { ...node, work$: last } : node));
    const ran = await lastValueFrom(runGraph$({ ...graph, nodes }, scopeOf()));
    expect(saidBy(ran)).toContain('n99');
    expect(depth).toBeLessThan(4_000);
  });

  it('G6: in any graph each runs no more than once, after all that lead to it, and only if one does', async () => {
    const graphs = fc
      .record({
        size: fc.integer({ min: 1, max: 12 }),
        edges: fc.array(fc.tuple(fc.nat(11), fc.nat(11)), { maxLength: 30 }),
        choices: fc.array(fc.nat(), { minLength: 12, maxLength: 12 }),
        waits: fc.array(fc.nat(3), { minLength: 12, maxLength: 12 }),
        places: fc.integer({ min: 1, max: 4 }),
      })
      .map(({ size, edges, choices, waits, places }) => {
        const ids = Array.from({ length: size }, (_, index) => `n${index}`);
        const ways = new Set([
          ...ids.slice(1).map((id, at) => `n${(choices[at] ?? 0) % (at + 1)}>${id}`),
          ...edges.flatMap(([a, b]) => (a < b && b < size ? `n${a}>n${b}` : [])),
        ]);
        return { ids, ways: [...ways], choices, waits, places };
      });
    await fc.assert(
      fc.asyncProperty(graphs, async ({ ids, ways, choices, waits, places }) => {
        const log: string[] = [];
        const led = new Set(['n0']);
        let running = 0;
        let most = 0;
        const to = (id: string): readonly string[] =>
          ways
            .filter((way) => way.startsWith(`${id}>`))
            .map((way) => way.slice(id.length + 1))
            .filter((_, at) => (((choices[Number(id.slice(1))] ?? 0) >> at) & 1) === 0);
        const work =
          (id: string): Work =>
          () =>
            defer(() => {
              log.push(`begin ${id}`);
              most = Math.max(most, (running += 1));
              const wait = waits[Number(id.slice(1))] ?? 0;
              const ticks$ = Array.from({ length: wait }, () => defer(() => Promise.resolve()));
              return concat(...ticks$, of(undefined)).pipe(
                map(() => undefined),
                tap({
                  complete: () => {
                    running -= 1;
                    log.push(`end ${id}`);
                    to(id).forEach((next) => led.add(next));
                  },
                }),
              );
            }).pipe(lastOf({ ...done({ text: id }), to: to(id) }));
        const works = Object.fromEntries(ids.map((id) => [id, work(id)]));
        const graph = graphOf(ways.length === 0 ? 'n0' : ways.join(' '), works, places);
        const byPlace = [...graph.nodes].sort(
          (a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)),
        );
        const ran = await lastValueFrom(runGraph$({ ...graph, nodes: byPlace }, scopeOf()));
        const began = log.flatMap((line) => (line.startsWith('begin ') ? line.slice(6) : []));
        expect(new Set(began).size).toBe(began.length);
        expect(new Set(began)).toEqual(led);
        expect(most).toBeLessThanOrEqual(places);
        for (const way of ways) {
          const [from = '', next = ''] = way.split('>');
          if (began.includes(from) && began.includes(next)) {
            expect(log.indexOf(`end ${from}`)).toBeLessThan(log.indexOf(`begin ${next}`));
          }
        }
        expect(saidBy(ran).split(',')).toEqual(
          byPlace.map(({ id }) => id).filter((id) => led.has(id)),
        );
      }),
      { numRuns: 150 },
    );
  });
});

const lastOf =
  <T>(value: T) =>
  (source: Observable<unknown>): Observable<T> =>
    new Observable((subscriber) =>
      source.subscribe({
        error: (error: unknown) => subscriber.error(error),
        complete: () => {
          subscriber.next(value);
          subscriber.complete();
        },
      }),
    );

describe('joined', () => {
  it('G6: what is said alone stays as it is, several have an empty line between them', () => {
    const one = { text: 'a', value: [1] };
    expect(joinOutputs([])).toBeUndefined();
    expect(joinOutputs([one])).toBe(one);
    expect(joinOutputs([one, { text: 'b' }])).toEqual({ text: 'a\n\nb' });
  });
});
