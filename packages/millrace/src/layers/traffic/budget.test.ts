import { describe, expect, it } from '@jest/globals';
import { concat, lastValueFrom, map, NEVER, of, throwError, toArray } from 'rxjs';
import { summarise } from '../../memories/index.js';
import { acting, insertAfter, insertBefore, reasoning } from '../../phases/index.js';
import {
  analyseTask,
  completeTask,
  reflect,
  rewriteQuestion,
  synthesize,
} from '../planning/index.js';
import {
  type AgentOptions,
  createAgent,
  fallback,
  inProcessMemory,
  MillraceError,
  type Model,
  textBlock,
  textOf,
  tool,
} from '../../index.js';
import {
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
  verifyEvents,
} from '../../testing/index.js';
import { type Budget, budget, sharedBudget } from './budget.js';
import { sessions } from '../sessions/index.js';

const spin = tool({ name: 'spin', description: 'Spins.', run: () => 'Again.' });
const used = (inputTokens: number, outputTokens: number) =>
  ({ type: 'usage', usage: { inputTokens, outputTokens, cacheReadTokens: 5 } }) as const;
const round: ScriptedAnswer = [toolCall('spin'), used(70, 25)];
const runaway = (
  rounds: number,
  ...last: readonly ScriptedAnswer[]
): ReturnType<typeof scriptedModel> =>
  scriptedModel(...Array.from({ length: rounds }, () => round), ...last);
const agentOf = (model: Model, ...budgets: readonly Budget[]) =>
  createAgent({
    model,
    tools: [spin],
    limits: { maxIterations: 1_000 },
    use: budgets,
  });
/** The same agent with a budget more. */
const also = (options: AgentOptions, more: Budget): AgentOptions => ({
  ...options,
  use: [...(options.use ?? []), more],
});
const closing: ScriptedAnswer = [text('So far.'), used(10, 5)];

