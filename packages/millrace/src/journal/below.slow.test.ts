import { describe, expect, it } from '@jest/globals';
import { concatMap, lastValueFrom, map, of, tap } from 'rxjs';
import { agentTool, asAgent, handoff } from '../layers/teams/index.js';
import {
  type Agent,
  createAgent,
  inProcessMemory,
  type MemoryFactory,
  on,
  parallel,
  sequential,
  suspend,
  textOf,
  tool,
  toolResults,
} from '../index.js';
import { sessions } from '../layers/sessions/index.js';
import { type ScriptedAnswer, scriptedModel, record, text, toolCall } from '../testing/index.js';
import { noUsage } from '../values/usage.js';
import { runUntil } from './dying-driver.test-support.js';
import { journalIn } from './stored-calls.test-support.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
  suspendBelow,
} from './index.js';

/** Calls one tool after the other, and then says what they returned. */
const using =
  (...names: readonly string[]): ScriptedAnswer =>
  ({ messages }) => {
    const returned = messages.flatMap(({ role, content }) =>
      role === 'tool'
        ? [textOf({ content: content.flatMap((it) => ('isError' in it ? it.content : [])) })]
        : [],
    );
    const name = names[returned.length];
    const usage = { type: 'usage', usage: { ...noUsage, outputTokens: 1 } } as const;
    if (name !== undefined)
      return [toolCall(name, { user_prompt: String(returned.length) }), usage];
    return [text(returned.join(', ') || 'Fine.'), usage];
  };

interface Process {
  readonly driver: CallStoreDriver;
  readonly memory: MemoryFactory;
  /** What its tools have done, in any process. */
  readonly effects: string[];
}

const begin = (): Process => ({
  driver: inProcessCalls(),
  memory: inProcessMemory(),
  effects: [],
});

const named = (
  name: string,
  names: readonly string[],
  tools: Parameters<typeof createAgent>[0]['tools'],
): Agent => {
  const answer = using(...names);
  return createAgent({
    name,
    tools: tools ?? [],
    model: scriptedModel(...Array.from({ length: 9 }, () => answer)),
  });
};

/** An agent that does something before and after it asks for a signature. */
const clerk = ({ effects }: Process, name = 'clerk', ...more: readonly string[]): Agent => {
  const note = tool({
    name: 'note',
    description: 'Notes.',
    run: () => `noted ${effects.push(`note of ${name}`)}`,
  });
  const sign = tool({
    name: 'sign',
    description: 'Has a person sign.',
    run: () => suspend({ by: name }),
  });
  return named(name, ['note', 'sign', ...more, 'note'], [note, sign]);
};

const as = (agent: Agent) => agentTool(agent, { description: agent.name });

/** The session of an agent in a process of its own. */
const sessionOf = ({ driver, memory }: Process, agent: Agent) =>
  sessions(agent.with(journal(createCallStore(driver)), suspendBelow), { memory }).open('s');

