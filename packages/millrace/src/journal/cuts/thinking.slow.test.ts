import { describe, it } from '@jest/globals';
import { of } from 'rxjs';
import {
  actionDialect,
  flatDialect,
  linesDialect,
  stepsDialect,
  textTools,
} from '@millrace/text-tools';
import {
  addTools,
  type AgentOptions,
  createAgent,
  type Layer,
  output,
  retry,
  selectTools,
} from '../../index.js';
import { fitContext } from '../../layers/fitting/index.js';
import { inputAndAnswer, windowMemory, wrapMemory } from '../../memories/index.js';
import {
  acting,
  insertAfter,
  insertBefore,
  reasoning,
  storeMemory,
  withoutPhase,
} from '../../phases/index.js';
import { retrieve } from '../../layers/retrieval/index.js';
import {
  analyseTask,
  completeTask,
  plan,
  reflect,
  rewriteQuestion,
  synthesize,
  withPlan,
} from '../../layers/planning/index.js';
import { jsonSchema } from '../../schema/index.js';
import { createSemaphore, limitCalls } from '../../layers/traffic/index.js';
import { finish, text, toolCall } from '../../testing/index.js';
import { healsFrom, type SetUp } from './heals.test-support.js';
import { lastText, options, said, script } from './set-ups.test-support.js';

const pay = (to: string) => toolCall('pay', { to });
const json = (value: unknown) => {
  const written = JSON.stringify(value);
  return [text(written.slice(0, 9)), text(written.slice(9))];
};
const schema = {
  type: 'object',
  properties: { sum: { type: 'number' } },
  required: ['sum'],
} as const;

/** Layers that analyse the task before the first turn, and reflect on tool results. */
const thinking = (when: 'always' | 'complete'): readonly Layer[] => [
  insertAfter(acting, reflect()),
  insertAfter(acting, synthesize({ when })),
  insertBefore(reasoning, analyseTask()),
  rewriteQuestion(),
];

const limited = ({ model, use = [], ...others }: AgentOptions): AgentOptions => ({
  ...others,
  model: retry(model),
  use: [
    fitContext({ contextWindow: 128_000, reserve: 4_096 }),
    limitCalls(createSemaphore({ max: 20 })),
    wrapMemory('recent', (memory) => windowMemory(inputAndAnswer(memory))),
    selectTools({ maxTools: 20 }),
    ...use,
    withoutPhase(storeMemory),
  ],
});

