import { describe, expect, it } from '@jest/globals';
import { concat, firstValueFrom, from, lastValueFrom, map, type Observable } from 'rxjs';
import { agentTool, asAgent, handoff } from '../layers/teams/index.js';
import {
  type Agent,
  type AgentOptions,
  type Approver,
  createAgent,
  inProcessMemory,
  requireApproval,
  sequential,
  textOf,
  type Tool,
  tool,
  toolGroup,
  toolOutput,
  toolResults,
  addTools,
  type Layer,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import {
  finish,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from '../testing/index.js';
import { leftAt, recordsOf, runUntil, stepsIn } from './dying-driver.test-support.js';
import { type CallStoreDriver, createCallStore, fork$, inProcessCalls, journal } from './index.js';
import { sessions } from '../layers/sessions/index.js';
import { journalIn } from './stored-calls.test-support.js';

const lastText = ({ messages }: { messages: readonly { role: string }[] }) =>
  messages.at(-1)?.role === 'tool';

/** Asks for each tool, one after the other, and then says what it got. */
const script = (...names: readonly string[]): readonly ScriptedAnswer[] =>
  Array.from({ length: 9 }, (): ScriptedAnswer => (request) => {
    const done = request.messages.filter(({ role }) => role === 'tool').length;
    const name = names[done];
    return name === undefined || (done > 0 && !lastText(request))
      ? [text('Done.')]
      : [toolCall(name)];
  });

const agentOf = (
  driver: CallStoreDriver,
  tools: readonly Tool[],
  {
    names = tools.map(({ name }) => name),
    ...options
  }: Partial<AgentOptions> & { names?: readonly string[] } = {},
) => {
  const model = scriptedModel(...script(...names));
  return {
    model,
    agent: createAgent({ model, tools, use: [journal(createCallStore(driver))], ...options }),
  };
};

const sending = ({
  approve = true,
  ...policy
}: Partial<Tool> & { readonly approve?: boolean | Approver } = {}) => {
  const keys: string[] = [];
  const send = requireApproval(
    tool({
      name: 'send',
      description: 'Sends.',
      run: (_, { idempotencyKey }) => (keys.push(idempotencyKey), 'Sent.'),
      ...policy,
    }),
    approve,
  );
  return { send, keys };
};

/** A store in which the tool had begun, and nothing is known of its end. */
const brokenOff = async (run$: (driver: CallStoreDriver) => Observable<unknown>) => {
  const store = await leftAt('1/0/intent', run$);
  expect(await stepsIn(store)).toEqual(['call', 'open', '1', '1/0/intent']);
  return store;
};

describe('a tool that had begun when its process ended', () => {
  const call$ =
    (tools: readonly Tool[], options?: Partial<AgentOptions>) => (driver: CallStoreDriver) =>
      agentOf(driver, tools, options).agent.call$('?', { callId: 'c' });

  it('S6: is run again with the same key if it is idempotent', async () => {
    const { send, keys } = sending({ idempotent: true });
    const store = await brokenOff(call$([send]));
    keys.length = 0;
    const events = await record(journalIn(store).resumeStream$(agentOf(store, [send]).agent, 'c'));
    expect(events).toContainEqual(expect.objectContaining({ type: 'uncertain', then: 'rerun' }));
    expect(new Set(keys)).toEqual(new Set([expect.stringMatching(/^c\/\w/u)]));
    expect(keys).toHaveLength(1);
  });

  it('S9: has a key of its own in a call that reuses an id, and keeps it in a call that is resumed', async () => {
    const { send, keys } = sending({ idempotent: true });
    const plain = (): Agent =>
      createAgent({ model: scriptedModel(...script('send')), tools: [send] });
    await plain().call('?', { callId: 'c' });
    await plain().call('?', { callId: 'c' });
    const store = await brokenOff(call$([send]));
    await journalIn(store).resume(agentOf(store, [send]).agent, 'c');
    const [begun, resumed] = keys.slice(-2);
    expect(keys).toHaveLength(5);
    expect(resumed).toBe(begun);
    const id = await firstValueFrom(fork$(createCallStore(store), 'c', { at: '1/0', callId: 'd' }));
    await journalIn(store).resume(agentOf(store, [send]).agent, id);
    for (const callId of ['c', 'd']) {
      await lastValueFrom(store.remove$(callId), { defaultValue: undefined });
    }
    await agentOf(store, [send]).agent.call('?', { callId: 'c' });
    await agentOf(store, [send]).agent.call('?', { callId: 'd' });
    expect(keys).toHaveLength(8);
    expect(new Set(keys).size).toBe(7);
  });

  it('S6: is not run again otherwise: the model gets a message, if no one can bring its result', async () => {
    const { send, keys } = sending();
    const store = await brokenOff(call$([send]));
    keys.length = 0;
    const { agent, model } = agentOf(store, [send]);
    const events = await record(journalIn(store).resumeStream$(agent, 'c'));
    expect(keys).toEqual([]);
    expect(events).toContainEqual(expect.objectContaining({ type: 'uncertain', then: 'report' }));
    const told = model.requests[0]?.messages.at(-1);
    expect(told?.content[0]).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('unknown whether this has run') }],
    });
  });

  it('S6, T13: in a session, the program brings its result', async () => {
    const { send, keys } = sending();
    const memory = inProcessMemory();
    const inSession$ = (driver: CallStoreDriver, kept = inProcessMemory()) =>
      sessions(agentOf(driver, [send]).agent, { memory: kept })
        .open('s')
        .call$('?', { callId: 'c' });
    const store = inProcessCalls();
    const records = await recordsOf((driver) => inSession$(driver), '1/0/intent');
    runUntil(store, records, (dying) => inSession$(dying, memory));
    keys.length = 0;
    const session = sessions(agentOf(store, [send]).agent, { memory }).open('s');
    const reply = await journalIn(store).resume(session, 'c');
    expect(reply).toMatchObject({
      reason: 'suspended',
      suspensions: [
        {
          toolCall: { name: 'send' },
          request: { uncertain: true, tool: 'send' },
          from: 'program',
          by: 'journal',
        },
      ],
    });
    const id = reply.suspensions?.[0]?.toolCall.id ?? '';
    const next = await session.call(toolResults({ [id]: 'It was sent.' }));
    expect([textOf(next), keys]).toEqual(['Done.', []]);
  });

  it('S6: runs again if the call has that option', async () => {
    const { send, keys } = sending();
    const store = await brokenOff(call$([send]));
    keys.length = 0;
    await journalIn(store).resume(agentOf(store, [send]).agent, 'c', { onUncertain: 'rerun' });
    expect(keys).toHaveLength(1);
  });

  it('T12: who has approved of it is not asked again, and who had not yet is', async () => {
    const asked: string[] = [];
    const { send } = sending({ approve: ({ toolCallId }) => (asked.push(toolCallId), true) });
    const store = await brokenOff(call$([send]));
    asked.length = 0;
    await journalIn(store).resume(agentOf(store, [send]).agent, 'c', { onUncertain: 'rerun' });
    expect(asked).toEqual([]);
    const earlier = await leftAt('1', call$([send]));
    asked.length = 0;
    await journalIn(earlier).resume(agentOf(earlier, [send]).agent, 'c');
    expect(asked).toHaveLength(1);
  });
});