describe('T13: a suspension below the top', () => {
  it('suspends the root call, and continues at the same place, in another process', async () => {
    const process = begin();
    const make = () =>
      named('lead', ['boss'], [as(named('boss', ['clerk'], [as(clerk(process))]))]);
    const reply = await sessionOf(process, make()).call('Sign it.');
    expect(reply).toMatchObject({
      reason: 'suspended',
      suspensions: [{ request: { by: 'clerk' } }],
    });
    const [suspension] = reply.suspensions ?? [];
    const id = suspension?.toolCall.id ?? '';
    expect(id.split('/')).toHaveLength(3);
    expect(process.effects).toEqual(['note of clerk']);

    const events = await record(
      sessionOf(process, make()).stream$(toolResults({ [id]: 'signed' })),
    );
    expect(process.effects).toEqual(['note of clerk', 'note of clerk']);
    expect(events.at(-1)).toMatchObject({
      type: 'postCall',
      reply: { reason: 'answer', text: 'noted 1, signed, noted 2' },
    });
  });

  it('continues agents of steps: a team within a flow within a session', async () => {
    const process = begin();
    const make = () =>
      asAgent(
        sequential(
          named('scribe', [], []),
          asAgent(handoff({ agents: [{ agent: clerk(process), description: 'Signs.' }] }), {
            name: 'team',
          }),
          named('reader', [], []),
        ),
        { name: 'flow' },
      );
    const reply = await sessionOf(process, make()).call('Sign it.');
    expect(reply).toMatchObject({
      reason: 'suspended',
      suspensions: [{ request: { by: 'clerk' } }],
    });
    const ids = reply.suspensions?.map(({ toolCall }) => toolCall.id) ?? [];
    const later = sessionOf(process, make());
    const end = await later.call(toolResults({ [ids[0] ?? '']: 'signed' }));
    expect(end.reason).toBe('answer');
    expect(process.effects).toEqual(['note of clerk', 'note of clerk']);
    const roles = (await lastValueFrom(later.memory.load$())).map(({ role }) => role);
    // The late result is put in its place when it is read.
    expect(roles).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
    expect(await later.call('And now?')).toMatchObject({ reason: 'suspended' });
  });

  it('waits for all branches of a step, and takes their results at the same time', async () => {
    const process = begin();
    const make = () =>
      asAgent(parallel(clerk(process, 'a'), named('b', [], []), clerk(process, 'c')), {
        name: 'flow',
      });
    const { suspensions = [] } = await sessionOf(process, make()).call('Sign it.');
    expect(suspensions.map(({ request }) => request)).toEqual([{ by: 'a' }, { by: 'c' }]);
    const results = Object.fromEntries(
      suspensions.map(({ toolCall: { id }, request }) => [id, request]),
    );
    expect(Object.keys(results)).toHaveLength(2);
    await expect(
      sessionOf(process, make()).call(
        toolResults({ [suspensions[0]?.toolCall.id ?? '']: 'signed' }),
      ),
    ).rejects.toMatchObject({ code: 'invalidResume' });
    const end = await sessionOf(process, make()).call(toolResults(results));
    expect(end.text).toContain('{"by":"a"}');
    expect(end.text).toContain('{"by":"c"}');
    expect(process.effects).toHaveLength(4);
  });

  it('continues only the tools whose calls have a result', async () => {
    const process = begin();
    const waits = (from: 'client' | 'program') =>
      tool({ name: 'wait', description: 'Waits.', run: () => suspend(null, { from }) });
    const make = () =>
      createAgent({
        name: 'lead',
        tools: [
          as(named('ours', ['wait'], [waits('client')])),
          as(named('theirs', ['wait'], [waits('program')])),
        ],
        model: scriptedModel([
          toolCall('ours', { user_prompt: 'x' }, 'o'),
          toolCall('theirs', { user_prompt: 'x' }, 't'),
        ]),
      });
    const { suspensions = [] } = await sessionOf(process, make()).call('Sign it.');
    const [ours, theirs] = suspensions;
    const results = toolResults({ [ours?.toolCall.id ?? '']: 'yes' }, { from: 'client' });
    const events = await record(sessionOf(process, make()).stream$(results));
    expect(events.filter(({ agent }) => agent.includes('theirs'))).toEqual([]);
    expect(events.at(-1)).toMatchObject({ reply: { suspensions: [theirs] } });
  });

  it('takes the results for clients and for the program one after the other, and runs nothing twice', async () => {
    for (const first of ['client', 'program'] as const) {
      const process = begin();
      const waits = (name: string, from: 'client' | 'program') =>
        tool({
          name,
          description: 'Waits.',
          // It would run again if its own wait were not kept.
          run: () => {
            process.effects.push(name);
            return suspend({ by: name }, { from });
          },
        });
      const both: ScriptedAnswer = ({ messages }) =>
        messages.some(({ role }) => role === 'tool')
          ? [text('Done.')]
          : [toolCall('theirs', {}, 't'), toolCall('ours', {}, 'o')];
      const make = () =>
        named(
          'lead',
          ['boss'],
          [
            as(
              createAgent({
                name: 'boss',
                tools: [waits('theirs', 'program'), waits('ours', 'client')],
                model: scriptedModel(...Array.from({ length: 3 }, () => both)),
              }),
            ),
          ],
        );
      const { suspensions = [] } = await sessionOf(process, make()).call('Sign it.');
      const ids = (from: string) =>
        suspensions.filter((it) => it.from === from).map(({ toolCall }) => toolCall.id);
      const results = (from: string) => Object.fromEntries(ids(from).map((id) => [id, 'yes']));
      const second = first === 'client' ? 'program' : 'client';
      const part = await sessionOf(process, make()).call(
        toolResults(results(first), { from: first }),
      );
      expect(part.suspensions?.map(({ toolCall, request }) => [toolCall.id, request])).toEqual(
        suspensions
          .filter((it) => it.from === second)
          .map(({ toolCall, request }) => [toolCall.id, request]),
      );
      const end = await sessionOf(process, make()).call(
        toolResults(results(second), { from: second }),
      );
      expect(end.reason).toBe('answer');
      expect(process.effects).toEqual(['theirs', 'ours']);
    }
  });

  it('suspends again, as often as it takes', async () => {
    const process = begin();
    const make = () =>
      named('lead', ['clerk'], [as(clerk(process, 'clerk', 'sign', 'note', 'sign'))]);
    const session = () => sessionOf(process, make());
    let reply = await session().call('Sign it.');
    for (const signature of ['one', 'two', 'three']) {
      expect(reply.reason).toBe('suspended');
      const id = reply.suspensions?.[0]?.toolCall.id ?? '';
      reply = await session().call(toolResults({ [id]: signature }));
    }
    expect(reply.text).toBe('noted 1, one, two, noted 2, three, noted 3');
    expect(process.effects).toHaveLength(3);
  });

  it('counts the cost of each request once', async () => {
    const process = begin();
    const make = () => named('lead', ['clerk'], [as(clerk(process))]);
    const first = await sessionOf(process, make()).call('Sign it.');
    const id = first.suspensions?.[0]?.toolCall.id ?? '';
    const second = await sessionOf(process, make()).call(toolResults({ [id]: 'signed' }));
    // The lead and the clerk ask twice each, before and after.
    expect([first, second].map(({ usage }) => usage.outputTokens)).toEqual([3, 3]);
  });

  it('runs the interceptors of the sub-agent on the late result', async () => {
    const process = begin();
    const quiet = on(
      'postActing',
      map((event) =>
        event.toolCall.name === 'sign'
          ? {
              ...event,
              result: { ...event.result, content: [{ type: 'text' as const, text: '***' }] },
            }
          : event,
      ),
    );
    const make = () => named('lead', ['clerk'], [as(clerk(process).with(quiet))]);
    const first = await sessionOf(process, make()).call('Sign it.');
    const id = first.suspensions?.[0]?.toolCall.id ?? '';
    const second = await sessionOf(process, make()).call(toolResults({ [id]: 'signed' }));
    expect(second.text).toBe('noted 1, ***, noted 2');
  });

  it('runs tools of your own again, whose calls wait', async () => {
    const process = begin();
    let runs = 0;
    const ask = () =>
      tool({
        name: 'ask',
        description: 'Asks two clerks.',
        callsAgents: true,
        run: (_, parent) => {
          runs += 1;
          return of('a', 'b').pipe(
            concatMap((name) => clerk(process, name).call$('Sign it.', { parent })),
            map((reply) => `${reply.name ?? ''}: ${reply.text}`),
          );
        },
      });
    const make = () => named('lead', ['boss'], [as(named('boss', ['ask'], [ask()]))]);
    const first = await sessionOf(process, make()).call('Sign it.');
    expect(first.suspensions).toMatchObject([{ request: { by: 'a' } }, { request: { by: 'b' } }]);
    const ids = first.suspensions?.map(({ toolCall: { id } }) => [id, `signed ${id}`]) ?? [];
    expect(ids.map(([id]) => id)).toEqual([
      'call_1_0/call_1_0/call_2_0',
      'call_1_0/call_1_0+2/call_2_0',
    ]);
    const reply = await sessionOf(process, make()).call(toolResults(Object.fromEntries(ids)));
    expect(reply.text).toMatch(
      /^a: noted 1, signed \S+_1_0\/call_2_0, noted 3b: noted 2, signed \S+\+2\/call_2_0, noted 4$/,
    );
    expect(runs).toBe(2);
  });

  it('S1: interrupts a call that continues', async () => {
    const process = begin();
    const make = () => named('lead', ['clerk'], [as(clerk(process))]);
    const first = await sessionOf(process, make()).call('Sign it.');
    const id = first.suspensions?.[0]?.toolCall.id ?? '';
    const session = sessionOf(process, make());
    const events = await record(
      session.stream$(toolResults({ [id]: 'signed' })).pipe(
        tap(({ type, agent }) => {
          if (type === 'postActing' && agent.length === 2) session.interrupt('Enough.');
        }),
      ),
    );
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'interrupted', text: 'Enough.' } });
    expect(process.effects).toHaveLength(1);
    expect(await session.call('And now?')).toMatchObject({ reason: 'answer' });
  });

  it('S6: resumes a call that continues, wherever it died', async () => {
    const make = (process: Process) => named('lead', ['clerk'], [as(clerk(process))]);
    const suspended = async () => {
      const process = begin();
      const { suspensions } = await sessionOf(process, make(process)).call('Sign it.');
      const results = toolResults({ [suspensions?.[0]?.toolCall.id ?? '']: 'signed' });
      const run = (driver: CallStoreDriver) =>
        sessionOf({ ...process, driver }, make(process)).call$(results, { callId: 'c' });
      return { process, run };
    };
    const whole = await suspended();
    await lastValueFrom(whole.run(whole.process.driver));
    const [records] = [await lastValueFrom(whole.process.driver.read$('c'))];
    for (let count = 1; count < records.length; count += 1) {
      const { process, run } = await suspended();
      runUntil(process.driver, count, run);
      const resumed = sessions(make(process).with(journalIn(process.driver), suspendBelow), {
        memory: process.memory,
      });
      const reply = await journalIn(process.driver).resume(resumed.open('s'), 'c');
      // The note may have been made when it died.
      expect(reply.text).toMatch(/^noted 1, signed, (?:noted 2$|It is unknown)/);
      expect(process.effects.length).toBeLessThanOrEqual(2);
    }
  });

  it('is reported to the model without a journal, and in a sub-agent with a session of its own', async () => {
    const process = begin();
    const plain = sessions(named('lead', ['clerk'], [as(clerk(process))]), {
      memory: process.memory,
    }).open('plain');
    expect(await plain.call('Sign it.')).toMatchObject({
      reason: 'answer',
      text: expect.stringContaining('waits for an external result'),
    });
    const own = agentTool(clerk(process), { description: 'clerk', session: 'own' });
    expect(
      await sessionOf(process, named('lead', ['clerk'], [own])).call('Sign it.'),
    ).toMatchObject({
      reason: 'answer',
      text: expect.stringContaining('waits for an external result'),
    });
  });

  it('takes no result if its agent is now made of steps, or no longer is', async () => {
    const process = begin();
    const agents = [
      () => named('root', ['clerk'], [as(clerk(process))]),
      () => asAgent(sequential(clerk(process)), { name: 'root' }),
      () => asAgent(parallel(named('x', [], []), clerk(process)), { name: 'root' }),
    ];
    for (const before of agents) {
      for (const after of agents.filter((it) => it !== before)) {
        const own = { ...process, memory: inProcessMemory() };
        const first = await sessionOf(own, before()).call('Sign it.');
        const results = toolResults({ [first.suspensions?.[0]?.toolCall.id ?? '']: 'signed' });
        const done = process.effects.length;
        await expect(sessionOf(own, after()).call(results)).rejects.toMatchObject({
          code: expect.stringMatching(/invalidResume|invalidState/u),
        });
        expect(process.effects).toHaveLength(done);
        expect((await sessionOf(own, before()).call(results)).reason).toBe('answer');
      }
    }
  });

  it('needs the journal to continue, and the ids of what waits', async () => {
    const process = begin();
    const make = () => named('lead', ['clerk'], [as(clerk(process))]);
    const first = await sessionOf(process, make()).call('Sign it.');
    const id = first.suspensions?.[0]?.toolCall.id ?? '';
    const without = sessions(make(), { memory: process.memory }).open('s');
    await expect(without.call(toolResults({ [id]: 'signed' }))).rejects.toThrow('journal');
    const plain = sessions(make().with(journalIn(process.driver)), { memory: process.memory });
    await expect(plain.open('s').call(toolResults({ [id]: 'signed' }))).rejects.toThrow(
      'suspendBelow',
    );
    const session = sessionOf(process, make());
    await expect(session.call('And?', { onSuspended: 'refuse' })).rejects.toThrow(
      `toolResults({ '${id}': result })`,
    );
    await expect(session.call(toolResults({ [id]: 1, [`${id}2`]: 2 }))).rejects.toThrow(id);
    expect(process.effects).toHaveLength(1);
  });
});
