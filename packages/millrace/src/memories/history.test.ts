import { describe, expect, it } from '@jest/globals';
import { concat, lastValueFrom, NEVER, of } from 'rxjs';
import { fitContext } from '../layers/fitting/index.js';
import {
  conversation,
  createAgent,
  history,
  inProcessMemory,
  type InputMessage,
  type Layer,
  type Message,
  sequential,
  suspend,
  textBlock,
  textOf,
  tool,
  toolResults,
  watch,
} from '../index.js';
import { strictHistory } from './repair.js';
import { unpaired } from '../values/pairing.js';
import { record, type ScriptedModel, scriptedModel, text, toolCall } from '../testing/index.js';
import { asAgent, handoff, hub } from '../layers/teams/index.js';
import { sessions } from '../layers/sessions/index.js';
import { leftAt } from '../journal/dying-driver.test-support.js';
import { type CallStoreDriver, journal } from '../journal/index.js';
import { journalIn } from '../journal/stored-calls.test-support.js';

const user = (said: string): InputMessage => ({ role: 'user', content: [textBlock(said)] });
const assistant = (said: string, name?: string): InputMessage => ({
  role: 'assistant',
  content: [textBlock(said)],
  ...(name === undefined ? {} : { name }),
});

describe('history()', () => {
  it('R1: is shown before the input, and other agents are heard by their names', async () => {
    const model = scriptedModel([text('three')]);
    const said = [user('one'), assistant('two'), assistant('aside', 'other'), user('more')];
    await createAgent({ name: 'me', model }).call('?', { use: [history(said)] });
    expect(model.requests[0]?.messages).toMatchObject([
      { role: 'user', content: [text('one')] },
      { role: 'assistant', content: [text('two')] },
      { role: 'user', name: 'other', content: [text('aside')] },
      { role: 'user', content: [text('more')] },
      { role: 'user', content: [text('?')] },
    ]);
  });

  it('R1: has its own tools and their results, and not those of others', async () => {
    const use = (id: string, name: string, said: string): readonly InputMessage[] => [
      {
        role: 'assistant',
        name,
        content: [
          ...(said === '' ? [] : [textBlock(said)]),
          { type: 'tool_call', id, name: 'look', input: {} },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool_result', toolCallId: id, content: [textBlock('seen')], isError: false },
        ],
      },
    ];
    const model = scriptedModel([text('done')]);
    const said = [...use('a', 'me', ''), ...use('b', 'other', 'I look.'), ...use('c', 'x', '')];
    await createAgent({ name: 'me', model }).call('?', { use: [history(said)] });
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual([
      'assistant',
      'tool',
      'user',
      'user',
    ]);
  });

  it('X19: is copied and frozen, and an empty one is left out', async () => {
    const model = scriptedModel([text('a')], [text('b')]);
    const agent = createAgent({ model });
    const content = [textBlock('one')];
    const call$ = agent.call$('?', { use: [history([{ role: 'user', content }])] });
    await lastValueFrom(call$);
    content.push(textBlock('late'));
    expect(model.requests[0]?.messages[0]?.content).toEqual([text('one')]);
    expect(Object.isFrozen(model.requests[0]?.messages[0])).toBe(true);
    await agent.call('?', { use: [history([])] });
    expect(model.requests[1]?.messages).toHaveLength(1);
  });

  it.each<readonly [string, unknown, string]>([
    ['a number', [5], 'entry 1: it is neither a string, a content block nor a message'],
    [
      'a function in a message',
      [{ role: 'user', content: [{ type: 'text', text: () => 1 }] }],
      'entry 1: ',
    ],
  ])('I10: %s cannot be read', async (_what, said, why) => {
    const agent = createAgent({ model: scriptedModel([text('a')]) });
    const call = agent.call('?', { use: [history(said as never)] });
    await expect(call).rejects.toMatchObject({ code: 'invalidRequest' });
    await expect(call).rejects.toThrow(`The history cannot be read: ${why}`);
  });

  const calling: Message = {
    id: 'a',
    role: 'assistant',
    content: [
      { type: 'tool_call', id: 'u', name: 'look', input: {} },
      { type: 'tool_call', id: 'v', name: 'look', input: {} },
    ],
  };
  const result = (toolCallId: string, said: string): Message => ({
    id: `of ${toolCallId}`,
    role: 'tool',
    content: [{ type: 'tool_result', toolCallId, content: [textBlock(said)], isError: false }],
  });
  const asking: Message = { id: 'q', role: 'user', content: [textBlock('Look twice.')] };
  const missing = expect.stringContaining('No result');

  it.each<[string, readonly Message[], readonly unknown[]]>([
    ['no result', [asking, calling], [missing, missing]],
    ['one of two results', [asking, calling, result('v', 'seen')], [missing, 'seen']],
    ['results one by one', [asking, calling, result('v', '2'), result('u', '1')], ['1', '2']],
    ['a result twice', [asking, calling, result('u', '1'), result('u', '2')], ['1', missing]],
    ['a result of no call', [asking, result('x', 'lost'), calling], [missing, missing]],
  ])(
    'S11: a history with %s is repaired, in a session and from a caller',
    async (_, held, said) => {
      const memory = inProcessMemory();
      await lastValueFrom(memory('s').append$(held));
      const model = scriptedModel(...Array.from({ length: 4 }, () => [text('Done.')]));
      const agent = createAgent({ model });
      const session = sessions(agent, { memory }).open('s');
      const events = await record(session.stream$('And?'));
      await session.call('And then?');
      await agent.call('?', { use: [history(held)] });
      expect(events.filter(({ type }) => type === 'warning')).toHaveLength(1);
      for (const { messages } of model.requests) {
        expect(unpaired(messages)).toBeUndefined();
        const results = messages.find((it) => it.role === 'tool');
        expect(results?.content.map((it) => textOf(it))).toEqual(said);
      }
      const strict = { use: [strictHistory()] };
      const refusal = {
        code: 'memory',
        message: expect.stringContaining('without exactly one result'),
      };
      await expect(agent.call('?', { use: [...strict.use, history(held)] })).rejects.toMatchObject(
        refusal,
      );
      await expect(session.call('?', strict)).rejects.toMatchObject(refusal);
    },
  );

  it('I8: nothing of it is stored, and a session refuses it', async () => {
    const memory = inProcessMemory();
    const agent = createAgent({ model: scriptedModel([text('a')]) });
    const session = sessions(agent, { memory }).open('s');
    await expect(session.call('?', { use: [history([])] })).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('a session has its own history'),
    });
    expect(() => agent.call$('?', { history: [] } as never)).toThrow(
      "has no option 'history'. Add history(messages) to 'use'.",
    );
    expect(await lastValueFrom(memory('s').load$())).toEqual([]);
  });

  it('I8: a call replaces the history of its agent, and a session of the agent refuses it', async () => {
    const model = scriptedModel([text('a')], [text('b')]);
    const agent = createAgent({ model, use: [history([user('example')])] });
    await agent.call('?');
    await agent.call('?', { use: [history([user('other')])] });
    const shown = model.requests.map(({ messages }) => messages.map((it) => textOf(it)));
    expect(shown).toEqual([
      ['example', '?'],
      ['other', '?'],
    ]);
    const session = sessions(agent).open('s');
    await expect(session.call('?')).rejects.toMatchObject({ code: 'config' });
  });

  it('I8: a layer that gives a call a memory needs the conversation beside it', async () => {
    const model = scriptedModel([text('a1')], [text('a2')]);
    const memory = inProcessMemory()('s');
    const remembers: Layer = {
      name: 'remembers',
      priority: 54,
      call: () => (next) => (call) => next({ ...call, memory }),
    };
    const agent = createAgent({ model, use: [remembers] });
    await expect(agent.call('q1')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining("needs the layer 'conversation'"),
    });
    const whole = agent.with(conversation);
    await whole.call('q1');
    await whole.call('q2');
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['q1', 'a1', 'q2']);
    expect(await lastValueFrom(memory.load$())).toHaveLength(4);
  });

  it('G5: an agent of a team keeps its own history until something was said there', async () => {
    const [model, other] = [scriptedModel([text('a1')], [text('a2')]), scriptedModel([text('b1')])];
    const own = { use: [history([user('example')])] };
    const agents = [
      createAgent({ name: 'a', model, ...own }),
      createAgent({ name: 'b', model: other }),
    ] as const;
    await lastValueFrom(of('q').pipe(hub({ agents })));
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['example', 'q']);
    const handed = handoff({ agents: [{ agent: agents[0], description: 'All.' }] });
    await handed.call('q');
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['example', 'q']);
  });

  it('G5: the layers of an operator and those of the program around it add up', async () => {
    const model = scriptedModel([text('a1')], [text('a2')]);
    const seen: string[] = [];
    const step = createAgent({ name: 'a', model }).asOperator({
      use: [watch(({ type }) => void (type === 'preCall' && seen.push('heard')))],
    });
    const team = sessions(asAgent(step, { name: 'team' })).open('s');
    await team.call('q1');
    await team.call('q2');
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['q1', 'a1', 'q2']);
    expect(seen).toEqual(['heard', 'heard']);
  });

  it('S6: a call that ends before its history is recorded resumes with it', async () => {
    const agentOf = (model: ScriptedModel, driver: CallStoreDriver) =>
      createAgent({ model, use: [journalIn(driver)] });
    const driver = await leftAt('call', (dying) =>
      agentOf(scriptedModel([text('lost')]), dying).call$('?', {
        callId: 'c',
        use: [history([user('one')])],
      }),
    );
    const model = scriptedModel([text('a')]);
    const resumed = agentOf(model, driver);
    expect(textOf(await journalIn(driver).resume(resumed, 'c'))).toBe('a');
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['one', '?']);
  });

  it('I15: is trimmed, and the task never', async () => {
    const model = scriptedModel([text('a')]);
    const agent = createAgent({ model, ...fits(120) });
    const said = Array.from({ length: 40 }, (_, index) => user(`${index} ${'word '.repeat(10)}`));
    await agent.call('The question', { use: [history(said)] });
    const sent = model.requests[0]?.messages ?? [];
    expect(sent.length).toBeLessThan(10);
    expect(sent.at(-1)?.content.at(-1)).toEqual(text('The question'));
  });

  it('S6: is a part of what the call begins with', async () => {
    const known = new Map<string, unknown>();
    const durable = journal((id, work) => {
      known.set(id, true);
      return work();
    });
    await createAgent({ model: scriptedModel([text('a')]), use: [durable] }).call('?', {
      callId: 'c',
      use: [history([user('one')])],
    });
    expect([...known.keys()]).toEqual(['c/call', 'c/open', 'c/1', 'c/reply']);
  });

  it('S6: an engine whose steps do not complete ends a call all the same', async () => {
    const durable = journal((_id, work) => concat(work(), NEVER));
    const agent = createAgent({ model: scriptedModel([text('a')]), use: [durable] });
    expect(textOf(await agent.call('?', { callId: 'c' }))).toBe('a');
  });

  it('T13: a result that it waits for can be brought', async () => {
    const model = scriptedModel([toolCall('pay', {}, 'p')], [text('Paid.')]);
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => suspend({ amount: 5 }) });
    const memory = inProcessMemory();
    const agent = createAgent({ model, tools: [pay] });
    await sessions(agent, { memory }).open('s').call('Pay.');
    const said = await lastValueFrom(memory('s').load$());
    const reply = await agent.call(toolResults({ p: 'ok' }), { use: [history(said)] });
    expect(textOf(reply)).toBe('Paid.');
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      content: [{ content: [text('ok')] }],
    });
  });

  it('G5: the agents of a program hear what was said before, a session does not', async () => {
    const model = scriptedModel([text('b1')], [text('b2')]);
    const own = scriptedModel([text('a1')], [text('a2')]);
    const team = sessions(
      asAgent(
        sequential(
          sessions(createAgent({ name: 'a', model: own })).open('own'),
          createAgent({ name: 'b', model }),
        ),
        { name: 'team' },
      ),
    ).open('s');
    await team.call('q1');
    await team.call('q2');
    expect(model.requests[1]?.messages.map((it) => `${it.role} ${textOf(it)}`)).toEqual([
      'user q1',
      'assistant b1',
      'user a2',
    ]);
    expect(own.requests[1]?.messages.map(textOf)).toEqual(['q1', 'a1', 'q2']);
  });
});

const fits = (contextWindow: number) => ({ use: [fitContext({ contextWindow, reserve: 10 })] });