describe('extras of tools', () => {
  it('T7: extras are lost, and that is reported', async () => {
    const give = tool({
      name: 'give',
      description: 'Gives.',
      run: () => toolOutput({ content: 'Given.', extras: { secret: () => 1 } }),
    });
    const { send } = sending();
    const run$ = (driver: CallStoreDriver) =>
      agentOf(driver, [give, send]).agent.call$('?', { callId: 'c' });
    const store = await leftAt('1/0', run$);
    const events = await record(
      journalIn(store).resumeStream$(agentOf(store, [give, send]).agent, 'c'),
    );
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'warning',
        message: expect.stringContaining('extras secret'),
      }),
    );
  });

  it('T10: groups are active again that a tool has activated', async () => {
    const { send, keys } = sending();
    const mail = toolGroup({ name: 'mail', description: 'Mail.', tools: [send] });
    const answers = (): readonly ScriptedAnswer[] => [
      [toolCall('manage_tools', { activate: ['mail'] })],
      [toolCall('send')],
      [text('Done.')],
    ];
    const made = (driver: CallStoreDriver, from = 0) =>
      createAgent({
        model: scriptedModel(...answers().slice(from)),
        tools: [mail],
        use: [journal(createCallStore(driver))],
      });
    const run$ = (driver: CallStoreDriver) => made(driver).call$('?', { callId: 'c' });
    const store = await leftAt('1/0', run$);
    keys.length = 0;
    await journalIn(store).resume(made(store, 1), 'c');
    expect(keys).toHaveLength(1);
  });

  it('T10: groups of a session and of a layer are active again, and their change is reported once', async () => {
    const { send, keys } = sending();
    const [mail, chat] = [{ ...send, name: 'mail' }, send].map((sent, index) =>
      toolGroup({ name: `group${index}`, description: 'Sends.', tools: [sent] }),
    );
    if (mail === undefined || chat === undefined) throw new Error('No groups.');
    const switching = tool({
      name: 'switch',
      description: 'Switches.',
      run: (_, { toolkit }) => toolkit.activate('group0', 'group1'),
    });
    const answers: readonly ScriptedAnswer[] = [
      [toolCall('switch')],
      [toolCall('send'), toolCall('mail')],
      [text('Done.')],
    ];
    const adds: Layer = { ...addTools(chat), priority: 71 };
    const made = (driver: CallStoreDriver, from = 0) =>
      sessions(
        createAgent({
          model: scriptedModel(...answers.slice(from)),
          tools: [switching, mail],
          use: [adds, journal(createCallStore(driver))],
        }),
      ).open('s');
    const store = await leftAt('1/0', (driver) => made(driver).call$('?', { callId: 'c' }));
    keys.length = 0;
    const events = await record(journalIn(store).resumeStream$(made(store, 1), 'c'));
    expect(keys).toHaveLength(2);
    expect(events.filter(({ type }) => type === 'stateChanged')).toEqual([]);
  });
});

