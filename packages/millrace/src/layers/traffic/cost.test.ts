import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  concat,
  EMPTY,
  lastValueFrom,
  map,
  NEVER,
  of,
  onErrorResumeNextWith,
  throwError,
  toArray,
} from 'rxjs';
import { recordsOf, runUntil, stepsIn } from '../../journal/dying-driver.test-support.js';
import { type CallStoreDriver, inProcessCalls } from '../../journal/index.js';
import { journalIn } from '../../journal/stored-calls.test-support.js';
import {
  type Agent,
  createAgent,
  fallback,
  interruptOn,
  MillraceError,
  type Model,
  type ModelChunk,
  retry,
  sequential,
  textOf,
  tool,
  type Use,
} from '../../index.js';
import {
  layerContract,
  marbles,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from '../../testing/index.js';
import { addUsage, noUsage, type Usage } from '../../values/usage.js';
import { asAgent } from '../teams/index.js';
import { describeCost } from '../../values/index.js';
import { budget, cost, type Cost, type PriceList, readPriceList } from './index.js';

const used = (inputTokens: number, outputTokens = 0): ModelChunk => ({
  type: 'usage',
  usage: { inputTokens, outputTokens },
});
/** Prices per token, so that tests read as money. */
const list: PriceList = {
  currency: 'USD',
  date: '2026-11-30',
  prices: { small: { input: 1e6, output: 0 }, large: { input: 10e6, output: 0 } },
};
const named = (name: string, ...script: readonly ScriptedAnswer[]): Model => ({
  ...scriptedModel(...script),
  name,
});
const asking = (agent: Agent, name = 'ask') =>
  tool({
    name,
    description: `Asks ${agent.name}.`,
    // A resumed call runs it again, and its agent continues.
    idempotent: true,
    run: (_input, parent) => agent.call$('?', { parent }).pipe(map(textOf)),
  });
const totals = (shares: Cost['models'] = {}) =>
  Object.fromEntries(Object.entries(shares).map(([name, { total }]) => [name, total]));

/** A model that calls the tool `ask` until it has so many results, and costs `tokens` for each request and one more for each result. */
const patient = (name: string, calls: number, tokens: number): Model => {
  const answer: ScriptedAnswer = ({ messages }) => {
    const results = messages.filter(({ role }) => role === 'tool').length;
    return [results < calls ? toolCall('ask') : text('x'), used(tokens + results)];
  };
  return named(name, ...Array.from({ length: 20 }, () => answer));
};

/** Three agents: the outermost asks the middle one twice, which asks the deep one. */
const threeDeep = (use: Use) => {
  const deep = createAgent({ name: 'deep', model: patient('large', 0, 2) });
  const middle = createAgent({
    name: 'middle',
    model: patient('small', 1, 3),
    tools: [asking(deep)],
  });
  return createAgent({ name: 'top', model: patient('large', 2, 5), tools: [asking(middle)], use });
};
const costOfThree = {
  total: 234,
  models: { small: 2 * (3 + 4), large: 10 * (5 + 6 + 7 + 2 * 2) },
  agents: { top: 180, 'top/middle': 14, 'top/middle/deep': 40 },
};
const summary = (it: Cost | undefined) => ({
  total: it?.total,
  models: totals(it?.models),
  agents: totals(it?.agents),
});

describe('what a call costs', () => {
  it('C9: by model and by agent, each call with those below it, counted once', async () => {
    const layers = cost(list);
    const events = await record(threeDeep([layers, layers, cost(list)]).stream$('?'));
    const replies = events.flatMap((it) => (it.type === 'postCall' ? [it.reply] : []));
    expect(replies.map(({ cost: it }) => it?.total)).toEqual([20, 27, 20, 27, 234]);
    expect(replies[1]?.cost).toMatchObject({ currency: 'USD', date: '2026-11-30' });
    const whole = replies.at(-1);
    expect(summary(whole?.cost)).toEqual(costOfThree);
    expect(whole?.cost?.usage).toEqual(whole?.usage);
  });

  it('C9: adds nothing to a reply without the layer', async () => {
    expect(await threeDeep([]).call('?')).not.toHaveProperty('cost');
  });

  it('C9: counts the members of a team', async () => {
    const one = createAgent({ name: 'one', model: named('small', [text('x'), used(1)]) });
    const two = createAgent({ name: 'two', model: named('large', [text('x'), used(2)]) });
    const team = asAgent(sequential(one, two)).with(cost(list));
    const { cost: whole, usage } = await team.call('?');
    expect(whole?.total).toBe(21);
    expect(whole?.usage).toEqual(usage);
  });

  it('C9: charges retries, and the model that has answered', async () => {
    const down = () =>
      concat(
        of(used(100)),
        throwError(() => new MillraceError('server', 'Down.')),
      );
    const first: Model = { name: 'small', stream$: down };
    const model = fallback(
      retry(first, { attempts: 2, minMs: 1, maxMs: 1 }),
      named('large', [text('Hi.'), used(1)]),
    );
    const reply = await createAgent({ name: 'a', model, use: [cost(list)] }).call('?');
    expect(totals(reply.cost?.models)).toEqual({ small: 200, large: 10 });
  });

  it('C9: an unknown price is not 0', async () => {
    const agent = (prices: PriceList['prices']) =>
      createAgent({
        model: fallback(
          {
            name: 'unheard',
            stream$: () =>
              concat(
                of(used(3)),
                throwError(() => new MillraceError('server', 'x')),
              ),
          },
          named('small', [text('Hi.'), used(2)]),
        ),
        use: [cost({ ...list, prices })],
      });
    const { cost: some } = await agent(list.prices).call('?');
    expect(some).toMatchObject({ atLeast: 2, unknown: 'price' });
    expect(some).not.toHaveProperty('total');
    expect(some?.models['unheard']).toMatchObject({ atLeast: 0, unknown: 'price' });
    expect(some?.models['small']).toMatchObject({ total: 2 });
    expect(some && describeCost(some)).toBe('at least 2.00 USD');
    const { cost: all } = await agent({ ...list.prices, 'un*': { input: 1e6, output: 0 } }).call(
      '?',
    );
    expect(all?.total).toBe(5);
  });

  it.each<[string, unknown]>([
    ['negative', -5],
    ['NaN', Number.NaN],
    ['infinite', Infinity],
    ['a string', '1000'],
    ['null', null],
    ['an object', {}],
  ])('C9: usage that is %s makes the cost unknown, and never less', async (_, odd) => {
    const usage = { inputTokens: odd, outputTokens: 1, cacheReadTokens: 7 } as unknown as Usage;
    const script: ScriptedAnswer[] = [
      [text('Hi.'), used(5), { type: 'usage', usage }],
      [text('Hi.'), used(5)],
    ];
    const agent = createAgent({ model: named('small', ...script), use: [cost(list)] });
    const reply = await agent.call('?');
    expect(reply.cost).toMatchObject({ atLeast: 7, unknown: 'usage' });
    expect(reply.cost).not.toHaveProperty('total');
    expect((await agent.call('?')).cost?.total).toBe(5);
    const all = budget({ money: 100, prices: list.prices });
    await createAgent({ model: named('small', ...script), use: [all] }).call('?');
    expect(all.spent.money).toBe(7);
  });

  it('C9: reports what a call costs that fails', async () => {
    const model = named('small', [toolCall('spin'), used(3)], () =>
      concat(
        of(used(4)),
        throwError(() => new MillraceError('auth', 'No.')),
      ),
    );
    const spin = tool({ name: 'spin', description: 'Spins.', run: () => 'x' });
    const agent = createAgent({ model, tools: [spin], use: [cost(list)] });
    const events = await lastValueFrom(
      agent.stream$('?').pipe(onErrorResumeNextWith(EMPTY), toArray()),
    );
    expect(events.slice(-2)).toMatchObject([
      { type: 'failedCallCost', cost: { total: 7 } },
      { type: 'error' },
    ]);
  });

  it('C9: counts what was under way when an interrupt came', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const half = cold<ModelChunk>('-ut----', { u: used(10), t: text('Half') });
      const inner = createAgent({ name: 'inner', model: { name: 'small', stream$: () => half } });
      const model = named('large', [toolCall('ask'), used(1)]);
      const outer = createAgent({
        name: 'outer',
        model,
        tools: [asking(inner)],
        use: [cost(list)],
      });
      const reply$ = outer.call$('?', { scheduler, use: [interruptOn(cold('---x'))] });
      expectObservable(reply$.pipe(map((it) => totals(it.cost?.agents)))).toBe('---(r|)', {
        r: { outer: 10, 'outer/inner': 10 },
      });
      expectSubscriptions(half.subscriptions).toBe('^--!');
    });
  });

  it('C9: an abort frees the model immediately', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const never = cold<ModelChunk>('-u', { u: used(10) });
      const agent = createAgent({
        model: { name: 'small', stream$: () => concat(never, NEVER) },
        use: [cost(list)],
      });
      expectObservable(agent.call$('?', { scheduler }), '^--!').toBe('---');
      expectSubscriptions(never.subscriptions).toBe('^--!');
    });
  });

  it('C9: names of agents and models may be those of properties', async () => {
    const inner = createAgent({
      name: 'constructor',
      model: named('__proto__', [text('in'), used(2)]),
    });
    const model = named('toString', [toolCall('ask'), used(1)], [text('x'), used(1)]);
    const prices = Object.fromEntries(
      ['__proto__', 'toString'].map((name) => [name, { input: 1e6, output: 0 }]),
    );
    const use = [cost({ ...list, prices })];
    const { cost: whole } = await createAgent({
      name: 'a',
      model,
      tools: [asking(inner)],
      use,
    }).call('?');
    expect(Object.entries(totals(whole?.models))).toEqual([
      ['toString', 2],
      ['__proto__', 2],
    ]);
    expect(totals(whole?.agents)).toEqual({ a: 2, 'a/constructor': 2 });
  });
});

