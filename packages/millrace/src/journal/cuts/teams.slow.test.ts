import { describe, it } from '@jest/globals';
import { throwError } from 'rxjs';
import { createAgent, parallel, race, sequential } from '../../index.js';
import { agentTool, asAgent, supervisor } from '../../layers/teams/index.js';
import { text, toolCall } from '../../testing/index.js';
import { createCallStore, inProcessCalls, journal } from '../index.js';
import { healsFrom, type SetUp } from './heals.test-support.js';
import { options, script } from './set-ups.test-support.js';
import { ask, below, leader, listener, pay, worker } from './team-set-ups.test-support.js';

const setUps: Readonly<Record<string, SetUp>> = {
  'an agent as a tool': {
    agent: (process) =>
      leader(process, script(process, [ask('worker', 'Pay.')], [text('Paid.')]), worker(process)),
  },
  'an agent as a tool, asked twice at once beside another tool': {
    atOnce: 2,
    agent: (process) =>
      leader(
        process,
        script(
          process,
          [ask('worker', 'Pay.'), pay('bob'), ask('worker', 'Pay again.')],
          [text('Paid.')],
        ),
        worker(process),
      ),
  },
  'an agent as a tool, in a session of its own': {
    agent: (process) => {
      const own = createAgent({
        name: 'own',
        model: process.model(({ messages }) => [text(`Heard ${messages.length}.`)]),
      });
      return createAgent({
        ...options(process),
        model: script(process, [ask('own', 'One.')], [ask('own', 'Two.')], [text('Done.')]),
        tools: [
          agentTool(own, {
            description: 'Remembers.',
            session: 'below',
            memory: process.memory,
          }),
        ],
      });
    },
  },
  'an agent as a tool, with a journal of its own that nothing is written to': {
    agent: (process) => {
      const driver = {
        ...inProcessCalls(),
        claim$: () => throwError(() => new Error('Not here.')),
      };
      const own = createAgent({
        name: 'own',
        use: [journal(createCallStore(driver))],
        model: script(process, [pay('ann')], [text('Own is done.')]),
        tools: [process.effect('pay')],
      });
      return leader(process, script(process, [ask('own', 'Pay.')], [text('Paid.')]), own);
    },
  },
  'a supervisor': {
    atOnce: 2,
    agent: (process) =>
      supervisor({
        ...options(process),
        model: script(process, [ask('one', 'A.'), ask('two', 'B.')], [text('Both.')]),
        agents: ['one', 'two'].map((name) => ({
          agent: worker(process, name),
          description: name,
        })),
      }),
  },
  'steps side by side, and a judge': {
    atOnce: 2,
    agent: (process) =>
      asAgent(
        sequential(
          parallel(worker(process, 'one'), listener(process, 'two')),
          listener(process, 'judge'),
        ),
        options(process),
      ),
  },
  'a race': {
    atOnce: 2,
    agent: (process) =>
      asAgent(
        race(
          below(process, 'slow', [toolCall('slow')], [text('Slow.')]),
          below(process, 'fast', [text('Fast.')]),
        ),
        options(process),
      ),
  },
};

describe('a call of many agents that is cut anywhere', () => {
  it.each(Object.entries(setUps))('S6, S7, G4, G5: %s', async (_, setUp) => {
    await healsFrom(setUp);
  });
});