describe('calls below a call that is resumed', () => {
  it('S6, G4: an agent that a tool asks continues at the same place, wherever the process ended', async () => {
    const { send, keys } = sending({ idempotent: true });
    const made = (driver: CallStoreDriver) => {
      const inner = createAgent({
        name: 'inner',
        model: scriptedModel(...script('send')),
        tools: [send],
      });
      const ask = agentTool(inner, {
        description: 'Asks.',
        input: jsonSchema({ type: 'object', properties: {} }),
      });
      return agentOf(driver, [ask]).agent;
    };
    const run$ = (driver: CallStoreDriver) => made(driver).call$('?', { callId: 'c' });
    const records = await recordsOf(run$);
    for (let cut = 3; cut < records; cut += 1) {
      keys.length = 0;
      const store = inProcessCalls();
      runUntil(store, cut, run$);
      if (!(await stepsIn(store)).includes('call')) continue;
      const events = await record(journalIn(store).resumeStream$(made(store), 'c'));
      expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
      expect(new Set(keys).size).toBe(1);
      const steps = await stepsIn(store);
      expect(new Set(steps).size).toBe(steps.length);
    }
  });

  it('S6: an agent made of steps, and a handoff, continue with the step that was under way', async () => {
    const asked: string[] = [];
    const says = (name: string, answer: string) =>
      createAgent({
        name,
        model: scriptedModel(
          ...Array.from(
            { length: 4 },
            (): ScriptedAnswer => () => (asked.push(name), [text(answer)]),
          ),
        ),
      });
    const made = (driver: CallStoreDriver) =>
      asAgent(sequential(says('one', 'First.'), says('two', 'Second.')), {
        name: 'both',
        use: [journal(createCallStore(driver))],
      });
    const run$ = (driver: CallStoreDriver) => made(driver).call$('?', { callId: 'c' });
    const records = await recordsOf(run$);
    for (let cut = 3; cut < records; cut += 1) {
      const store = inProcessCalls();
      asked.length = 0;
      runUntil(store, cut, run$);
      if (!(await stepsIn(store)).includes('call')) continue;
      expect(textOf(await journalIn(store).resume(made(store), 'c'))).toBe('Second.');
      expect(asked.length).toBeLessThanOrEqual(3);
    }
  });

  it('S6: ids of steps do not collide, for any calls below and any ids of the model', async () => {
    const { send } = sending();
    const twice = (name: string) =>
      createAgent({
        name,
        model: scriptedModel(
          [toolCall('send')],
          [toolCall('send'), toolCall('send')],
          [text(name)],
        ),
        tools: [send],
      });
    const both = asAgent(sequential(twice('a'), twice('b')), {
      use: [journal(createCallStore(inProcessCalls()))],
    });
    expect(textOf(await both.call('?', { callId: 'c' }))).toBe('b');
    const next: ScriptedAnswer = ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? [text('Done.')]
        : ['1', '1/0', '\ud800', 'open'].map((id) => toolCall('a', { user_prompt: '?' }, id));
    const store = inProcessCalls();
    const above = createAgent({
      model: scriptedModel(next, next),
      tools: [
        agentTool(
          createAgent({
            name: 'a',
            model: { name: 'm', stream$: () => from([text('x'), finish()]) },
          }),
          { description: 'A.' },
        ),
      ],
      use: [journal(createCallStore(store))],
    });
    expect(textOf(await above.call('?', { callId: 'c' }))).toBe('Done.');
    const steps = await stepsIn(store);
    expect(new Set(steps).size).toBe(steps.length);
    expect(textOf(await journalIn(store).resume(above, 'c'))).toBe('Done.');
  });

  it('S6: a handoff shows the next one what was said before the process ended', async () => {
    const made = (driver: CallStoreDriver) => {
      const first = createAgent({
        name: 'first',
        model: scriptedModel(
          [text('One moment.'), toolCall('transfer_to_second')],
          [text('Gone.')],
        ),
      });
      const model = scriptedModel([text('Here I am.')], [text('Here I am.')]);
      const second = createAgent({ name: 'second', model });
      const agent = handoff({
        agents: [
          { agent: first, description: 'First.' },
          { agent: second, description: 'Second.' },
        ],
        use: [journal(createCallStore(driver))],
      });
      return { agent, model };
    };
    const run$ = (driver: CallStoreDriver) => made(driver).agent.call$('?', { callId: 'c' });
    const whole = made(inProcessCalls());
    await whole.agent.call('?', { callId: 'c' });
    const records = await recordsOf(run$);
    for (let cut = 3; cut < records - 3; cut += 1) {
      const store = inProcessCalls();
      runUntil(store, cut, run$);
      if (!(await stepsIn(store)).includes('call')) continue;
      const { agent, model } = made(store);
      expect(textOf(await journalIn(store).resume(agent, 'c'))).toBe('Here I am.');
      const [request] = model.requests;
      if (request !== undefined) {
        expect(request.messages.map(textOf)).toEqual(whole.model.requests[0]?.messages.map(textOf));
      }
    }
  });

  it('S6: reports when two calls of a tool come in another order than before', async () => {
    const both = (driver: CallStoreDriver, ...names: readonly string[]) => {
      const agents = names.map((name) =>
        createAgent({ name, model: scriptedModel([text(`I am ${name}.`)]) }),
      );
      return createAgent({
        model: scriptedModel(...script('both')),
        tools: [
          tool({
            name: 'both',
            description: 'Asks both, whichever is the quicker one.',
            idempotent: true,
            run: (_, parent) =>
              concat(...agents.map((agent) => agent.call$('?', { parent }).pipe(map(textOf)))),
          }),
        ],
        use: [journal(createCallStore(driver))],
      });
    };
    const store = inProcessCalls();
    const run$ = (driver: CallStoreDriver) => both(driver, 'a', 'b').call$('?', { callId: 'c' });
    runUntil(store, (await recordsOf(run$, '1/0')) - 2, run$);
    await expect(journalIn(store).resume(both(store, 'b', 'a'), 'c')).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining("was started by the agent 'a', but 'b' makes it now"),
    });
    expect((await journalIn(store).resume(both(store, 'a', 'b'), 'c')).reason).toBe('answer');
  });
});