describe('sums of costs', () => {
  const count = fc.integer({ min: 0, max: 10_000_000 });
  const usage = fc.record<Usage>({
    inputTokens: count,
    outputTokens: count,
    cacheReadTokens: count,
    cacheWriteTokens: count,
  });
  const amount = fc.integer({ min: 0, max: 100_000 }).map((thousandths) => thousandths / 1_000);
  const price = fc.record({ input: amount, output: amount, cacheRead: amount, cacheWrite: amount });
  const requests = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), usage), {
    minLength: 1,
    maxLength: 12,
  });

  it('C9: parts add up to the whole, in any order of requests, to a millionth of a millionth', async () => {
    await fc.assert(
      fc.asyncProperty(requests, fc.tuple(price, price, price), async (asked, [a, b, c]) => {
        const prices = { a, b, c };
        const wholeOf = async (order: typeof asked): Promise<Cost | undefined> => {
          const agents = order.map(([name, it]) =>
            createAgent({
              name: `of-${name}`,
              model: named(name, [text('x'), { type: 'usage', usage: it }]),
            }),
          );
          const [first, ...others] = agents;
          if (first === undefined) return undefined;
          const team = asAgent(sequential(first, ...others)).with(cost({ ...list, prices }));
          return (await team.call('?')).cost;
        };
        const whole = await wholeOf(asked);
        const exact = asked.reduce((sum, [name, it]) => {
          const own = prices[name];
          const micro = (value: number): bigint => BigInt(Math.round(value * 1_000));
          return (
            sum +
            BigInt(it.inputTokens) * micro(own.input) +
            BigInt(it.outputTokens) * micro(own.output) +
            BigInt(it.cacheReadTokens) * micro(own.cacheRead) +
            BigInt(it.cacheWriteTokens) * micro(own.cacheWrite)
          );
        }, 0n);
        const near = (value: number | undefined): void => {
          const off = Math.abs((value ?? NaN) - Number(exact) / 1e9);
          expect(off).toBeLessThanOrEqual(1e-12 * Math.max(1, Number(exact) / 1e9));
        };
        const sumOf = (shares: Cost['models'] = {}): number =>
          Object.values(shares).reduce((sum, { atLeast }) => sum + atLeast, 0);
        near(whole?.total);
        near(sumOf(whole?.models));
        near(sumOf(whole?.agents));
        expect(whole?.usage).toEqual(asked.reduce((sum, [, it]) => addUsage(sum, it), noUsage));
        const turned = await wholeOf(asked.toReversed());
        near(turned?.total);
        expect(turned?.models).toEqual(whole?.models);
        expect(turned?.agents).toEqual(whole?.agents);
      }),
      { numRuns: 100 },
    );
  });
});

