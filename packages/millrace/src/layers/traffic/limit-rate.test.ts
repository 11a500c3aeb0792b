import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  asyncScheduler,
  concat,
  delay,
  ignoreElements,
  lastValueFrom,
  map,
  NEVER,
  of,
  type SchedulerLike,
  type Subscription,
  throwError,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  createAgent,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelContext,
  retry,
  textBlock,
  textOf,
  type Usage,
} from '../../index.js';
import { finish, lentContext, marbles, scriptedModel, text } from '../../testing/index.js';
import { limitConcurrency } from './limit-concurrency.js';
import { limitRate } from './limit-rate.js';

const request = { messages: [] };
const values = { t: text('t'), f: finish() };
const used = (usage: Partial<Usage>): ModelChunk => ({ type: 'usage', usage });

/** A model that answers at once, and notes when it is asked. */
const noting = (at: number[], answer: (n: number) => readonly ModelChunk[] = () => []): Model => ({
  name: 'noting',
  stream$: (_request, { scheduler }) => {
    at.push(scheduler.now());
    return of(...answer(at.length), finish());
  },
});

/** Asks a model so many times at once, and says when it was asked. */
const timesOf = (
  times: number,
  wrap: (model: Model) => Model,
  answer?: (n: number) => readonly ModelChunk[],
): readonly number[] => {
  const scheduler = new VirtualTimeScheduler();
  const at: number[] = [];
  const model = wrap(noting(at, answer));
  const context = lentContext({ scheduler });
  for (let n = 0; n < times; n += 1) model.stream$(request, context).subscribe();
  scheduler.flush();
  return at;
};

