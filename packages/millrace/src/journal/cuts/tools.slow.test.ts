import { describe, it } from '@jest/globals';
import { delay, map, of, throwError, timer } from 'rxjs';
import {
  approval,
  createAgent,
  guardOutput,
  on,
  suspend,
  tool,
  toolGroup,
  toolOutput,
  toolResults,
  transient,
} from '../../index.js';
import { createPlanTools } from '../../layers/planning/plan.js';
import { guardResults } from '../../layers/guards/index.js';
import { text, toolCall } from '../../testing/index.js';
import { healsFrom, type SetUp } from './heals.test-support.js';
import { options, script } from './set-ups.test-support.js';
import { redact } from '../../layers/guards/index.js';

const pay = (to: string) => toolCall('pay', { to });

/** Two tools do their work, and one waits for a person. */
const oneSuspends: SetUp['agent'] = (process) =>
  createAgent({
    ...options(process),
    model: script(
      process,
      [pay('ann'), toolCall('ask', {}, 'asked'), pay('bob')],
      [pay('eve')],
      [text('Paid.')],
    ),
    tools: [
      process.effect('pay', { ms: 3 }),
      tool({ name: 'ask', description: 'Asks.', run: () => suspend({ what: 'May I?' }) }),
    ],
  });

const setUps: Readonly<Record<string, SetUp>> = {
  'a plain answer': {
    agent: (process) =>
      createAgent({ ...options(process), model: script(process, [text('He'), text('llo.')]) }),
  },
  'no session': {
    isBare: true,
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [text('First '), pay('ann')], [text('Paid.')]),
        tools: [process.effect('pay')],
      }),
  },
  'one tool, and history': {
    before: ['Hello.'],
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [text('Hi.')], [pay('ann')], [text('Paid.')]),
        tools: [process.effect('pay')],
      }),
  },
  'tools at once': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [pay('ann'), pay('bob'), toolCall('look')], [text('Paid.')]),
        tools: [process.effect('pay', { ms: 3 }), process.effect('look', { ms: 1 })],
      }),
  },
  'tools one after the other, one of them alone': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { parallel: 1 } }),
        model: script(process, [pay('ann'), toolCall('look'), pay('bob')], [text('Paid.')]),
        tools: [process.effect('pay'), process.effect('look', { exclusive: true })],
      }),
  },
  'tools that fail, that there are not, and that get what is wrong': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { toolBackoffMs: 5, maxToolErrors: 1 } }),
        model: script(
          process,
          [toolCall('fail'), toolCall('unknown'), toolCall('pay', { to: 3 })],
          [toolCall('fail')],
          [toolCall('fail')],
          [text('Gave up.')],
        ),
        tools: [
          process.effect('pay'),
          tool({
            name: 'fail',
            description: 'Fails.',
            run: () => throwError(() => new Error('No.')).pipe(delay(1, process.scheduler)),
          }),
        ],
      }),
  },
  'a tool that is retried': {
    agent: (process) => {
      let runs = 0;
      return createAgent({
        ...options(process),
        model: script(process, [toolCall('flaky')], [text('Done.')]),
        tools: [
          tool({
            name: 'flaky',
            description: 'Fails once.',
            retry: { attempts: 3, backoffMs: 4 },
            run: (_, { idempotencyKey }) => {
              process.affect(idempotencyKey);
              runs += 1;
              return runs % 2 === 1 ? throwError(() => transient('Busy.')) : 'Done.';
            },
          }),
        ],
      });
    },
  },
  'approval that changes the input, and one that is refused': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [pay('ann'), pay('bob')], [text('Paid.')]),
        tools: [process.effect('pay')],
      }),
    options: ({ scheduler }) => ({
      use: [
        approval(({ input }) =>
          timer(2, scheduler).pipe(
            map(() =>
              input['to'] === 'ann'
                ? { approved: true, input: { to: 'Ann' } }
                : { approved: false, reason: 'Not him.' },
            ),
          ),
        ),
      ],
    }),
  },
  'a tool that suspends': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [pay('ann'), toolCall('ask')], [text('Never.')]),
        tools: [
          process.effect('pay'),
          tool({ name: 'ask', description: 'Asks.', run: () => suspend({ what: 'May I?' }) }),
        ],
      }),
  },
  'one of three tools at once suspends': { agent: oneSuspends },
  'its result, brought by another call': {
    before: ['Begin.'],
    input: toolResults({ asked: 'You may.' }),
    agent: oneSuspends,
  },
  'a final answer of a tool, with extras and details': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [pay('ann')], [toolCall('tell')]),
        tools: [
          process.effect('pay'),
          tool({
            name: 'tell',
            description: 'Tells.',
            run: () => toolOutput({ content: 'Told.', finalAnswer: true, details: { deep: [1] } }),
          }),
        ],
      }),
  },
  'groups of tools that are activated': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(
          process,
          [toolCall('manage_tools', { activate: ['bank'] })],
          [pay('ann')],
          [toolCall('manage_tools', { activate: [] }), toolCall('look')],
          [text('Paid.')],
        ),
        tools: [
          process.effect('look'),
          toolGroup({ name: 'bank', description: 'Bank.', tools: [process.effect('pay')] }),
        ],
      }),
  },
  'tools of a call that keep a plan': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(
          process,
          [toolCall('create_plan', { goal: 'Bread.', steps: ['Mill', 'Bake'] })],
          [toolCall('update_step', { step: 1, status: 'done' })],
          [text('Baked.')],
        ),
        tools: [...createPlanTools()],
      }),
  },
  'interceptors that change and redact': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [text('To 0123456. '), pay('0123456')], [text('Paid 0123456.')]),
        tools: [process.effect('pay')],
        use: [
          redact(/\d{7}/u),
          guardOutput(/nothing/u),
          guardResults(() => true),
          on(
            'postActing',
            map((event) => ({ ...event, result: { ...event.result, details: { seen: true } } })),
          ),
        ],
      }),
  },
  'observations that are cut, and limits of tools': {
    agent: (process) =>
      createAgent({
        ...options(process, { limits: { maxObservation: 10, maxToolCalls: 2 } }),
        model: script(process, [pay('somebody with a long name'), pay('bob')], [pay('cat')]),
        tools: [process.effect('pay')],
      }),
  },
  'tools that say what they do': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [toolCall('count')], [text('Counted.')]),
        tools: [
          {
            ...process.effect('count'),
            run$: () =>
              of(
                { type: 'progress', value: 1 } as const,
                { type: 'output', output: toolOutput({ content: 'Two.' }) } as const,
              ),
          },
        ],
      }),
  },
};

describe('a call with tools that is cut anywhere', () => {
  it.each(Object.entries(setUps))('S6, S7: %s', async (_, setUp) => {
    await healsFrom(setUp);
  });
});