/** CI cuts at some of the records, `npm run test:all` at each. */
const stride = Math.min(3, Math.ceil(1 / Number(process.env['MILLRACE_RUNS'] ?? 1)));

describe('the cost of a resumed call', () => {
  const run$ = (driver: CallStoreDriver) =>
    threeDeep([journalIn(driver), cost(list)]).call$('?', { callId: 'c' });

  it('C9, S6: is that of one without a stop, by model and by agent', async () => {
    const records = await recordsOf(run$);
    let resumed = 0;
    for (let cut = 1; cut < records; cut += stride) {
      const store = inProcessCalls();
      runUntil(store, cut, run$);
      if (!(await stepsIn(store)).includes('call')) continue;
      const reply = await journalIn(store).resume(threeDeep([cost(list)]), 'c');
      expect(summary(reply.cost)).toEqual(costOfThree);
      resumed += 1;
    }
    expect(resumed).toBeGreaterThan(5);
  });

  it('S6: a call that has ended keeps the cost that it had, by the prices of that day', async () => {
    const store = inProcessCalls();
    const reply = await lastValueFrom(run$(store));
    const dearer = cost({ ...list, prices: { '*': { input: 99e6, output: 0 } } });
    const again = await journalIn(store).resume(threeDeep([dearer]), 'c');
    expect(summary(again.cost)).toEqual(summary(reply.cost));
  });
});

