import { describe, expect, it } from '@jest/globals';
import { concat, lastValueFrom, NEVER, of, throwError } from 'rxjs';
import { agentTool } from '../layers/teams/index.js';
import {
  createAgent,
  inProcessMemory,
  type MemoryFactory,
  on,
  suspend,
  suspensionsIn,
  textOf,
  tool,
  toolResults,
} from '../index.js';
import { type CallStoreDriver, inProcessCalls, suspendBelow } from '../journal/index.js';
import { leftAt } from '../journal/dying-driver.test-support.js';
import { journalIn } from '../journal/stored-calls.test-support.js';
import { inProcessSessions, keepSessions, sessions } from '../layers/sessions/index.js';
import { jsonSchema } from '../schema/index.js';
import { unpaired } from '../values/pairing.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { inputAndAnswer, summarisingMemory, windowMemory } from './index.js';
import { isUncertain } from './cancel-suspended.js';
import { withResults } from './suspend.js';

const waits = (name: string, from: 'client' | 'program' = 'client') =>
  tool({ name, description: 'Waits.', run: () => suspend(name, { from }) });

const agentOf = (...answers: readonly ScriptedAnswer[]) => {
  const model = scriptedModel(...answers);
  return { model, agent: createAgent({ model, tools: [waits('pick'), waits('pay', 'program')] }) };
};

const line = (): MemoryFactory => {
  const { load$, append$ } = inProcessMemory()('s');
  return () => ({ load$: () => load$(), append$: (messages) => append$(messages) });
};

/** A session that waits for two results. */
const waiting = async (memory: MemoryFactory, ...answers: readonly ScriptedAnswer[]) => {
  const { model, agent } = agentOf(
    [toolCall('pick', {}, 'a'), toolCall('pay', {}, 'b')],
    ...answers,
  );
  const session = sessions(agent, { memory }).open('s');
  await session.call('Book.', { callId: 'first' });
  const stored = () => lastValueFrom(session.memory.load$());
  return { model, session, stored };
};

const resultsIn = (messages: readonly { readonly role: string; readonly content: unknown }[]) =>
  messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])).flat();

const gone = 'Cancelled before it had a result: the user wrote something else instead.';
const wasCancelled = { code: 'invalidResume', status: 409, message: expect.stringContaining(gone) };

