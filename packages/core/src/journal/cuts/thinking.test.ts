import { describe, it } from '@jest/globals';
import { of } from 'rxjs';
import { createAgent, output } from '../../index.js';
import { acting, insertAfter, insertBefore, reasoning } from '../../phases/index.js';
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
import { action, flat, guarded, planner } from '../../layers/presets/index.js';
import { jsonSchema } from '../../schema/index.js';
import { linesDialect, textTools } from '../../layers/text-tools/index.js';
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

const setUps: Readonly<Record<string, SetUp>> = {
  'tools as text, one action a message, one of them broken': {
    agent: (process) =>
      createAgent(
        action({
          ...options(process, { limits: { parseBackoffMs: 3 } }),
          model: process.model((request) => {
            if (lastText(request).includes('incomplete')) {
              return [text('Thought: done\nAction: {"final_answer": "Paid."}')];
            }
            return said(request) === 0
              ? [text('Thought: pay\n'), text('Action: {"tool": "pay", "inputs": {"to": "ann"}}')]
              : [text('Thought: hm\nAction: {"tool": pay')];
          }),
          tools: [process.effect('pay')],
        }),
      ),
  },
  'tools as flat JSON, with a broken one': {
    agent: (process) =>
      createAgent(
        flat({
          ...options(process),
          model: script(
            process,
            json({ scratchpad: 'pay', tool: 'pay', arguments: { to: 'ann' } }),
            json({ scratchpad: 'hm', tool: 7 }),
            json({ scratchpad: 'done', answer: 'Paid.' }),
          ),
          tools: [process.effect('pay')],
        }),
      ),
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
  'the planner, in text': {
    agent: (process) =>
      createAgent(
        planner({
          ...options(process),
          model: script(
            process,
            json([
              { name: 'pay', arguments: { to: 'ann' } },
              { name: 'pay', arguments: { to: 'bob' } },
            ]),
            json([{ name: 'complete_task', arguments: { answer: 'Paid.' } }]),
          ),
          tools: [process.effect('pay')],
        }),
      ),
  },
  'the planner with a plan, native calls, and a final answer of its own': {
    agent: (process) =>
      createAgent(
        planner(
          {
            ...options(process),
            model: script(
              process,
              [toolCall('create_plan', { goal: 'Pay.', steps: ['Ann', 'Bob'] }), pay('ann')],
              [toolCall('update_step', { step: 1, status: 'done' })],
              [toolCall('complete_task', { answer: '' })],
            ),
            tools: [process.effect('pay')],
          },
          { calling: 'native', plan: true, finalize: true },
        ),
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
  'the guarded agent': {
    leavesToolCalls: true,
    agent: (process) =>
      createAgent(
        guarded({
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
