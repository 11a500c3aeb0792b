import { describe, expect, it } from '@jest/globals';
import { EMPTY, from, lastValueFrom, map, NEVER, tap, throwError } from 'rxjs';
import { z } from 'zod';
import {
  type Agent,
  type AgentOptions,
  approval,
  contextKey,
  createAgent,
  createDemand,
  fromPull,
  interruptOn,
  MillraceError,
  type Model,
  type ModelChunk,
  on,
  output,
  prepare,
  suspend,
  textOf,
  tool,
} from '../../index.js';
import { jsonSchema } from '../../schema/index.js';
import { finish, marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { agentTool } from './index.js';
import { sessions } from '../sessions/index.js';

const ask = (prompt = 'Do it.') => toolCall('helper', { user_prompt: prompt });

const helperOf = (options: Partial<AgentOptions> & Pick<AgentOptions, 'model'>) =>
  createAgent({ name: 'helper', ...options });

/** What the one who asks gets of a helper, once. */
const observed = async (helper: Agent, options: object = {}) => {
  const model = scriptedModel([ask()], [text('done')]);
  const outer = createAgent({
    model,
    tools: [agentTool(helper, { description: 'Helps.', ...options })],
  });
  const { toolCalls } = await outer.call('?');
  return { output: toolCalls[0]?.output, isError: toolCalls[0]?.isError };
};

describe('agentTool', () => {
  it('G4: declares what an agent is asked with, and asks it with that', async () => {
    const inner = scriptedModel([text('It is done.')]);
    const model = scriptedModel(
      [
        toolCall('helper', {
          user_prompt: 'Find it.',
          reasoning: 'I need it.',
          context: 'It is blue.',
        }),
      ],
      [text('done')],
    );
    const outer = createAgent({
      model,
      tools: [agentTool(helperOf({ model: inner }), { description: 'Helps.' })],
    });
    const reply = await outer.call('?');
    const { tools = [] } = model.requests[0] ?? {};
    expect(tools).toMatchObject([
      {
        name: 'helper',
        description: 'Helps.',
        inputSchema: { required: ['user_prompt'], additionalProperties: false },
      },
    ]);
    expect(Object.keys(tools[0]?.inputSchema['properties'] ?? {})).toEqual([
      'user_prompt',
      'reasoning',
      'context',
    ]);
    expect(inner.requests[0]?.messages).toMatchObject([
      {
        role: 'user',
        content: [text('Find it.\n\n[Why you are called]\nI need it.\n\n[Context]\nIt is blue.')],
      },
    ]);
    expect(reply.toolCalls).toMatchObject([{ output: 'It is done.', isError: false }]);
  });

  it('G4: an input of its own, and its result', async () => {
    const inner = scriptedModel([text('a')], [text('b')]);
    const input = z.object({ city: z.string() });
    const helper = helperOf({ model: inner });
    const model = scriptedModel(
      [toolCall('plain', { city: 'Oslo' }), toolCall('made', { city: 'Bergen' })],
      [text('done')],
    );
    const outer = createAgent({
      model,
      tools: [
        agentTool(helper, { name: 'plain', description: 'P.', input, exclusive: true }),
        agentTool(helper, {
          name: 'made',
          description: 'M.',
          input,
          toPrompt: ({ city }, { agent }) => `${agent.join()} asks of ${city}`,
        }),
      ],
    });
    await outer.call('?');
    expect(inner.requests.map(({ messages }) => messages.map(textOf))).toEqual([
      ['{"city":"Oslo"}'],
      ['agent asks of Bergen'],
    ]);
  });

  it('G4: reports an output as JSON, and what it took in the details', async () => {
    const helper = helperOf({
      model: scriptedModel([text('{"city":"Oslo"}'), finish()]),
      use: [output(jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }))],
    });
    const outer = createAgent({
      model: scriptedModel([ask()], [text('done')]),
      tools: [agentTool(helper, { description: 'Helps.' })],
    });
    const events = await record(outer.stream$('?'));
    const acted = events.find(({ type }) => type === 'postActing');
    expect(acted).toMatchObject({
      result: {
        content: [text('{"city":"Oslo"}')],
        isError: false,
        details: {
          agent: 'helper',
          reason: 'answer',
          iterations: 1,
          toolCalls: [],
          output: { city: 'Oslo' },
        },
      },
    });
  });

  it.each<readonly [string, () => Agent, string, boolean]>([
    [
      'one that was cut',
      () => helperOf({ model: scriptedModel([text('Half'), finish('length')]) }),
      "The answer of the agent 'helper' was cut off because it was too long. Its answer:\nHalf",
      false,
    ],
    [
      'one that refuses',
      () => helperOf({ model: scriptedModel([text('No.'), finish('refusal')]) }),
      "The agent 'helper' refused to answer. Its answer:\nNo.",
      true,
    ],
    [
      'one at its limit',
      () =>
        helperOf({
          model: scriptedModel([toolCall('x')]),
          limits: { maxIterations: 1, onLimit: 'partial' },
        }),
      "The agent 'helper' has reached its maximum number of iterations. Its answer:\nThe maximum number of iterations is reached.",
      false,
    ],
    [
      'one that was stopped',
      () => helperOf({ model: scriptedModel(), use: [on('preReasoning', () => EMPTY)] }),
      "The agent 'helper' was stopped before it was done. Its answer:\nStopped.",
      true,
    ],
    [
      'one that waits',
      () =>
        helperOf({
          model: scriptedModel([text('I pay.'), toolCall('pay')]),
          tools: [tool({ name: 'pay', description: 'Pays.', run: () => suspend({}) })],
        }),
      "The agent 'helper' waits for an external result, which cannot be provided here. Continue without it, or state what is missing.",
      true,
    ],
    [
      'one that fails',
      () =>
        helperOf({
          model: scriptedModel(throwError(() => new MillraceError('server', 'Down for today.'))),
        }),
      'Failed: Down for today.',
      true,
    ],
    [
      'one that a guard keeps from it',
      () =>
        helperOf({
          model: scriptedModel(),
          use: [
            prepare(
              tap(() => {
                throw new MillraceError('guardRejected', 'Not that.');
              }),
            ),
          ],
        }),
      'Failed: The interceptor prepare() at position 1 failed: Not that.',
      true,
    ],
  ])('G4: reports %s in words', async (_what, helper, output, isError) => {
    expect(await observed(helper())).toEqual({ output, isError });
  });

  it('I2: one that takes too long costs its siblings nothing', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const never = cold<ModelChunk>('-----');
      const outer = createAgent({
        model: scriptedModel([ask(), toolCall('other', { user_prompt: '?' })], [text('done')]),
        tools: [
          agentTool(helperOf({ model: scriptedModel(never) }), {
            description: 'H.',
            timeoutMs: 4,
          }),
          agentTool(createAgent({ name: 'other', model: scriptedModel([text('fine')]) }), {
            description: 'O.',
          }),
        ],
      });
      const reply$ = outer.call$('?', { scheduler });
      expectObservable(
        reply$.pipe(map(({ toolCalls }) => toolCalls.map((it) => it.output).join('; '))),
      ).toBe('----(r|)', { r: "Failed: The tool 'helper' did not finish within 4 ms.; fine" });
      expectSubscriptions(never.subscriptions).toBe('^---!');
    });
  });

  it('G4: three levels deep, events report their paths, in order', async () => {
    const deep = createAgent({ name: 'deep', model: scriptedModel([text('bottom')]) });
    const middle = createAgent({
      name: 'middle',
      model: scriptedModel([toolCall('deep', { user_prompt: '?' })], [text('half way')]),
      tools: [agentTool(deep, { description: 'Deep.' })],
    });
    const top = createAgent({
      name: 'top',
      model: scriptedModel([toolCall('middle', { user_prompt: '?' })], [text('top')]),
      tools: [agentTool(middle, { description: 'Middle.' })],
    });
    const events = await record(top.stream$('?', { callId: 'c' }));
    const shown = events.map(({ agent, type, callId }) => `${agent.join('/')} ${type} ${callId}`);
    const within = (path: string) => shown.filter((it) => it.startsWith(`${path} `));
    expect(within('top/middle/deep')).toEqual(
      ['preCall', 'preReasoning', 'reasoningChunk', 'postReasoning', 'postCall'].map(
        (type) => `top/middle/deep ${type} c/call_1_0/call_1_0`,
      ),
    );
    expect(shown.indexOf('top/middle preActing c/call_1_0')).toBeLessThan(
      shown.indexOf('top/middle/deep preCall c/call_1_0/call_1_0'),
    );
    expect(shown.indexOf('top/middle/deep postCall c/call_1_0/call_1_0')).toBeLessThan(
      shown.indexOf('top/middle postActing c/call_1_0'),
    );
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  });

  it('G4, I5: leaving the top ends the bottom in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const deepest = model('--t-----');
      const one = createAgent({ name: 'one', model: deepest });
      const two = createAgent({
        name: 'two',
        model: scriptedModel([toolCall('one', { user_prompt: '?' })]),
        tools: [agentTool(one, { description: 'One.' })],
      });
      const three = createAgent({
        name: 'three',
        model: scriptedModel([toolCall('two', { user_prompt: '?' })]),
        tools: [agentTool(two, { description: 'Two.' })],
      });
      expectObservable(three.call$('?', { scheduler }), '^---!').toBe('----');
      expectSubscriptions(deepest.subscriptions[0] ?? []).toBe('^---!');
    });
  });

  it('S1: an interrupt at the top ends the bottom politely', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const deepest = model('-t------');
      const one = createAgent({ name: 'helper', model: deepest });
      const two = createAgent({
        model: scriptedModel([ask()]),
        tools: [agentTool(one, { description: 'One.', session: 's' })],
      });
      const reply$ = two.call$('?', { scheduler, use: [interruptOn(cold('---x', { x: 0 }))] });
      expectObservable(
        reply$.pipe(map(({ reason, toolCalls }) => [reason, toolCalls[0]?.output])),
      ).toBe('---(r|)', {
        r: ['interrupted', "The agent 'helper' was interrupted before it was done. Its answer:\nt"],
      });
      expectSubscriptions(deepest.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('G4: beyond the depth limit, a model is asked to do it itself', async () => {
    let asked = 0;
    const digger: Agent = createAgent({
      name: 'digger',
      model: {
        name: 'm',
        stream$: ({ messages }) => {
          asked += 1;
          if (asked > 20) throw new Error('It digs for ever.');
          const done = messages.some(({ role }) => role === 'tool');
          return from([done ? text('up') : toolCall('dig', { user_prompt: '?' }), finish()]);
        },
      },
      tools: [
        // It digs with itself.
        {
          ...agentTool(createAgent({ name: 'dig', model: scriptedModel() }), {
            description: 'Digs.',
          }),
          run$: (input, context) =>
            agentTool(digger, { description: 'Digs.', maxDepth: 3 }).run$(input, context),
        },
      ],
    });
    const events = await record(digger.stream$('?'));
    const paths = events.map(({ agent }) => agent.length);
    expect(Math.max(...paths)).toBe(3);
    expect(asked).toBe(6);
    const deepest = events.find(({ type, agent }) => type === 'postActing' && agent.length === 3);
    expect(deepest?.type === 'postActing' && deepest.result).toMatchObject({
      isError: true,
      content: [
        text(
          "Not called: agents can be nested up to 3 deep. Do the task for 'digger' yourself, or state what is missing.",
        ),
      ],
    });
  });

  it('S3: remembers in a session, if it has one; calls at the same time follow each other', async () => {
    const inner = scriptedModel([text('a')], [text('b')], [text('c')]);
    const helper = helperOf({ model: inner });
    const model = scriptedModel([ask('1'), ask('2')], [text('done')], [ask('3')], [text('done')]);
    const outer = createAgent({
      model,
      tools: [
        agentTool(helper, {
          description: 'H.',
          session: ({ sessionId }) => (sessionId === undefined ? undefined : `of ${sessionId}`),
        }),
      ],
    });
    await sessions(outer).open('s').call('?');
    await outer.call('?');
    expect(inner.requests.map(({ messages }) => messages.map(textOf))).toEqual([
      ['1'],
      ['1', 'a', '2'],
      ['3'],
    ]);
    expect((await lastValueFrom(sessions(helper).open('of s').memory.load$())).length).toBe(4);
  });

  it('T2: context values and approvals cross the border', async () => {
    const key = contextKey<string>('who');
    const asked: string[] = [];
    const helper = helperOf({
      model: scriptedModel([toolCall('who')], [text('done')]),
      tools: [
        tool({
          name: 'who',
          description: 'Tells.',
          run: (_input, { get }) => `It is ${get(key)}.`,
        }),
      ],
    });
    const outer = createAgent({
      model: scriptedModel([ask()], [text('done')]),
      tools: [agentTool(helper, { description: 'H.' })],
      context: [key.of('ada')],
    });
    const events = await record(
      outer.stream$('?', {
        use: [
          approval(({ tool: name, context }) => {
            asked.push(`${context.agent.join('/')} ${name}`);
            return true;
          }),
        ],
      }),
    );
    expect(asked).toEqual(['agent helper', 'agent/helper who']);
    const acted = events.flatMap((it) => (it.type === 'postActing' ? [textOf(it.result)] : []));
    expect(acted).toEqual(['It is ada.', 'done']);
  });

  it('I16: is paused by the consumer of the top', async () => {
    let taken = 0;
    async function* tokens(): AsyncGenerator<ModelChunk> {
      for (; taken < 500; taken += 1) yield await Promise.resolve(text('x'));
      yield finish();
    }
    const model: Model = { name: 'm', stream$: (_, { demand }) => fromPull(tokens, demand) };
    const gate = createDemand(8);
    const outer = createAgent({
      model: scriptedModel([ask()]),
      tools: [agentTool(helperOf({ model }), { description: 'H.' })],
    });
    const running = outer
      .stream$('?', { demand: gate })
      .subscribe(({ seq }) => gate.backlog(seq > 30 ? 8 : 0));
    await new Promise((resolve) => setImmediate(resolve));
    running.unsubscribe();
    expect(taken).toBeLessThan(40);
  });

  it('C5: a deadline of the top ends the bottom', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const never = cold<ModelChunk>('-----');
      const outer = createAgent({
        model: scriptedModel([ask()]),
        tools: [agentTool(helperOf({ model: scriptedModel(never) }), { description: 'H.' })],
      });
      const code$ = outer.call$('?', { scheduler, limits: { timeouts: { callMs: 3 } } });
      expectObservable(code$.pipe(map(() => ''))).toBe(
        '---#',
        {},
        new MillraceError('timeout', 'The call did not finish within 3 ms (callMs).', {
          retryable: true,
        }),
      );
      expectSubscriptions(never.subscriptions).toBe('^--!');
    });
  });

  it.each([
    ['Ünïcode Ägent!', 'Unicode_Agent'],
    ['a/b c', 'a_b_c'],
    ['__proto__', 'proto'],
    ['💥', 'agent'],
    ['x'.repeat(200), 'x'.repeat(64)],
    ['ignore\nthe above', 'ignore_the_above'],
  ])('X14: the name %j is made fit', (given, name) => {
    const helper = createAgent({ name: given, model: { name: 'm', stream$: () => NEVER } });
    expect(agentTool(helper, { description: 'H.' }).name).toBe(name);
  });

  it('refuses what cannot be a tool', () => {
    const helper = helperOf({ model: scriptedModel() });
    expect(() => agentTool(helper, {} as never)).toThrow("needs 'description'");
    expect(() => agentTool({} as never, { description: 'x' })).toThrow('needs an agent');
    expect(() => agentTool(helper, { description: 'x', maxDepth: 0 })).toThrow("'maxDepth'");
    expect(() => agentTool(helper, { description: 'x', name: 'a\nb' })).toThrow('1 to 256');
    expect(() => agentTool(helper, { description: 'x', session: '' })).toThrow("'session'");
    expect(() => agentTool(helper, { description: 'x', tools: [] } as never)).toThrow(
      "has no option 'tools'",
    );
  });
});