describe('T13: a message while tools wait for results', () => {
  it.each<[string, () => MemoryFactory]>([
    ['in process', inProcessMemory],
    ['with a window', () => windowMemory(inProcessMemory(), { turns: 1 })],
    ['with summaries', () => summarisingMemory(inProcessMemory(), { model: scriptedModel() })],
    ['of inputs and answers', () => inputAndAnswer(inProcessMemory())],
    ['that is a line', line],
  ])('cancels them, and the model reads so, in a memory %s', async (_name, memoryOf) => {
    const { model, session, stored } = await waiting(memoryOf(), [text('Noon.')], [text('Bye.')]);
    const reply = await session.call('What time is it?');
    expect(reply.text).toBe('Noon.');
    const { messages = [] } = model.requests[1] ?? {};
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
    expect(resultsIn(messages)).toMatchObject(
      ['a', 'b'].map((toolCallId) => ({ toolCallId, isError: true, content: [{ text: gone }] })),
    );
    expect(suspensionsIn(await stored())).toEqual([]);
    expect(unpaired(withResults(await stored()))).toBeUndefined();
    expect((await session.call('Bye.')).text).toBe('Bye.');
    expect(JSON.stringify(model.requests[2])).not.toContain('Suspended');
  });

  it('stores the results before the message, and refuses results that come later', async () => {
    const { session, stored } = await waiting(inProcessMemory(), [text('Noon.')]);
    const events = await record(session.stream$('What time is it?', { callId: 'next' }));
    const appended = events.find(({ type }) => type === 'messagesAppended');
    expect(appended).toMatchObject({
      messages: [{ id: 'first/1/results/cancelled', role: 'tool' }, { role: 'user' }, {}],
    });
    expect(events.filter(({ type }) => type === 'postActing')).toMatchObject([
      { toolCall: { name: 'pick' }, result: { isError: true } },
      { toolCall: { name: 'pay' }, result: { isError: true } },
    ]);
    const before = await stored();
    await expect(session.call(toolResults({ a: 1, b: 2 }))).rejects.toMatchObject(wasCancelled);
    await expect(session.call([toolResults({ b: 2 }), 'Hi'])).rejects.toMatchObject(wasCancelled);
    expect(await stored()).toEqual(before);
  });

  it('takes the results that it brings, and cancels the others', async () => {
    const { model, session, stored } = await waiting(inProcessMemory(), [text('Noon.')]);
    const input = [toolResults({ a: 'red' }, { from: 'client' }), 'What time is it?'];
    await session.call(input, { callId: 'next' });
    const ids = (await stored()).map(({ id }) => id);
    expect(ids.slice(-3)).toEqual(['next/input/0', 'next/input/1', 'next/1']);
    expect(resultsIn(model.requests[1]?.messages ?? [])).toMatchObject([
      { toolCallId: 'a', isError: false, content: [{ text: 'red' }] },
      { toolCallId: 'b', isError: true, content: [{ text: gone }] },
    ]);
  });

  it('lets no client bring what waits for the program, with a message either', async () => {
    const { session, stored } = await waiting(inProcessMemory());
    const before = await stored();
    for (const results of [{ b: 1 }, { c: 1 }]) {
      const input = [toolResults(results, { from: 'client' }), 'And?'] as const;
      await expect(session.call(input)).rejects.toMatchObject({ code: 'invalidResume' });
    }
    expect(await stored()).toEqual(before);
  });

  it('is refused if the session or the call has that option', async () => {
    const { agent } = agentOf([toolCall('pick', {}, 'a')], [text('Noon.')]);
    const session = sessions(agent, { onSuspended: 'refuse' }).open('s');
    await session.call('Book.');
    const refusal = { code: 'invalidResume', status: 409 };
    await expect(session.call('And?')).rejects.toMatchObject(refusal);
    const reply = await session.call('And?', { onSuspended: 'cancel' });
    expect(reply.text).toBe('Noon.');
    const other = await waiting(inProcessMemory());
    const refused = other.session.call('And?', { onSuspended: 'refuse' });
    await expect(refused).rejects.toMatchObject(refusal);
    // @ts-expect-error -- not a mode
    expect(() => session.call$('And?', { onSuspended: 'wait' })).toThrow("'cancel'");
  });

  it('cannot be passed on as if it had a result', async () => {
    const { agent } = agentOf([toolCall('pick', {}, 'a')], [text('Noon.')]);
    const hush = on('postActing', () => of());
    const session = sessions(agent).open('s');
    await session.call('Book.');
    expect((await session.with(hush).call('And?')).text).toBe('Noon.');
    await expect(session.call(toolResults({ a: 1 }))).rejects.toMatchObject({
      message: expect.stringContaining('was cancelled'),
    });
  });

  it('S10: stays cancelled if the call fails, as its message stays; discarded, both go', async () => {
    const broken = throwError(() => new Error('broken'));
    const kept = await waiting(inProcessMemory(), broken);
    await expect(kept.session.call('And?')).rejects.toThrow('broken');
    expect(suspensionsIn(await kept.stored())).toEqual([]);
    expect((await kept.stored()).at(-1)).toMatchObject({ role: 'user' });
    const discarded = await waiting(inProcessMemory(), broken);
    const call = discarded.session.call('And?', { onFailure: 'discard' });
    await expect(call).rejects.toThrow('broken');
    expect(suspensionsIn(await discarded.stored())).toHaveLength(2);
  });

  it('is one cancellation for two branches after the same tool call', async () => {
    const { session, stored } = await waiting(inProcessMemory(), [text('One.')], [text('Two.')]);
    await session.call('And?', { callId: 'one' });
    await session.call('Or?', { callId: 'two', after: 'first/1/results', replaces: 'one/input/0' });
    expect((await stored()).map(({ id }) => id)).toEqual([
      'first/input/0',
      'first/1',
      'first/1/results',
      'first/1/results/cancelled',
      'two/input/0',
      'two/1',
    ]);
    const siblings$ = session.memory.branches$?.('two/input/0') ?? NEVER;
    expect(await lastValueFrom(siblings$)).toEqual(['one/input/0', 'two/input/0']);
  });
});

