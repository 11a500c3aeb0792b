import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map } from 'rxjs';
import { inProcessLongTermMemory, withLongTermMemory } from 'millrace/long-term-memory';
import {
  createAgent,
  guardOutput,
  type ModelRequest,
  output,
  selectTools,
  text as text$,
  textOf,
  tool,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { planner } from './index.js';
import { sessions } from 'millrace/sessions';

type Settings = NonNullable<Parameters<typeof planner>[1]>;

const look = tool({
  name: 'look',
  description: 'Looks something up.\nNot shown.',
  input: jsonSchema({ type: 'object', properties: { at: { type: 'string' } }, required: ['at'] }),
  run: ({ at }) => {
    if (at === 'nowhere') throw new Error('There is no such place.');
    return `Seen at ${at}.`;
  },
});
const says = (words: string): ScriptedAnswer => [text(words)];
const uses = (...all: readonly (readonly [name: string, input: object])[]): ScriptedAnswer =>
  says(JSON.stringify(all.map(([name, input]) => ({ name, arguments: input }))));

/** What each request ends with, in short: which prompt it is, or the last observation. */
const lastOf = ({ messages }: ModelRequest): string => textOf(messages.at(-1) ?? { content: [] });

const run = async (answers: readonly ScriptedAnswer[], settings: Settings = {}, defaults = {}) => {
  const model = scriptedModel(...answers);
  const agent = createAgent(planner({ name: 'p', model, tools: [look], ...defaults }, settings));
  const events = await record(agent.stream$('Where is it?', { callId: 'c' }));
  const last = events.at(-1);
  if (last?.type !== 'postCall') throw new Error('No reply.');
  model.verify();
  return { model, events, reply: last.reply };
};

/** The order of what happens, without chunks. */
const order = (events: Awaited<ReturnType<typeof record>>): readonly string[] =>
  events
    .filter(({ type }) => !type.endsWith('Chunk'))
    .map((event) =>
      'phase' in event
        ? `${event.type} ${event.phase}`
        : 'toolCall' in event
          ? `${event.type} ${event.toolCall.name}`
          : event.type,
    );

describe('the preset planner', () => {
  it('M5, G1: analyses, takes three rounds, reflects on each, and completes with an answer', async () => {
    const { model, events, reply } = await run([
      says('Ask two places.'),
      uses(['look', { at: 'a' }], ['look', { at: 'b' }]),
      says('Neither has it.'),
      uses(['look', { at: 'c' }]),
      says('c has it.'),
      uses(['complete_task', { answer: 'It is at c.' }]),
    ]);
    expect(textOf(reply)).toBe('It is at c.');
    expect(reply).toMatchObject({ reason: 'answer', iterations: 3 });
    expect(order(events)).toEqual([
      'preCall',
      'prePlanning analyseTask',
      'postPlanning analyseTask',
      'preReasoning',
      'postReasoning',
      ...['preActing look', 'postActing look', 'preActing look', 'postActing look'],
      'prePlanning reflect',
      'postPlanning reflect',
      'preReasoning',
      'postReasoning',
      ...['preActing look', 'postActing look'],
      'prePlanning reflect',
      'postPlanning reflect',
      'preReasoning',
      'postReasoning',
      'postCall',
    ]);
    const notes = model.requests.map((request) =>
      [...lastOf(request).matchAll(/^(?:Notes: )?(\[[A-Z][a-z A-Z]*\]\n.*)/gm)].map(
        ([, section]) => section,
      ),
    );
    const analysis = '[Task Analysis]\nAsk two places.';
    const first = [analysis, '[Reflection]\nNeither has it.'];
    const second = [analysis, '[Reflection]\nc has it.'];
    expect(notes).toEqual([[], [analysis], [analysis], first, first, second]);
    const analyse = model.requests[0];
    expect(analyse).toMatchObject({ maxTokens: 1_000 });
    expect(analyse && lastOf(analyse)).toMatch(/^Before you start.*- look: Looks something up\.$/s);
    expect(analyse?.system ?? '').not.toContain('JSON list');
    expect(model.requests[1]?.system).toContain('JSON list');
  });

  it('M5, G1: a tool that fails is reflected on, and another way is taken', async () => {
    const { model, events, reply } = await run([
      says('Look around.'),
      uses(['look', { at: 'nowhere' }], ['look', { at: 'a' }]),
      says('nowhere does not exist.'),
      uses(['complete_task', { answer: 'At a.' }]),
    ]);
    expect(reply.toolCalls.map(({ isError }) => isError)).toEqual([true, false]);
    const [, , reflected] = model.requests;
    expect(JSON.stringify(reflected?.messages)).toContain('There is no such place.');
    expect(events.filter(({ type }) => type === 'error')).toEqual([]);
  });

  it('M5, L3: five rounds and one more, then a closing request', async () => {
    const rounds = Array.from({ length: 6 }, (_, n) => uses(['look', { at: `${n}` }]));
    const { model, reply } = await run([...rounds, says('Not found.')], {
      analyse: false,
      reflect: false,
    });
    expect(textOf(reply)).toBe('Not found.');
    expect(reply).toMatchObject({ reason: 'maxIterations', iterations: 6 });
    expect(model.requests).toHaveLength(7);
    expect(Object.keys(reply.usageByPhase)).toEqual(['reasoning', 'closing']);
  });

  it('G1: a completion without an answer is answered by one more request', async () => {
    const { model, events, reply } = await run(
      [uses(['look', { at: 'a' }]), uses(['complete_task', { answer: '  ' }]), says('It is at a.')],
      { analyse: false, reflect: false },
    );
    expect(textOf(reply)).toBe('It is at a.');
    expect(reply).toMatchObject({ reason: 'answer', iterations: 2 });
    expect(order(events).slice(-3)).toEqual(['preSummary', 'postSummary', 'postCall']);
    const last = model.requests[2];
    expect(last && lastOf(last)).toMatch(/Write the final answer/);
  });

  it('G1: finalize writes the answer again, in the words of the model', async () => {
    const { reply } = await run(
      [uses(['complete_task', { answer: 'a, I think' }]), says('It is at a.')],
      { analyse: false, reflect: false, finalize: true },
    );
    expect(textOf(reply)).toBe('It is at a.');
  });

  it('G1: what each option costs, in requests of a task of two rounds', async () => {
    const looked = uses(['look', { at: 'a' }]);
    const done = uses(['complete_task', { answer: 'It is at a.' }]);
    const made = uses(['create_plan', { goal: 'Find it.', steps: ['Look at a.'] }]);
    const bare = { analyse: false, reflect: false } as const;
    const costs = async (settings: Settings, ...answers: readonly ScriptedAnswer[]) => {
      const { reply, model } = await run(answers, settings);
      const phases = Object.keys(reply.usageByPhase).join(' ');
      return `${model.requests.length}: ${phases}`;
    };
    expect([
      await costs(bare, looked, done),
      await costs({ ...bare, analyse: true }, says('Look.'), looked, done),
      await costs({ ...bare, reflect: 'always' }, looked, says('Seen.'), done),
      await costs({ ...bare, reflect: 'onError' }, looked, done),
      await costs({ ...bare, reflect: 2 }, looked, done),
      await costs({ ...bare, finalize: true }, looked, done, says('At a.')),
      await costs({ ...bare, plan: true }, made, looked, done),
      await costs({}, says('Look.'), looked, says('Seen.'), done),
    ]).toEqual([
      '2: reasoning',
      '3: analyseTask reasoning',
      '3: reasoning reflect',
      '2: reasoning',
      '2: reasoning',
      '3: reasoning synthesize',
      '3: reasoning',
      '4: analyseTask reasoning reflect',
    ]);
  });

  it('M5: five tools at the same time, by default', async () => {
    let running = 0;
    let most = 0;
    const slow = tool({
      name: 'slow',
      description: 'Takes a while.',
      run: async () => {
        running += 1;
        most = Math.max(most, running);
        await Promise.resolve();
        running -= 1;
        return '';
      },
    });
    const eight = Array.from({ length: 8 }, () => ['slow', {}] as const);
    const bare = { analyse: false, reflect: false } as const;
    const model = () => scriptedModel(uses(...eight), uses(['complete_task', { answer: 'x' }]));
    await createAgent(planner({ model: model(), tools: [slow] }, bare)).call('?');
    expect(most).toBe(5);
    most = 0;
    const defaults = { limits: { parallel: 2 } };
    await createAgent(planner({ model: model(), tools: [slow], ...defaults }, bare)).call('?');
    expect(most).toBe(2);
  });

  it('M5: works with native tools as well, if an answer needs no completion', async () => {
    const model = scriptedModel([toolCall('look', { at: 'a' })], [text('It is at a.')]);
    const settings = { calling: 'native', analyse: false, reflect: false } as const;
    const reply = await createAgent(planner({ model, tools: [look] }, settings)).call('?');
    expect(textOf(reply)).toBe('It is at a.');
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(['look', 'complete_task']);
  });

  it('M5: rewrites a late question, and is refused what it does not have', async () => {
    const done = (answer: string) => uses(['complete_task', { answer }]);
    const model = scriptedModel(done('Here.'), says('Where is the mill?'), done('There.'));
    const session = sessions(
      createAgent(planner({ model }, { analyse: false, reflect: false, rewriteAbove: 1 })),
    ).open('s');
    await session.call('Is there a mill?');
    const reply = await session.call('And where?');
    expect(reply.usageByPhase).toHaveProperty('rewriteQuestion');
    expect(model.requests[2]?.messages.map(textOf).at(-1)).toBe(
      '[Question]\nThe last question means: Where is the mill?',
    );
    expect(() => planner({ model }, { reflect: 0 })).toThrow(/planner\(\): 'reflect' must be/);
    expect(() => planner({ model }, { round: 1 } as never)).toThrow(/has no option 'round'/);
  });

  it('G1: each prompt can be replaced', async () => {
    const { model } = await run(
      [
        says('A'),
        uses(['create_plan', { goal: 'G', steps: ['S'] }]),
        says('R'),
        uses(['complete_task', {}]),
        says('Done.'),
      ],
      {
        plan: true,
        prompts: {
          analyseTask: ({ tools }) => `Think of ${tools.map(({ name }) => name).join(', ')}.`,
          reflect: 'Well?',
          synthesize: 'Say it.',
          plan: 'The plan:',
        },
      },
    );
    const [, analysed, reflected, noted, written] = model.requests.map(lastOf);
    expect(model.requests.map(lastOf)[0]).toBe(
      'Think of look, create_plan, update_step, revise_plan.',
    );
    const plan = '[Plan]\nThe plan:\nGoal: G\n1. [todo] S';
    expect(analysed).toMatch(/\[Task Analysis\]\nA$/);
    expect(reflected?.endsWith(`${plan}\n\nWell?`)).toBe(true);
    expect(noted?.endsWith(`${plan}\n\n[Reflection]\nR`)).toBe(true);
    expect(written).toMatch(/Say it\.$/);
  });

  it.each([
    [3, {}],
    [2, { top: 2 }],
  ])(
    'M5, G3: remembers its users, and lets the model pick the best %d memories',
    async (top, own) => {
      const memory = inProcessLongTermMemory();
      const scope = { userId: 'ada' };
      const facts = ['a', 'b', 'c', 'd', 'e'].map((it) => ({
        text: `The mill of ${it} has a wheel.`,
        kind: 'fact' as const,
      }));
      await lastValueFrom(memory.record$(scope, facts));
      const done = uses(['complete_task', { answer: 'Yes.' }]);
      const model = scriptedModel(says('[5, 1, 2]'), done);
      const longTermMemory = { memory, ...own };
      const agent = createAgent(
        planner({ model }, { analyse: false, reflect: false, longTermMemory }),
      );
      const reply = await agent.call('Which mill has a wheel?', { metadata: { userId: 'ada' } });
      expect(Object.keys(reply.usageByPhase)).toEqual(['rankMemories', 'reasoning']);
      const shown = JSON.stringify(model.requests[1]?.messages).match(/The mill of \w/g) ?? [];
      expect(new Set(shown).size).toBe(top);
    },
  );

  it('M5, G3: ranks memories outside of its dialect, which takes no answer for an action', async () => {
    for (const ranking of ['[4, 2]', '{"memories": [4, 2]}', 'Memories 4 and 2.']) {
      const memory = inProcessLongTermMemory();
      const facts = ['one', 'two', 'three', 'four'].map((it) => ({
        text: `mill ${it}`,
        kind: 'fact' as const,
      }));
      await lastValueFrom(memory.record$({ userId: 'ada' }, facts));
      const done = uses(['complete_task', { answer: 'By the sea.' }]);
      const model = scriptedModel(says(ranking), done);
      const settings = { memory, rank: true, top: 2, mode: 'both' } as const;
      const options = withLongTermMemory(
        planner({ model }, { analyse: false, plan: true }),
        settings,
      );
      const events = await record(
        createAgent(options).stream$('Where is the mill?', { metadata: { userId: 'ada' } }),
      );
      const last = events.at(-1);
      expect(last?.type === 'postCall' ? textOf(last.reply) : '').toBe('By the sea.');
      expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
      expect(JSON.stringify(model.requests[1]?.messages).match(/> mill \w+/g)).toEqual([
        '> mill one',
        '> mill three',
      ]);
    }
  });

  it('I9, H7: the answer streams as it comes, and passes the transforms of the call', async () => {
    const answer = '[{"name": "complete_task", "arguments": {"answer": "It is at a."}}]';
    const pieces = (answer.match(/.{1,5}/gs) ?? []).map((it) => text(it));
    const settings = { analyse: false, reflect: false } as const;
    const agent = createAgent(planner({ model: scriptedModel(pieces), tools: [look] }, settings));
    const said: string[] = [];
    await lastValueFrom(
      agent.stream$('?').pipe(
        text$(),
        map((it) => said.push(it)),
      ),
    );
    expect(said.join('')).toBe('It is at a.');
    expect(said.length).toBeGreaterThan(1);
    const stopped = createAgent(
      planner(
        { model: scriptedModel(pieces), tools: [look], use: [guardOutput(/at a/)] },
        settings,
      ),
    );
    expect(await stopped.call('?')).toMatchObject({ reason: 'stopped' });
  });

  it('R3: an answer has the form that it is to have, in either way of calling', async () => {
    const schema = {
      type: 'object',
      properties: { n: { type: 'number' } },
      required: ['n'],
    } as const;
    const settings = { analyse: false, reflect: false } as const;
    const model = scriptedModel(
      uses(['complete_task', { answer: 'one' }]),
      uses(['complete_task', { answer: { n: 1 } }]),
    );
    const steps = createAgent(
      planner({ model, use: [output(jsonSchema(schema))], tools: [look] }, settings),
    );
    expect((await steps.call('?')).output).toEqual({ n: 1 });
    const native = createAgent(
      planner(
        {
          model: scriptedModel([toolCall('complete_task', { answer: { n: 2 } })]),
          use: [output(jsonSchema(schema))],
        },
        { ...settings, calling: 'native' },
      ),
    );
    expect((await native.call('?')).output).toEqual({ n: 2 });
  });

  it('G1: finalize writes every answer, also one that no tool completes', async () => {
    const model = scriptedModel([text('Draft.')], [text('Final.')]);
    const settings = { calling: 'native', finalize: true, analyse: false } as const;
    expect(textOf(await createAgent(planner({ model }, settings)).call('?'))).toBe('Final.');
  });

  it('T11: completion is a tool of every call, and its name is taken', async () => {
    const settings = { calling: 'native', analyse: false } as const;
    const model = scriptedModel([text('Yes.')]);
    await createAgent(planner({ model }, settings)).call('?', { tools: [look] });
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(['look', 'complete_task']);
    const own = tool({ name: 'complete_task', description: 'Mine.', run: () => '' });
    const twice = createAgent(planner({ model: scriptedModel(), tools: [own] }, settings));
    await expect(twice.call('?')).rejects.toMatchObject({ code: 'config' });
  });

  it('T11: its own tools are there for any selection', async () => {
    const model = scriptedModel([text('Yes.')]);
    const own = { model, tools: [look], use: [selectTools({ maxTools: 1 })] };
    const settings = { calling: 'native', plan: true, analyse: false } as const;
    await createAgent(planner(own, settings)).call('?');
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual([
      'create_plan',
      'update_step',
      'revise_plan',
      'complete_task',
    ]);
    expect(() => planner({ model }, { prompts: { analyzeTask: 'x' } as never })).toThrow(
      /'prompts' has no option 'analyzeTask'/,
    );
    expect(() => planner({ model }, { calling: 'native', dialect: {} })).toThrow(
      /'dialect' requires/,
    );
  });
});
