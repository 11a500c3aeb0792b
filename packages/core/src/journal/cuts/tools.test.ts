import { describe, it } from '@jest/globals';
import { createAgent, type ModelRequest } from '../../index.js';
import { text, toolUse } from '../../testing/index.js';
import { healsFrom, type SetUp } from './heals.test-support.js';

const results = ({ messages }: ModelRequest): number =>
  messages.filter(({ role }) => role === 'tool').length;

const rerun = { onUncertain: 'rerun' } as const;

const setUps: Readonly<Record<string, SetUp>> = {
  'a plain answer': {
    agent: ({ model, journal, memory }) =>
      createAgent({ journal, memory, model: model(() => [text('He'), text('llo.')]) }),
  },
  'one tool': {
    agent: ({ model, effect, journal, memory }) =>
      createAgent({
        journal,
        memory,
        defaults: rerun,
        model: model((request) =>
          results(request) === 0 ? [toolUse('pay', { to: 'ann' })] : [text('Paid.')],
        ),
        tools: [effect('pay')],
      }),
  },
  'tools at once': {
    agent: ({ model, effect, journal, memory }) =>
      createAgent({
        journal,
        memory,
        defaults: rerun,
        model: model((request) =>
          results(request) === 0
            ? [toolUse('pay', { to: 'ann' }), toolUse('pay', { to: 'bob' }), toolUse('look')]
            : [text('Paid.')],
        ),
        tools: [effect('pay', { ms: 3 }), effect('look', { ms: 1 })],
      }),
  },
};

describe('a call with tools that is cut anywhere', () => {
  it.each(Object.entries(setUps))('S6, S7: %s', async (_, setUp) => {
    await healsFrom(setUp);
  });
});