describe('T13: a message while calls below a tool call wait', () => {
  const make = (driver = inProcessCalls()) => {
    const clerk = (name: string) =>
      agentTool(
        createAgent({
          name,
          model: scriptedModel([toolCall('pick'), toolCall('pay')]),
          tools: [waits('pick'), waits('pay')],
        }),
        { description: name },
      );
    const model = scriptedModel(
      [toolCall('clerk', { user_prompt: '?' }, 'k')],
      [text('Noon.')],
      [text('Bye.')],
    );
    const lead = createAgent({ model, tools: [clerk('clerk')] });
    const session = sessions(lead.with(journalIn(driver), suspendBelow)).open('s');
    return { model, session };
  };

  it.each([false, true])(
    'cancels the tool call as a whole, with a part of them: %s',
    async (part) => {
      const { model, session } = make();
      const { suspensions = [] } = await session.call('Sign.');
      const [first = '', second = ''] = suspensions.map(({ toolCall: { id } }) => id);
      const reply = await session.call(part ? [toolResults({ [first]: 1 }), 'And?'] : 'And?');
      expect(reply.text).toBe('Noon.');
      expect(resultsIn(model.requests[1]?.messages ?? [])).toMatchObject([
        { toolCallId: 'k', isError: true, content: [{ text: gone }] },
      ]);
      const late = toolResults({ [first]: 1, [second]: 2 });
      await expect(session.call(late)).rejects.toMatchObject(wasCancelled);
      expect((await session.call('Bye.')).text).toBe('Bye.');
    },
  );

  it('cancelSuspended() counts each result', async () => {
    const { session } = make();
    await session.call('Sign.');
    expect(await session.cancelSuspended()).toBe(2);
    expect(await session.cancelSuspended()).toBe(0);
  });
});

describe('T13: cancelSuspended()', () => {
  it('gives the tool calls a result with its reason, without a call', async () => {
    const { model, session, stored } = await waiting(inProcessMemory(), [text('Noon.')]);
    expect(await session.cancelSuspended('The user has left.')).toBe(2);
    expect(model.requests).toHaveLength(1);
    expect(resultsIn((await stored()).slice(-1))).toMatchObject([
      { toolCallId: 'a', isError: true, content: [{ text: 'The user has left.' }] },
      { toolCallId: 'b', isError: true, content: [{ text: 'The user has left.' }] },
    ]);
    expect(await session.cancelSuspended()).toBe(0);
    const events = await record(session.stream$('What time is it?'));
    expect(events.find(({ type }) => type === 'messagesAppended')).toMatchObject({
      messages: [{ role: 'tool', id: 'first/1/results/cancelled' }],
      after: 'first/1/results',
    });
    expect(textOf(model.requests[1]?.messages.at(-1) ?? { content: [] })).toBe('What time is it?');
  });

  it('needs nothing that waits, and text', async () => {
    const { agent } = agentOf();
    const session = sessions(agent).open('s');
    expect(await session.cancelSuspended()).toBe(0);
    expect(await lastValueFrom(session.memory.load$())).toEqual([]);
    // @ts-expect-error -- not a text
    await expect(session.cancelSuspended(7)).rejects.toMatchObject({ code: 'config' });
  });

  it('waits for the running call, and is no call that waits', async () => {
    const { agent } = agentOf([toolCall('pick')]);
    const session = sessions(agent).open('s');
    const calling = session.call('Book.');
    const cancelling = session.cancelSuspended();
    expect(session.queue.calls).toEqual([]);
    expect((await calling).reason).toBe('suspended');
    expect(await cancelling).toBe(1);
  });

  it('is saved with a kept session', async () => {
    const store = inProcessSessions();
    const first = await keepSessions(agentOf([toolCall('pick', {}, 'a')]).agent, store).open('s');
    expect([await first.cancelSuspended(), first.version]).toEqual([0, undefined]);
    await first.call('Book.');
    expect([await first.cancelSuspended(), first.version]).toEqual([1, 2]);
    const later = await keepSessions(agentOf([text('Noon.')]).agent, store).open('s');
    await expect(later.call(toolResults({ a: 1 }))).rejects.toMatchObject({
      message: expect.stringContaining('was cancelled'),
    });
    await first.close();
    await expect(first.cancelSuspended()).rejects.toMatchObject({ code: 'invalidState' });
  });
});