describe('limitRate', () => {
  it('C6: requests within the rate go immediately, and then one after the other in turn', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const limited = limitRate({ requestsPerMinute: 2 });
      const slow = model(['-(tf|)', '-(tf|)', '-(tf|)', '-(tf|)']);
      const agent = createAgent({ model: limited(slow) });
      for (const end of ['-(t|)', '-(t|)', '30001ms (t|)', '60001ms (t|)']) {
        expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe(end);
      }
      expectSubscriptions(slow.subscriptions[1] ?? []).toBe('^!');
      expectSubscriptions(slow.subscriptions[2] ?? []).toBe('30s ^!');
      expectSubscriptions(slow.subscriptions[3] ?? []).toBe('60s ^!');
    });
  });

  it('C6: a waiting request can leave, and the next one takes its turn', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model(['(tf|)', '(tf|)']);
      const asked$ = limitRate({ requestsPerMinute: 1 })(slow).stream$(
        request,
        lentContext({ scheduler }),
      );
      expectObservable(asked$).toBe('(tf|)', values);
      expectObservable(asked$, '50s !').toBe('-');
      expectObservable(asked$).toBe('60s (tf|)', values);
      expectSubscriptions(slow.subscriptions[1] ?? []).toBe('60s (^!)');
    });
  });

  it('C6: a small request goes when the large one before it leaves', () => {
    marbles(({ cold, scheduler }) => {
      const at: number[] = [];
      const limited = limitRate({
        tokensPerMinute: 60_000,
        count: ({ maxTokens = 0 }) => maxTokens,
      })(noting(at));
      const context = lentContext({ scheduler });
      const ask = (maxTokens: number): Subscription =>
        limited.stream$({ ...request, maxTokens }, context).subscribe();
      ask(50_000);
      const large = ask(60_000);
      ask(12_000);
      cold('3ms a').subscribe(() => large.unsubscribe());
      ask(20_000);
      scheduler.schedule(() => expect(at).toEqual([0, 2_000, 22_000]), 23_000);
    });
  });

  it('C6: one too many gets an error immediately', () => {
    const scheduler = new VirtualTimeScheduler();
    const model = limitRate({ requestsPerMinute: 1, maxQueue: 1 })(noting([]));
    const errors: unknown[] = [];
    const ask = (): void => {
      model
        .stream$(request, lentContext({ scheduler }))
        .subscribe({ error: (error: unknown) => errors.push(error) });
    };
    [1, 2, 3].forEach(ask);
    expect(errors).toEqual([
      new MillraceError(
        'queueFull',
        `1 requests are already waiting for the rate limit ('maxQueue'). Try again later.`,
      ),
    ]);
    expect(errors).toMatchObject([{ retryable: true }]);
  });

  it('C5, C6: the wait counts into the time of the call, and not into that to the first chunk', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const limited = limitRate({ requestsPerMinute: 1 });
      const agent = createAgent({ model: limited(model(['50ms (tf|)', '50ms (tf|)'])) });
      const ask = (timeouts: object, end: string, late?: MillraceError): void => {
        const said$ = agent.call$('?', { scheduler, limits: { timeouts } }).pipe(map(textOf));
        expectObservable(said$).toBe(end, { t: 't' }, late);
      };
      ask({ firstChunkMs: 100 }, '50ms (t|)');
      const late = new MillraceError('timeout', 'The call did not finish within 99 ms (callMs).');
      ask({ callMs: 99 }, '99ms #', late);
      ask({ firstChunkMs: 100 }, '60050ms (t|)');
    });
  });

  it('C6: reserves tokens, gives back what was too much, and owes what was too little', () => {
    const limit = (count: number): ((model: Model) => Model) =>
      limitRate({ tokensPerMinute: 60_000, count: () => count });
    // One second brings a thousand.
    expect(timesOf(3, limit(40_000))).toEqual([0, 20_000, 60_000]);
    const little = (): readonly ModelChunk[] => [used({ inputTokens: 5_000, outputTokens: 5_000 })];
    expect(timesOf(8, limit(40_000), little)).toEqual([
      0, 0, 0, 10_000, 20_000, 30_000, 40_000, 50_000,
    ]);
    const much = (): readonly ModelChunk[] => [
      used({ inputTokens: 30_000, cacheReadTokens: 30_000, cacheWriteTokens: 30_000 }),
      used({ outputTokens: 30_000 }),
    ];
    expect(timesOf(3, limit(20_000), much)).toEqual([0, 80_000, 200_000]);
    const cheap = limitRate({
      tokensPerMinute: 60_000,
      count: () => 20_000,
      countUsage: ({ outputTokens }) => outputTokens,
    });
    expect(timesOf(4, cheap, much)).toEqual([0, 0, 20_000, 50_000]);
  });

  it('C6: an answer that stopped has cost what was reserved, or more', () => {
    const after = (first: Model): readonly number[] => {
      const scheduler = new VirtualTimeScheduler();
      const at: number[] = [];
      const limited = limitRate({ tokensPerMinute: 60_000, count: () => 30_000 });
      const context = lentContext({ scheduler });
      limited(first)
        .stream$(request, context)
        .subscribe({ error: () => undefined })
        .unsubscribe();
      for (let n = 0; n < 2; n += 1) limited(noting(at)).stream$(request, context).subscribe();
      scheduler.flush();
      return at;
    };
    const says = (...chunks: readonly ModelChunk[]): Model => ({
      name: 'broken',
      stream$: () => of(...chunks),
    });
    expect(after(says(used({ inputTokens: 5 })))).toEqual([0, 30_000]);
    expect(after(says(used({ inputTokens: 60_000 })))).toEqual([30_000, 60_000]);
    expect(after({ name: 'mute', stream$: () => NEVER })).toEqual([0, 30_000]);
    expect(after(says(finish()))).toEqual([0, 30_000]);
    expect(after(says(used({ inputTokens: 5 }), finish()))[1]).toBe(5);
    const again: ModelChunk = { type: 'restart', why: 'x' };
    const twice = [used({ inputTokens: 20_000 }), again, used({ inputTokens: 20_000 }), finish()];
    expect(after(says(...twice))).toEqual([10_000, 40_000]);
    const lost = [used({ inputTokens: 9 }), finish(), again];
    expect(after(says(...lost))).toEqual([0, 30_000]);
    expect(after(says(...lost, used({ inputTokens: 9 })))).toEqual([0, 30_000]);
  });

  it('C6: an invalid usage breaks nothing', () => {
    for (const inputTokens of [NaN, Infinity, -1e9]) {
      const limited = limitRate({ tokensPerMinute: 60_000, count: () => 40_000 });
      expect(timesOf(2, limited, () => [used({ inputTokens })])).toEqual([0, 20_000]);
    }
  });

  it('C6: a request that is too large for a minute goes when nothing else has gone for one', () => {
    const limited = limitRate({
      tokensPerMinute: 60_000,
      requestsPerMinute: 1_000,
      count: () => 90_000,
    });
    expect(timesOf(3, limited)).toEqual([0, 90_000, 180_000]);
  });

  it('C6: reserves by all texts of a request, and the answer that it allows', () => {
    const scheduler = new VirtualTimeScheduler();
    const at: number[] = [];
    const limited = limitRate({ tokensPerMinute: 60_000 })(noting(at));
    const ask = (more: object): void => {
      limited.stream$({ ...request, ...more }, lentContext({ scheduler })).subscribe();
    };
    const words = 'word'.repeat(10_000);
    const tools = [{ name: 'a', description: words, inputSchema: { type: 'object' } }];
    const messages = [{ id: '1', role: 'user', content: [textBlock(words)] }];
    ask({ maxTokens: 30_000, system: words, messages, tools, outputSchema: { title: words } });
    ask({ maxTokens: 1 });
    scheduler.flush();
    expect(at).toEqual([0, expect.closeTo(10_030, -2)]);
  });

  it('C6: counts the requests that a retry inside sends, and holds back those of one outside', () => {
    const busy = new MillraceError('rateLimited', 'Too many.');
    const failing = (model: Model): Model => {
      let asked = 0;
      return {
        ...model,
        stream$: (it, context) => {
          asked += 1;
          const answer$ = model.stream$(it, context);
          return asked === 1
            ? concat(
                answer$.pipe(ignoreElements()),
                throwError(() => busy),
              )
            : answer$;
        },
      };
    };
    const policy = { minMs: 10, jitter: 0 };
    const limit = limitRate({ requestsPerMinute: 2 });
    expect(timesOf(2, (model) => limit(retry(failing(model), policy)))).toEqual([0, 10, 30_000]);
    const other = limitRate({ requestsPerMinute: 2 });
    expect(timesOf(2, (model) => retry(other(failing(model)), policy))).toEqual([0, 0, 30_000]);
    const third = limitRate({ requestsPerMinute: 2 });
    expect(timesOf(3, (model) => third(retry(failing(model), policy)))).toEqual([
      0, 10, 30_000, 60_000,
    ]);
  });

  it('C6: a limit of concurrent requests around it frees each slot when the request is sent', () => {
    const rate = limitRate({ requestsPerMinute: 2 });
    const limited = limitConcurrency(1);
    expect(timesOf(4, (model) => limited(rate(model)))).toEqual([0, 0, 30_000, 60_000]);
    expect([limited.semaphore.held, limited.semaphore.waiting]).toEqual([0, 0]);
  });

  it('C6: calls of several clocks may share it: one that stands still blocks no other for ever', () => {
    const [still, going] = [new VirtualTimeScheduler(), new VirtualTimeScheduler()];
    const at: number[] = [];
    const limited = limitRate({ requestsPerMinute: 1 })(noting(at));
    const ask = (scheduler: SchedulerLike): Subscription =>
      subscribed(limited, lentContext({ scheduler }));
    ask(still);
    ask(still);
    ask(going);
    ask(going);
    going.flush();
    expect(at).toEqual([0, 0, 120_000, 180_000]);
    // A clock that is far ahead, or far behind.
    const real = ask(asyncScheduler);
    expect(at).toHaveLength(5);
    ask(going);
    going.flush();
    expect(at).toHaveLength(6);
    real.unsubscribe();
  });

  it('C6: waits for what is owed for weeks, without looking all the time', () => {
    let asked = 0;
    const delays: (number | undefined)[] = [];
    const scheduler = new VirtualTimeScheduler();
    const counting: SchedulerLike = {
      now: () => scheduler.now(),
      schedule: (work, delay, state) => {
        delays.push(delay);
        return scheduler.schedule(work as never, delay, state);
      },
    };
    const owing: Model = {
      name: 'owing',
      stream$: () => {
        asked += 1;
        return of(used({ inputTokens: 100_000 }), finish());
      },
    };
    const model = limitRate({ tokensPerMinute: 1, count: () => 1 })(owing);
    for (let n = 0; n < 2; n += 1) subscribed(model, lentContext({ scheduler: counting }));
    scheduler.flush();
    expect(asked).toBe(2);
    expect(delays).toEqual([2 ** 31 - 1, 2 ** 31 - 1, 6e9 - 2 * (2 ** 31 - 1)]);
  });

  it('C6, X18: when all have gone, nothing is left: neither a timer nor a place', () => {
    const scheduler = new VirtualTimeScheduler();
    const timers = new Set<unknown>();
    const counting: SchedulerLike = {
      now: () => scheduler.now(),
      schedule: (work, delay, state) => {
        const timer = scheduler.schedule(work as never, delay, state);
        timers.add(timer);
        timer.add(() => timers.delete(timer));
        return timer;
      },
    };
    const limited = limitRate({ requestsPerMinute: 1, maxQueue: 10_000 })(noting([]));
    const context = lentContext({ scheduler: counting });
    const calls = Array.from({ length: 10_000 }, () => subscribed(limited, context));
    expect(timers.size).toBe(1);
    calls.forEach((call) => call.unsubscribe());
    expect(timers.size).toBe(0);
  });

  it('C6: refuses what it cannot count, and what it does not have', async () => {
    expect(() => limitRate({})).toThrow('needs requestsPerMinute, tokensPerMinute or both');
    expect(() => limitRate({ requestsPerMinute: 0 })).toThrow('a number above 0');
    expect(() => limitRate({ perMinute: 1 } as never)).toThrow("no option 'perMinute'");
    expect(() => limitRate({ requestsPerMinute: 1 })('gpt' as never)).toThrow('takes a model');
    const model = limitRate({ tokensPerMinute: 1, count: () => NaN })(scriptedModel());
    await expect(
      lastValueFrom(model.stream$(request, lentContext()).pipe(toArray())),
    ).rejects.toMatchObject({ code: 'config' });
  });
});