const setUps: Readonly<Record<string, SetUp>> = {
  'tools as text, one action a message, one of them broken': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { parseBackoffMs: 3 } }),
        model: textTools(
          process.model((request) => {
            if (lastText(request).includes('incomplete')) {
              return [text('Thought: done\nAction: {"final_answer": "Paid."}')];
            }
            return said(request) === 0
              ? [text('Thought: pay\n'), text('Action: {"tool": "pay", "inputs": {"to": "ann"}}')]
              : [text('Thought: hm\nAction: {"tool": pay')];
          }),
          actionDialect(),
        ),
        tools: [process.effect('pay')],
      }),
  },
  'tools as flat JSON, with a broken one': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { temperatureRamp: { step: 0.2, max: 1.5 } } }),
        model: textTools(
          script(
            process,
            json({ scratchpad: 'pay', tool: 'pay', arguments: { to: 'ann' } }),
            json({ scratchpad: 'hm', tool: 7 }),
            json({ scratchpad: 'done', answer: 'Paid.' }),
          ),
          flatDialect(),
        ),
        tools: [process.effect('pay')],
      }),
  },
  'tools as lines': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: textTools(
          script(
            process,
            [text('Thought: look\nAction: pay\n'), text('Action Input: {"to": "ann"}')],
            [text('Thought: known\nFinal Answer: Paid.')],
          ),
          linesDialect(),
        ),
        tools: [process.effect('pay')],
      }),
  },
  'malformed calls that are repaired, and that are not': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { parseBackoffMs: 2 } }),
        model: script(
          process,
          [
            { type: 'toolCall', name: 'pay', json: '{"to": "ann",}' },
            { type: 'toolCall', name: 'pay', json: '{"to": ' },
          ],
          [text('Paid.')],
        ),
        tools: [process.effect('pay')],
      }),
  },
  'an answer that is cut by its length, then an empty one': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [text('Half'), finish('length')]),
      }),
  },
  'an output that is corrected': {
    agent: (process) =>
      createAgent({
        ...options(process),
        use: [process.durable, output(jsonSchema(schema))],
        model: script(process, [pay('ann')], json({ sum: 'four' }), json({ sum: 4 })),
        tools: [process.effect('pay')],
      }),
  },
  'an output that is never right': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { maxParseRetries: 1 } }),
        use: [process.durable, output(jsonSchema(schema))],
        model: script(process, ...Array.from({ length: 5 }, () => json({ sum: 'four' }))),
      }),
  },
  'an agent that plans, in text': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { parallel: 5 } }),
        model: textTools(
          script(
            process,
            json([
              { name: 'pay', arguments: { to: 'ann' } },
              { name: 'pay', arguments: { to: 'bob' } },
            ]),
            json([{ name: 'complete_task', arguments: { answer: 'Paid.' } }]),
          ),
          stepsDialect(),
        ),
        tools: [process.effect('pay')],
        use: [process.durable, ...thinking('complete')],
      }),
  },
  'an agent that plans with a plan, native calls, and a final answer of its own': {
    agent: (process) =>
      createAgent(
        withPlan({
          ...options(process, { limits: { parallel: 5 } }),
          model: script(
            process,
            [toolCall('create_plan', { goal: 'Pay.', steps: ['Ann', 'Bob'] }), pay('ann')],
            [toolCall('update_step', { step: 1, status: 'done' })],
            [toolCall('complete_task', { answer: '' })],
          ),
          tools: [process.effect('pay')],
          use: [process.durable, addTools(completeTask({ finalize: true })), ...thinking('always')],
        }),
      ),
  },
  'thinking before, between and behind, with a plan': {
    agent: (process) => {
      const use = [insertBefore(reasoning, analyseTask())];
      return createAgent(
        withPlan({
          ...options(process),
          model: script(
            process,
            [toolCall('create_plan', { goal: 'Pay.', steps: ['Ann', 'Bob'] })],
            [toolCall('revise_plan', { steps: ['Ann'] }), pay('ann')],
            [text('Paid.')],
          ),
          tools: [process.effect('pay')],
          use: [...use, insertAfter(reasoning, synthesize()), insertAfter(acting, reflect())],
        }),
      );
    },
  },
  'a plan that is made before': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [pay('ann')], [text('Paid.')]),
        tools: [process.effect('pay'), completeTask()],
        use: [insertBefore(reasoning, plan())],
      }),
  },
  'a question that is written anew, and looked for': {
    before: ['One.', 'Two.'],
    agent: (process) =>
      createAgent({
        ...options(process),
        model: process.model(({ messages }) => [
          text(`After ${messages.length}: ${messages.at(-1)?.id ?? ''}`),
        ]),
        use: [
          rewriteQuestion(),
          retrieve({
            retrieve$: ({ text: asked }) => of([{ source: 'a', text: `Of ${asked}` }]),
          }),
        ],
      }),
  },
  'an agent with limits, retries and a memory of answers': {
    leavesToolCalls: true,
    agent: (process) =>
      createAgent(
        limited({
          ...options(process),
          model: script(process, [pay('ann')], [text('Paid.')]),
          tools: [process.effect('pay')],
        }),
      ),
  },
  'the closing request at the limit': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { maxIterations: 2 } }),
        model: script(process, [pay('ann')], [pay('bob')], [text('So far.')]),
        tools: [process.effect('pay')],
      }),
  },
  'an error at the limit': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { maxIterations: 1, onLimit: 'error' } }),
        model: script(process, [pay('ann')], [pay('bob')], [text('So far.')]),
        tools: [process.effect('pay')],
      }),
  },
};

describe('a call that thinks, and is cut anywhere', () => {
  it.each(Object.entries(setUps))('S6, S7: %s', async (_, setUp) => {
    await healsFrom(setUp);
  });
});