describe('S6: a journaled call whose message cancels what waits', () => {
  const sessionIn = (driver: CallStoreDriver) => {
    const { agent } = agentOf([text('Noon.')]);
    return sessions(agent.with(journalIn(driver)), { onSuspended: 'refuse' }).open('s');
  };

  it.each(['call', 'seat', 'open', '1'])('does so when it is resumed after %s', async (step) => {
    const before = await waiting(inProcessMemory());
    const state = await before.session.saveState();
    const driver = await leftAt(step, (on) => {
      const session = sessionIn(on);
      const call$ = session.call$('And?', { callId: 'c', onSuspended: 'cancel' });
      return concat(session.loadState$(state), call$);
    });
    const session = sessionIn(driver);
    await session.loadState(state);
    const resumed = journalIn(driver).resume(session, 'c');
    // Nothing records the options of a call before it has its place.
    if (step === 'call') {
      await expect(resumed).rejects.toMatchObject({ code: 'invalidResume' });
      return;
    }
    expect((await resumed).text).toBe('Noon.');
    const { messages } = await session.saveState();
    expect(messages.map(({ id }) => id)).toEqual([
      'first/input/0',
      'first/1',
      'first/1/results',
      'first/1/results/cancelled',
      'c/input/0',
      'c/1',
    ]);
  });
});

describe('a request is data', () => {
  const ask = tool({
    name: 'ask',
    description: 'Waits for an answer to the question of the model.',
    input: jsonSchema({ type: 'object' }),
    run: (input) => suspend(input, { from: 'program' }),
  });

  it.each([{ uncertain: true, tool: 'ask' }, { by: 'journal' }, { suspended: { by: 'journal' } }])(
    'that does not make a tool call one whose outcome is unknown: %j',
    async (input) => {
      const model = scriptedModel([toolCall('ask', input, 'a')], [text('Noon.')]);
      const session = sessions(createAgent({ model, tools: [ask] })).open('s');
      const { suspensions = [] } = await session.call('Ask.');
      expect(suspensions).toMatchObject([{ request: input }]);
      expect(suspensions.some(isUncertain)).toBe(false);
      await session.call('What time is it?');
      expect(resultsIn(model.requests[1]?.messages ?? [])).toMatchObject([
        { toolCallId: 'a', content: [{ text: gone }] },
      ]);
    },
  );

  it('and who continues the tool call is stored beside it', async () => {
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      run: () => suspend({ at: 1 }, { from: 'program', by: 'timer' }),
    });
    const keeper = inProcessSessions();
    const agent = createAgent({ model: scriptedModel([toolCall('wait', {}, 'a')]), tools: [wait] });
    const session = await keepSessions(agent, keeper).open('s');
    const { suspensions } = await session.call('Wait.');
    const kept = await (await keepSessions(agent, keeper).open('s')).saveState();
    expect(suspensions).toMatchObject([{ request: { at: 1 }, by: 'timer' }]);
    expect(suspensionsIn(kept.messages)).toEqual(suspensions);
  });
});
