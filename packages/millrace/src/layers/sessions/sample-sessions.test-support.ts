import { NEVER } from 'rxjs';
import { type Agent, createAgent } from '../../agent.js';
import { createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import { textBlock } from '../../values/message.js';
import type { ModelChunk } from '../../models/model.js';
import { withPlan } from '../planning/index.js';
import { jsonSchema } from '../../schema/index.js';
import {
  finish,
  type ScriptedAnswer,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { requireApproval } from '../approval.js';
import { toolOutput } from '../../values/tool-output.js';
import { suspend, toolResults } from '../../memories/suspend.js';
import { toolGroup } from '../../tools/tool-group.js';
import { budget } from '../traffic/index.js';
import { sessions, type Session, type SessionState } from './index.js';
import type { AgentOptions } from '../../call/agent-options.js';

const add = tool({
  name: 'add',
  description: 'Adds numbers.',
  input: jsonSchema({
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  }),
  run: ({ a, b }) => toolOutput({ content: String(a + b), details: { a, b, by: 'head' } }),
});
const sign = tool({
  name: 'sign',
  description: 'Signs.',
  run: () => suspend({ paper: 'A', pages: [1, 2] }),
});
const pay = requireApproval(
  tool({
    name: 'pay',
    description: 'Pays.',
    run: () => 'paid',
  }),
  () => NEVER,
  { parallel: true },
);
const search = tool({ name: 'search', description: 'Searches.', run: () => 'found' });
const photograph = tool({
  name: 'photograph',
  description: 'Takes a picture.',
  run: () => toolOutput({ content: [textBlock('A cat.'), picture] }),
});
const exec = tool({ name: 'exec', description: 'Runs.', run: () => 'done' });

const picture = {
  type: 'image',
  source: { kind: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
} as const;
const recording = {
  type: 'audio',
  source: { kind: 'url', url: 'https://example.com/a.mp3', mediaType: 'audio/mpeg' },
} as const;
const paper = {
  type: 'file',
  name: 'a.pdf',
  source: { kind: 'url', url: 'https://example.com/a.pdf' },
} as const;

const tools = [
  add,
  sign,
  pay,
  photograph,
  toolGroup({ name: 'web', description: 'The web.', tools: [search] }),
  toolGroup({
    name: 'shell',
    description: 'A shell.',
    tools: [exec],
    active: true,
    managed: false,
  }),
];

/** An agent with the tools of the samples, in whose sessions the script is played. */
export const sampleAgent = (
  answers: readonly ScriptedAnswer[] = [],
  options: Partial<AgentOptions<undefined>> = {},
): Agent => createAgent({ model: scriptedModel(...answers), tools, name: 'sample', ...options });

const spent = (inputTokens: number, outputTokens: number): ModelChunk => ({
  type: 'usage',
  usage: { inputTokens, outputTokens, cacheReadTokens: 3, cacheWriteTokens: 1 },
});

/** Ids of calls are positions: the same each time that a sample is made. */
const callAll = async (session: Session, ...inputs: readonly Parameters<Session['call']>[0][]) => {
  for (const [index, input] of inputs.entries()) {
    await session.call(input, { callId: `call-${index}` });
  }
};

const saved = async (
  answers: readonly ScriptedAnswer[],
  use: (session: Session) => unknown,
  options?: Partial<AgentOptions<undefined>>,
): Promise<SessionState> => {
  const session = sessions(sampleAgent(answers, options)).open('s');
  await use(session);
  return session.saveState();
};

/** The samples have scripts of their own. */
const withoutModel = ({
  model: _,
  ...options
}: AgentOptions<undefined>): Partial<AgentOptions<undefined>> => options;

const asksFor = (...uses: readonly ModelChunk[]): readonly ModelChunk[] => [...uses, finish()];

/** States as calls leave them behind, by what they show. */
export const sampleStates: Readonly<Record<string, () => Promise<SessionState>>> = {
  empty: () => saved([], () => undefined),
  'plain-chat': () =>
    saved([[text('Hello.')], [text('Still '), text('here. 🍵 \u2028')]], (session) =>
      callAll(session, 'Hi', ['Are you there?', 'Hm?']),
    ),
  tools: () =>
    saved(
      [
        asksFor(
          text('Adding.'),
          toolCall('add', { a: 1, b: 2 }, 'one'),
          toolCall('add', { a: 'x' }, 'two'),
        ),
        asksFor(toolCall('unknown', { deep: { list: [1, null, 'a', { b: true }] } }, 'three')),
        [text('It is 3.')],
      ],
      (session) => callAll(session, 'Add.'),
    ),
  suspended: () =>
    saved(
      [asksFor(toolCall('sign', {}, 'one'), toolCall('add', { a: 1, b: 1 }, 'two'))],
      (session) => callAll(session, 'Sign.'),
    ),
  resumed: () =>
    saved([asksFor(toolCall('sign', {}, 'one')), [text('Signed.')]], (session) =>
      callAll(session, 'Sign.', toolResults({ one: 'by Ann' })),
    ),
  media: () =>
    saved([asksFor(toolCall('photograph', {}, 'one')), [text('A cat.')]], (session) =>
      callAll(session, [textBlock('What is this?'), picture, recording, paper]),
    ),
  thinking: () =>
    saved(
      [
        [thinking('Well, '), { type: 'thinking', text: '', signature: 's1g' }, text('Yes.')],
        [{ type: 'thinking', text: '', signature: 'h1dden', redacted: true }, text('No.')],
      ],
      (session) => callAll(session, 'Think.', 'Again.'),
    ),
  groups: () =>
    saved(
      [asksFor(toolCall('manage_tools', { activate: ['web'] }, 'one')), [text('Ready.')]],
      async (session) => {
        await callAll(session, 'Search.');
        session.toolkit.deactivate('shell');
      },
    ),
  usage: () =>
    saved(
      [
        [text('a'), spent(10, 2), finish()],
        [text('b'), spent(20.5, 4), finish()],
      ],
      (session) => callAll(session, 'a', 'b'),
    ),
  interrupted: () =>
    saved([asksFor(text('I would'), toolCall('pay', {}, 'one'))], async (session) => {
      const reply = session.call('Pay.', { callId: 'call-0' });
      session.interrupt('Never mind.');
      await reply;
    }),
  approvals: async () => {
    const uses = [toolCall('pay', {}, 'one'), toolCall('pay', { to: 'Ann' }, 'two')];
    const answers = [asksFor(toolCall('add', { a: 1, b: 1 }, 'zero')), asksFor(...uses)];
    const session = sessions(sampleAgent(answers)).open('s');
    const reply = session.call('Pay.', { callId: 'call-0' });
    const state = await session.saveState();
    session.interrupt();
    await reply;
    return state;
  },
  journal: () =>
    saved(
      [
        [text('a'), spent(10, 2), finish()],
        [text('b'), spent(20, 4), finish()],
      ],
      (session) => callAll(session, 'a', 'b'),
      { use: [journal(createCallStore(inProcessCalls()))] },
    ),
  'journal-broken-off': async () => {
    const answers = [asksFor(toolCall('add', { a: 1, b: 1 }, 'one'), spent(10, 2)), () => NEVER];
    const durable = journal(createCallStore(inProcessCalls()));
    const session = sessions(sampleAgent(answers, { use: [durable] })).open('s');
    const running = session
      .call$('Add.', { callId: 'call-0' })
      .subscribe({ error: () => undefined });
    const state = await session.saveState();
    running.unsubscribe();
    return state;
  },
  plan: () =>
    saved(
      [
        asksFor(toolCall('create_plan', { goal: 'Tea', steps: ['Boil', 'Pour'] }, 'one')),
        asksFor(toolCall('update_step', { step: 1, status: 'done' }, 'two')),
        [text('Done.')],
      ],
      (session) => callAll(session, 'Make tea.'),
      withoutModel(withPlan({ model: scriptedModel(), tools })),
    ),
  budget: () =>
    saved(
      [
        asksFor(toolCall('add', { a: 1, b: 2 }, 'one'), spent(100, 20)),
        [text('It is 3, I think.')],
      ],
      (session) => callAll(session, 'Add.'),
      withoutModel({ model: scriptedModel(), use: [budget({ tokens: 50 })] }),
    ),
  names: () =>
    saved([[text('Hello Ann.')]], (session) =>
      callAll(session, [
        { role: 'user', content: [textBlock('I am Ann.')], name: 'Ann' },
        { role: 'assistant', content: [textBlock('I am Bob.')], name: 'Bob' },
      ]),
    ),
};