describe('budgets', () => {
  it.each([
    ['tokens', { tokens: 300 }, 3, 'The budget of 300 tokens is used up.'],
    [
      'money',
      { money: 0.001, prices: { '*': { input: 10, output: 10 } } },
      1,
      'The money budget is used up.',
    ],
    ['toolCalls', { toolCalls: 4 }, 4, 'The budget of 4 tool calls is used up.'],
  ] as const)(
    'C9: %s end a runaway loop with a closing answer',
    async (_, options, rounds, why) => {
      const model = runaway(rounds, closing);
      const memory = inProcessMemory();
      const agent = createAgent({
        model,
        tools: [spin],
        limits: { maxIterations: 1_000 },
        use: [budget(options)],
      });
      const events = await lastValueFrom(
        sessions(agent, { memory }).open('s').stream$('?').pipe(verifyEvents(), toArray()),
      );
      const last = events.at(-1);
      const reply = last?.type === 'postCall' ? last.reply : undefined;
      expect(reply).toMatchObject({ reason: 'budget', iterations: rounds });
      expect(textOf(reply ?? { content: [] })).toBe('So far.');
      expect(events).toContainEqual(expect.objectContaining({ type: 'warning', message: why }));
      expect(model.requests.at(-1)?.toolChoice).toBe('none');
      expect(model.requests.at(-1)?.messages.at(-1)).toMatchObject({
        content: [{ text: expect.stringContaining(`${why} Answer now`) }],
      });
      const stored = await lastValueFrom(memory('s').load$());
      expect(stored.map(({ role }) => role)).toEqual([
        'user',
        ...Array.from({ length: rounds }, () => ['assistant', 'tool']).flat(),
        'assistant',
      ]);
      // The session goes on.
      await expect(
        sessions(agent, { memory })
          .open('s')
          .call('?', { model: scriptedModel([text('Yes.')]) }),
      ).resolves.toMatchObject({ reason: 'answer' });
    },
  );

  it('C9: ends a call with an error, if the option says that', async () => {
    const agent = agentOf(runaway(2), budget({ tokens: 150, onExceed: 'error' }));
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'budget',
      retryable: false,
      message: expect.stringContaining('The budget of 150 tokens is used up.'),
    });
  });

  it('C9: a closing answer that says nothing is the error', async () => {
    await expect(agentOf(runaway(1, []), budget({ tokens: 1 })).call('?')).rejects.toMatchObject({
      code: 'budget',
    });
  });

  it('C9: each call has its own; one that is shared is for all agents, closing answers counted', async () => {
    const own = budget({ tokens: 250 });
    const all = sharedBudget({ tokens: 500 });
    const call = (rounds: number, ...last: readonly ScriptedAnswer[]) =>
      agentOf(runaway(rounds, ...last), own, all).call('?');
    expect(await call(2, [text('Done.'), used(1, 1)])).toMatchObject({ reason: 'answer' });
    expect(await call(3, closing)).toMatchObject({ reason: 'budget' });
    // 2 × 100 + 7, then 3 × 100 + 20: nothing is left, not for one round.
    expect(all.spent).toMatchObject({ tokens: 527, toolCalls: 5, money: 0 });
    expect(own.spent.tokens).toBe(527);
    // A call that begins with nothing left costs nothing.
    await expect(call(0)).rejects.toMatchObject({ code: 'budget' });
    expect(all.spent.tokens).toBe(527);
    const next = sharedBudget({ tokens: 1_000 }, all.spent);
    await agentOf(scriptedModel([text('Hi.'), used(1, 1)]), next).call('?');
    expect(next.spent.tokens).toBe(534);
  });

  it('C9: counts the closing request of other limits, too', async () => {
    const all = sharedBudget({ tokens: 1_000 });
    const agent = agentOf(runaway(1, closing), all);
    expect(await agent.call('?', { limits: { maxIterations: 1 } })).toMatchObject({
      reason: 'maxIterations',
    });
    expect(all.spent.tokens).toBe(120);
  });

  it('C9: does not take an unknown model for free', async () => {
    const prices = { other: { input: 1, output: 1 } };
    const agent = agentOf(runaway(1), budget({ money: 1, prices }));
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining("Add 'scripted' to 'prices'"),
    });
    expect(() => budget({ money: 1 })).toThrow(/'money' needs 'prices'/);
    const odd = { m: { input: 1 } } as never;
    expect(() => budget({ money: 1, prices: odd })).toThrow(/the price of 'm' needs 'output'/);
    expect(() => budget({ onExceed: 'error' })).toThrow(
      /needs at least one limit: tokens, money or toolCalls/,
    );
    expect(() => budget({ tokens: 0 })).toThrow(/'tokens' must be/);
    expect(() => createAgent({ model: scriptedModel(), use: [{} as never] })).toThrow(
      /'use' takes a list of interceptors/,
    );
  });

  it('C9: counts requests that are left, fail or are corrected', async () => {
    const all = sharedBudget({ tokens: 1_000_000 });
    const silent = { name: 'm', stream$: () => concat(of(used(100, 0)), NEVER) };
    const left = agentOf(silent, all)
      .call$('?')
      .subscribe({ error: () => undefined });
    left.unsubscribe();
    expect(all.spent.tokens).toBe(105);
    const broken = { name: 'm', stream$: () => of(used(100, 0), text('Hal')) };
    await expect(agentOf(broken, all).call('?')).rejects.toMatchObject({ code: 'invalidResponse' });
    expect(all.spent.tokens).toBe(210);
    const again = scriptedModel([used(50, 0)], [text('Yes.'), used(50, 0)]);
    await agentOf(again, all).call('?');
    expect(all.spent.tokens).toBe(320);
  });

  it('C9: counts a request once, though its text is taken back', async () => {
    const taken = { type: 'restart', why: 'A thought.', isSameRequest: true } as const;
    const all = sharedBudget({ tokens: 1_000_000 });
    const model = scriptedModel([text('Hm.'), used(70, 25), taken, text('Yes.'), used(70, 30)]);
    const reply = await agentOf(model, all).call('?');
    expect(reply.usage).toMatchObject({ inputTokens: 70, outputTokens: 30 });
    expect(all.spent.tokens).toBe(105);
  });

  it('C9: charges the model that has answered', async () => {
    const down = {
      name: 'scripted',
      stream$: () => throwError(() => new MillraceError('server', 'Down.')),
    };
    const prices = { scripted: { input: 1e6, output: 0 }, other: { input: 5e6, output: 0 } };
    const all = sharedBudget({ money: 1_000, prices });
    const other = {
      ...scriptedModel([text('Hi.'), { type: 'usage', usage: { inputTokens: 2 } }]),
      name: 'other',
    };
    await agentOf(fallback(down, other), all).call('?');
    expect(all.spent.money).toBe(10);
    const odd = { inputTokens: 3, outputTokens: undefined } as never;
    const both = {
      model: scriptedModel([text('Hi.'), { type: 'usage', usage: odd }]),
      use: [all, all],
    };
    await createAgent(both).call('?');
    expect(all.spent.money).toBe(13);
  });

  it('C9, G4: what sub-agents spend counts, if they are held to the same budget', async () => {
    const own = budget({ tokens: 150 });
    const child = agentOf(scriptedModel([text('inner'), used(150, 0)]), own);
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, context) => child.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('ask'), used(5, 0)], closing);
    const parent = createAgent({ model, tools: [ask], use: [own] });
    expect(await parent.call('?')).toMatchObject({ reason: 'budget', iterations: 1 });
    // Another call begins anew, and nothing is kept of the one before.
    const once = agentOf(scriptedModel([text('Hi.')]), own);
    expect(await once.call('?')).toMatchObject({ reason: 'answer' });
  });

  it('C9: prices what the cache gives and takes', async () => {
    const all = sharedBudget({
      money: 10,
      prices: { scripted: { input: 1_000_000, output: 2_000_000, cacheRead: 500_000 } },
    });
    await agentOf(scriptedModel([text('Hi.'), used(1, 1)]), all).call('?');
    expect(all.spent.money).toBe(5.5);
  });
});