describe('lists of prices', () => {
  it.each<[unknown, RegExp]>([
    [undefined, /readPriceList\(\) needs an object with 'currency', 'date' and 'prices'/],
    ['{}', /not a string: parse it first/],
    [{ date: '2026-11-30', prices: {} }, /needs 'currency'/],
    [{ ...list, currency: '$' }, /'currency' must be the three letters of a currency/],
    [{ ...list, date: 'today' }, /'date' must be the day of the prices/],
    [{ ...list, date: '2026-13-41' }, /'date' must be/],
    [{ ...list, prices: [] }, /'prices' must be an object/],
    [{ ...list, prices: { m: { input: -1, output: 0 } } }, /the price of 'm': 'input' must be/],
    [{ ...list, prices: { m: { input: 1 } } }, /the price of 'm' needs 'output'/],
    [{ ...list, prices: { m: { input: 1, ouput: 1 } } }, /has no option 'ouput'/],
    [{ ...list, price: {} }, /Did you mean 'prices'/],
  ])('C9: %j is a mistake that is named', (given, why) => {
    expect(() => readPriceList(given)).toThrow(why);
  });

  it('C9: a JSON file is one', () => {
    expect(readPriceList(JSON.parse(JSON.stringify(list)))).toEqual(list);
  });

  it.each([
    [0, '0.00 USD'],
    [0.000123, '0.00012 USD'],
    [0.0015, '0.0015 USD'],
    [0.3, '0.30 USD'],
    [12.34567, '12.3457 USD'],
    [1234.5, '1234.50 USD'],
  ])('C9: describes %d as %s', (total, shown) => {
    expect(describeCost({ currency: 'USD', total, atLeast: total })).toBe(shown);
  });
});

describe('the contract of layers', () => {
  for (const layer of [0, 1]) {
    it.each(layerContract(() => cost(list)[layer] ?? { name: 'absent' }))(
      `C9: part ${layer} keeps to it: $name`,
      async ({ run }) => {
        await run();
      },
    );
  }
});
