import { describe, expect, it } from '@jest/globals';
import { inProcessMemory, type MemoryFactory, suspend, tool, toolResults } from 'millrace';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
  suspendBelow,
} from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { flowAgent } from './flow-agent.js';

interface Process {
  readonly driver: CallStoreDriver;
  readonly memory: MemoryFactory;
  readonly effects: string[];
}

const begin = (...downstream: readonly string[]) => ({
  component_name: 'begin',
  params: {},
  downstream,
});
const component = (component_name: string, params: object, ...upstream: readonly string[]) => ({
  component_name,
  params,
  ...(upstream.length > 0 && { upstream }),
});

/** Something that was paid before, a person who is asked, and something that is paid after that. */
const flow = (human: object, more: object = {}) => ({
  begin: begin('before', 'wait'),
  before: component('tool', { tool: 'before' }),
  wait: component('code', { function: 'slow' }),
  ask: component('human', { message: 'May I?' }, 'wait'),
  after: component('tool', { tool: 'after' }, 'ask'),
  say: component('message', { content: '{{ask@output}}' }, 'after', 'before'),
  ...more,
  ...human,
});

const inItems = (components: object) => ({
  start: begin('i'),
  i: component('iterate', { items: '["a", "b"]', components }),
  end: component('message', { content: '{{i@output}}' }, 'i'),
});

const agentOf = ({ effects }: Process, components: object) => {
  const paying = (name: string) =>
    tool({ name, description: 'Pays.', run: () => `paid ${effects.push(name)}` });
  return flowAgent(
    { version: 1, name: 'f', components },
    {
      tools: [paying('before'), paying('after'), sign],
      models: { m: scriptedModel(...Array.from({ length: 9 }, () => paysAndAsks)) },
      code: { slow: () => new Promise((resolve) => setTimeout(resolve, 2, 'slow')) },
    },
  );
};

const sign = tool({
  name: 'sign',
  description: 'Asks.',
  run: () => suspend(null, { from: 'program' }),
});

/** Pays, and then asks. */
const paysAndAsks: ScriptedAnswer = ({ messages, tools = [] }) => {
  const returned = messages.filter(({ role }) => role === 'tool').length;
  const name = tools.some((it) => it.name === 'sign') ? ['before', 'sign'][returned] : undefined;
  return name === undefined ? [text('Yes.')] : [toolCall(name)];
};

const sessionOf = (process: Process, components: object) =>
  sessions(
    agentOf(process, components).with(journal(createCallStore(process.driver)), suspendBelow),
    {
      memory: process.memory,
    },
  ).open('s');

const renamed = (components: object): object =>
  JSON.parse(
    JSON.stringify(components)
      .replaceAll('"ask":', '"question":')
      .replaceAll('"ask"', '"question"')
      .replaceAll('{{ask@', '{{question@'),
  ) as object;

const plain = flow({});
const two = flow({
  also: component('human', { message: 'And I?' }),
  begin: begin('before', 'wait', 'also'),
  last: component('tool', { tool: 'after' }, 'also'),
});
const items = inItems(flow({}));

const prompts = [{ role: 'user', content: 'Pay, and ask.' }];
const agents = flow({
  ask: component('agent', { llm_id: 'm', prompts, tools: ['before', 'sign'] }, 'wait'),
});

const changes: readonly (readonly [string, object, object])[] = [
  ['a component is renamed', plain, renamed(plain)],
  ['an agent is renamed that has paid before it asked', agents, renamed(agents)],
  ['a component in an iteration is renamed', items, renamed(items)],
  [
    'the person is no longer asked',
    plain,
    flow({ ask: component('message', { content: 'Yes.' }, 'wait') }),
  ],
  [
    'a model decides',
    plain,
    flow({
      ask: component(
        'agent',
        { llm_id: 'm', prompts: [{ role: 'user', content: 'May I?' }], tools: ['after'] },
        'wait',
      ),
    }),
  ],
  ['a tool takes its place', plain, flow({ ask: component('tool', { tool: 'after' }, 'wait') })],
  [
    'the list of an iteration is shorter',
    items,
    {
      ...items,
      i: component('iterate', { items: '["a"]', components: flow({}) }),
    },
  ],
];

describe('T13, G6: a decision that no component takes', () => {
  it.each(changes)('%s', async (what, before, after) => {
    const process: Process = {
      ...{ driver: inProcessCalls(), memory: inProcessMemory(), effects: [] },
    };
    const { suspensions = [] } = await sessionOf(process, before).call('Go.');
    const results = toolResults(
      Object.fromEntries(suspensions.map(({ toolCall }) => [toolCall.id, 'No.'])),
    );
    const done = [...process.effects];
    await expect(sessionOf(process, after).call(results)).rejects.toMatchObject({
      code: expect.stringMatching(/invalidResume|invalidState/u),
    });
    // The first item has its decision.
    if (!what.includes('shorter')) expect(process.effects).toEqual(done);
  });

  it.each([
    ['as it was', items, 'Yes.\n\nYes.'],
    [
      'with something more before and after',
      flow({ more: component('tool', { tool: 'after' }, 'wait') }, {}),
      'Yes.',
    ],
  ])('is taken by a flow %s', async (_, after, said) => {
    const process: Process = {
      ...{ driver: inProcessCalls(), memory: inProcessMemory(), effects: [] },
    };
    const before = after === items ? items : plain;
    const { suspensions = [] } = await sessionOf(process, before).call('Go.');
    const results = toolResults(
      Object.fromEntries(suspensions.map(({ toolCall }) => [toolCall.id, 'Yes.'])),
    );
    expect((await sessionOf(process, after).call(results)).text).toBe(said);
  });

  it('is taken by each of several components, also by one that begins late', async () => {
    const process: Process = {
      ...{ driver: inProcessCalls(), memory: inProcessMemory(), effects: [] },
    };
    const { suspensions = [] } = await sessionOf(process, two).call('Go.');
    expect(suspensions).toHaveLength(2);
    const results = toolResults(
      Object.fromEntries(suspensions.map(({ toolCall }) => [toolCall.id, 'Yes.'])),
    );
    const end = await sessionOf(process, two).call(results);
    expect(end.text).toBe('Yes.');
    expect(process.effects).toEqual(['before', 'after', 'after']);
  });
});