describe('budgets and other models', () => {
  const other = (...script: readonly ScriptedAnswer[]) => ({
    ...scriptedModel(...script),
    name: 'other',
  });
  const aside: ScriptedAnswer = [text('Look at it twice.'), used(995, 0)];
  const history = Array.from({ length: 6 }, (_, index) => ({
    id: `h${index}`,
    role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: [textBlock('A question of long ago, with some words. '.repeat(10))],
  }));

  it.each<[string, (model: Model) => Partial<AgentOptions>, readonly ScriptedAnswer[]]>([
    ['analyseTask', (model) => ({ use: [insertBefore(reasoning, analyseTask({ model }))] }), []],
    ['reflect', (model) => ({ use: [insertAfter(acting, reflect({ model }))] }), [round]],
    [
      'synthesize',
      (model) => ({
        tools: [completeTask()],
        use: [insertAfter(acting, synthesize({ model }))],
      }),
      [[toolCall('complete_task', {}), used(70, 25)]],
    ],
    ['rewriteQuestion', (model) => ({ use: [rewriteQuestion({ model })] }), []],
    [
      'summarise',
      (model) => ({ use: [insertBefore(reasoning, summarise({ contextWindow: 600, model }))] }),
      [],
    ],
  ])('L3, C9: what %s asks another model counts, at its price', async (_, extra, script) => {
    const prices = { scripted: { input: 0, output: 0 }, other: { input: 1e6, output: 0 } };
    const all = sharedBudget({ tokens: 1_000_000, money: 1_000_000, prices });
    const memory = inProcessMemory();
    await lastValueFrom(memory('s').append$(history), { defaultValue: undefined });
    const model = scriptedModel(...script, [text('Done.'), used(0, 0)]);
    const beside = other(aside);
    const options = { model, tools: [spin], ...extra(beside) };
    const reply = await sessions(createAgent(also(options, all)), { memory })
      .open('s')
      .call('?');
    expect(beside.requests).toHaveLength(1);
    expect(all.spent.usage).toEqual(reply.usage);
    expect(all.spent.money).toBe(1_000);
  });

  it('L3, C9: they use a budget up, and one without a price is not asked', async () => {
    const own = budget({ tokens: 500, onExceed: 'error' });
    const thinking = (model: Model) => ({
      model: scriptedModel([text('Done.'), used(1, 1)]),
      use: [insertBefore(reasoning, analyseTask({ model }))],
    });
    const reflecting = {
      model: runaway(3),
      tools: [spin],
      use: [insertAfter(acting, reflect({ model: other(aside, aside) }))],
    };
    await expect(createAgent(also(reflecting, own)).call('?')).rejects.toMatchObject({
      code: 'budget',
    });
    expect(own.spent.tokens).toBe(1_100);
    const unknown = other(aside);
    const money = budget({ money: 1, prices: { scripted: { input: 1, output: 1 } } });
    const events = await record(createAgent(also(thinking(unknown), money)).stream$('?'));
    expect(unknown.requests).toEqual([]);
    expect(events).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining("Add 'other' to 'prices'") }),
    );
  });

  it('L3, C9: a request of another model that is left or fails counts', async () => {
    const all = sharedBudget({ tokens: 1_000_000 });
    const asking = (model: Model) =>
      createAgent({
        model: scriptedModel([text('Done.')]),
        use: [insertBefore(reasoning, analyseTask({ model })), all],
      });
    const silent = { name: 'm', stream$: () => concat(of(used(100, 0)), NEVER) };
    asking(silent)
      .call$('?')
      .subscribe({ error: () => undefined })
      .unsubscribe();
    expect(all.spent.tokens).toBe(105);
    const broken = { name: 'm', stream$: () => of(used(100, 0), text('Hal')) };
    await asking(broken).call('?');
    expect(all.spent.tokens).toBe(210);
  });
});