const scripts = fc.record({
  requestsPerMinute: fc.integer({ min: 1, max: 30 }),
  tokensPerMinute: fc.integer({ min: 1_000, max: 60_000 }),
  calls: fc.array(
    fc.record({
      at: fc.nat(120_000),
      reserves: fc.nat(30_000),
      uses: fc.option(fc.nat(1_000)),
      leaves: fc.option(fc.nat(60_000), { freq: 3 }),
      ms: fc.nat(5_000),
    }),
    { maxLength: 40 },
  ),
});

describe('limitRate, no matter what happens when', () => {
  it('C6: never more requests than a full bucket and what flows in, in order, and none is forgotten', () => {
    fc.assert(
      fc.property(scripts, ({ requestsPerMinute, tokensPerMinute, calls }) => {
        const scheduler = new VirtualTimeScheduler();
        const limited = limitRate({
          requestsPerMinute,
          tokensPerMinute,
          count: ({ maxTokens = 0 }) => maxTokens,
        });
        const came: number[] = [];
        const sent: { readonly n: number; readonly at: number }[] = [];
        const settled = new Set<number>();
        calls.forEach(({ at, reserves, uses, leaves, ms }, n) => {
          const model = limited({
            name: 'm',
            stream$: () => {
              sent.push({ n, at: scheduler.now() });
              const chunks = uses === null ? [] : [used({ outputTokens: uses })];
              return of(...chunks, finish()).pipe(delay(ms, scheduler));
            },
          });
          scheduler.schedule(() => {
            came.push(n);
            const call = model
              .stream$({ ...request, maxTokens: reserves }, lentContext({ scheduler }))
              .subscribe({ complete: () => settled.add(n) });
            if (leaves === null) return;
            scheduler.schedule(() => {
              settled.add(n);
              call.unsubscribe();
            }, leaves);
          }, at);
        });
        scheduler.flush();
        expect(settled.size).toBe(calls.length);
        const order = sent.map(({ n }) => n);
        expect(order).toEqual(came.filter((n) => order.includes(n)));
        sent.forEach(({ at: from }, first) => {
          sent.slice(first).forEach(({ at: now }, more) => {
            const allowed = requestsPerMinute * (1 + (now - from) / 60_000);
            expect(more + 1).toBeLessThanOrEqual(allowed * (1 + 1e-6));
          });
        });
      }),
      { numRuns: 200 },
    );
  });
});

const subscribed = (model: Model, context: ModelContext): Subscription =>
  model.stream$(request, context).subscribe();
