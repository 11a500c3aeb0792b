import { describe, expect, it } from '@jest/globals';
import {
  concat,
  concatMap,
  first,
  lastValueFrom,
  map,
  NEVER,
  of,
  retry,
  tap,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import {
  type Agent,
  createAgent,
  interruptOn,
  MillraceError,
  type Model,
  type ModelChunk,
  parallel,
  type Reply,
  sequential,
  textOf,
  tool,
  usage$,
} from '../../index.js';
import {
  marbles,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from '../../testing/index.js';
import { budget, sharedBudget } from '../traffic/index.js';
import { noUsage } from '../../values/usage.js';
import { asAgent, createStep, silent } from './index.js';
import { journal } from '../../journal/index.js';

const costs = (inputTokens: number): ModelChunk => ({
  type: 'usage',
  usage: { ...noUsage, inputTokens, outputTokens: 1 },
});

const asking = (agent: Agent, name = 'ask') =>
  tool({
    name,
    description: `Asks ${agent.name}.`,
    run: (_input, parent) => agent.call$('?', { parent }).pipe(map((reply) => textOf(reply))),
  });

/** A model that uses its tool once, and costs as much each time. */
const using = (cost: number, answer = 'done', name = 'ask') =>
  scriptedModel([toolCall(name), costs(cost)], [text(answer), costs(cost)]);

const threeDeep = () => {
  const deep = createAgent({ name: 'deep', model: scriptedModel([text('bottom'), costs(100)]) });
  const middle = createAgent({ name: 'middle', model: using(10), tools: [asking(deep)] });
  return createAgent({ name: 'top', model: using(1), tools: [asking(middle)] });
};

const spentBy = ({ usage, usageByPhase }: Reply) => ({
  all: usage.inputTokens,
  ...Object.fromEntries(Object.entries(usageByPhase).map(([name, it]) => [name, it.inputTokens])),
});

describe('what a reply says it has cost', () => {
  it('R4: counts the calls below, three levels deep, each in its own call', async () => {
    const events = await record(threeDeep().stream$('?'));
    const replies = events.flatMap((it) => (it.type === 'postCall' ? [it.reply] : []));
    expect(replies.map(spentBy)).toEqual([
      { all: 100, reasoning: 100 },
      { all: 120, reasoning: 20, acting: 100 },
      { all: 122, reasoning: 2, acting: 120 },
    ]);
    const totals = await lastValueFrom(
      of(...events).pipe(
        usage$,
        map(({ inputTokens }) => inputTokens),
        toArray(),
      ),
    );
    expect(totals).toEqual([1, 11, 111, 121, 122]);
  });

  it('R4: counts the steps of a program, those of a losing race among them', async () => {
    const agentOf = (cost: number) =>
      createAgent({ model: scriptedModel([text('x'), costs(cost)]) });
    const inner = asAgent(sequential(parallel(agentOf(1), agentOf(2)), agentOf(4)));
    const reply = await asAgent(sequential(agentOf(8), inner)).call('?');
    expect(spentBy(reply)).toEqual({ all: 15, steps: 15 });
  });

  it('R4: counts what a tool had spent that failed', async () => {
    const inner = createAgent({
      model: scriptedModel(
        [toolCall('fail'), costs(10)],
        [text(''), costs(10)],
        [text(''), costs(10)],
      ),
      tools: [
        tool({ name: 'fail', description: 'Fails.', run: () => throwError(() => new Error('no')) }),
      ],
    });
    const outer = createAgent({ model: using(1), tools: [asking(inner)] });
    const reply = await outer.call('?');
    expect(reply.toolCalls[0]).toMatchObject({ isError: true });
    expect(spentBy(reply)).toEqual({ all: 32, reasoning: 2, acting: 30 });
  });

  it('R4: counts what a tool had spent that was cut', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const inner = createAgent({
        model: scriptedModel([toolCall('wait'), costs(10)], cold('-----')),
        tools: [tool({ name: 'wait', description: 'Waits.', run: () => timer(1, scheduler) })],
      });
      const outer = createAgent({ model: using(1), tools: [asking(inner)] });
      const reply$ = outer.call$('?', { scheduler, limits: { timeouts: { tools: { ask: 3 } } } });
      expectObservable(reply$.pipe(map((it) => spentBy(it)))).toBe('---(r|)', {
        r: { all: 12, reasoning: 2, acting: 10 },
      });
    });
  });

  it('R4: counts what a call had spent that its tool left', async () => {
    const inner = createAgent({
      model: scriptedModel([toolCall('wait'), costs(10)]),
      tools: [tool({ name: 'wait', description: 'Waits.', run: () => NEVER })],
    });
    const leaving = tool({
      name: 'ask',
      description: 'Asks, and leaves.',
      run: (_input, parent) =>
        inner.stream$('?', { parent }).pipe(first(({ type }) => type === 'preActing')),
    });
    const reply = await createAgent({ model: using(1), tools: [leaving] }).call('?');
    expect(spentBy(reply)).toEqual({ all: 12, reasoning: 2, acting: 10 });
  });

  it('R4: counts the calls below a call that was cut while its own tool ran', () => {
    marbles(({ scheduler, expectObservable }) => {
      const deep = createAgent({ model: scriptedModel([text('bottom'), costs(100)]) });
      const waiting = tool({
        name: 'ask',
        description: 'Asks, and waits.',
        run: (_input, parent) =>
          deep.call$('?', { parent }).pipe(concatMap(() => timer(9, scheduler))),
      });
      const middle = createAgent({ model: using(10), tools: [waiting] });
      const outer = createAgent({ model: using(1, 'done', 'out'), tools: [asking(middle, 'out')] });
      const reply$ = outer.call$('?', { scheduler, limits: { timeouts: { tools: { out: 3 } } } });
      expectObservable(reply$.pipe(map((it) => spentBy(it)))).toBe('---(r|)', {
        r: { all: 112, reasoning: 2, acting: 110 },
      });
    });
  });

  it('R4: counts what was under way when an interrupt came', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const half = cold('-ut----', { u: costs(10), t: text('Half') });
      const inner = createAgent({ model: scriptedModel(half) });
      const outer = createAgent({ model: using(1), tools: [asking(inner)] });
      const reply$ = outer.call$('?', { scheduler, use: [interruptOn(cold('---x'))] });
      expectObservable(reply$.pipe(map((it) => spentBy(it)))).toBe('---(r|)', {
        r: { all: 11, reasoning: 1, acting: 10 },
      });
      const again = createAgent({ model: scriptedModel(half) });
      const steps$ = asAgent(sequential(again)).stream$('?', {
        scheduler,
        use: [interruptOn(cold('---x'))],
      });
      expectObservable(
        steps$.pipe(
          usage$,
          map(({ inputTokens }) => inputTokens),
        ),
      ).toBe('---(a|)', {
        a: 10,
      });
    });
  });

  it('S6: a step that is replayed brings what it had cost', async () => {
    const known = new Map<string, unknown>();
    const durable = journal((id, work) =>
      known.has(id) ? of(known.get(id)) : work().pipe(tap((value) => known.set(id, value))),
    );
    const inner = createAgent({ model: scriptedModel([text('in'), costs(10)]) });
    const broken: Model = {
      name: 'broken',
      stream$: () => throwError(() => new Error('crash')),
    };
    let model: Model = scriptedModel([toolCall('ask'), costs(1)], () =>
      broken.stream$({ messages: [] }, {} as never),
    );
    const agent = () => createAgent({ model, use: [durable], tools: [asking(inner)] });
    await expect(agent().call('?', { callId: 'c' })).rejects.toThrow('crash');
    model = scriptedModel([text('done'), costs(1)]);
    expect(spentBy(await durable.resume(agent(), 'c'))).toEqual({
      all: 12,
      reasoning: 2,
      acting: 10,
    });
  });

  it('C9, S6: a budget of a resumed call counts what replayed calls below have cost, by model', async () => {
    const known = new Map<string, unknown>();
    const durable = journal((id, work) =>
      known.has(id) ? of(known.get(id)) : work().pipe(tap((value) => known.set(id, value))),
    );
    const prices = { deep: { input: 100_000, output: 0 }, '*': { input: 0, output: 0 } };
    const deep = { ...scriptedModel([text('in'), costs(10)]), name: 'deep' };
    const inner = createAgent({ model: deep });
    const agent = (money: number, ...answers: readonly ScriptedAnswer[]) =>
      createAgent({
        model: scriptedModel(...answers),
        use: [durable, budget({ money, prices })],
        tools: [asking(inner)],
      });
    const crash = throwError(() => new Error('crash'));
    const cut = agent(2, [toolCall('ask'), costs(1)], () => crash);
    await expect(cut.call('?', { callId: 'c' })).rejects.toThrow('crash');
    const left = agent(1, [text('I close.'), costs(1)]);
    expect((await durable.resume(left, 'c')).reason).toBe('budget');
    const enough = agent(1.1, [text('done'), costs(1)]);
    known.delete('c/reply');
    known.delete('c/2');
    expect((await durable.resume(enough, 'c')).reason).toBe('answer');
  });

  it('C9: a shared budget counts each request once', async () => {
    const budget = sharedBudget({ tokens: 1000 });
    const deep = createAgent({
      name: 'deep',
      model: scriptedModel([text('b'), costs(100)]),
      use: [budget],
    });
    const middle = createAgent({ model: using(10), tools: [asking(deep)], use: [budget] });
    const top = createAgent({ model: using(1), tools: [asking(middle)], use: [budget] });
    const reply = await top.call('?');
    expect(reply.usage.inputTokens).toBe(122);
    expect(budget.spent.tokens).toBe(122 + 5);
  });

  it('C9: a shared budget ends the whole family', async () => {
    const budget = sharedBudget({ tokens: 50 });
    const deep = createAgent({
      name: 'deep',
      model: scriptedModel([text('b'), costs(100)]),
      use: [budget],
    });
    const top = createAgent({
      model: scriptedModel([toolCall('ask'), costs(1)], [text('I close.'), costs(1)]),
      tools: [asking(deep)],
      use: [budget],
    });
    const reply = await top.call('?');
    expect(reply.reason).toBe('budget');
    const team = asAgent(sequential(deep));
    await expect(team.call('?')).rejects.toMatchObject({ code: 'budget' });
  });

  it('R4: a request that fails below is counted, as far as it was reported', async () => {
    const spent = { type: 'usage', usage: { inputTokens: 100 } } as const;
    const model = scriptedModel(
      concat(
        of(text('Half'), spent),
        throwError(() => new MillraceError('server', 'Down.')),
      ),
      [text('Whole.'), spent],
    );
    const writer = createAgent({ name: 'writer', model });
    const patient = createStep((input, options) =>
      writer.call$(input, silent(options)).pipe(retry(1)),
    );
    expect((await asAgent(patient).call('?')).usage.inputTokens).toBe(200);
  });
});
