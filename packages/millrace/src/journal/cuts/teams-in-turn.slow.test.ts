import { describe, it } from '@jest/globals';
import { concatMap, map } from 'rxjs';
import { createAgent, type Model, parallel, route, sequential, textOf, tool } from '../../index.js';
import {
  aggregate,
  agentTool,
  asAgent,
  createStep,
  debate,
  handoff,
  hub,
  routeBy,
} from '../../layers/teams/index.js';
import { text, toolCall } from '../../testing/index.js';
import { healsFrom, type SetUp } from './heals.test-support.js';
import { lastText, options, script } from './set-ups.test-support.js';
import { ask, below, leader, listener, pay, worker } from './team-set-ups.test-support.js';

const setUps: Readonly<Record<string, SetUp>> = {
  'agents three levels deep': {
    agent: (process) => {
      const middle = createAgent({
        name: 'middle',
        model: script(process, [ask('worker', 'Pay.'), pay('mid')], [text('Middle.')]),
        tools: [process.effect('pay'), agentTool(worker(process), { description: 'Works.' })],
      });
      return leader(process, script(process, [ask('middle', 'Pay.')], [text('Paid.')]), middle);
    },
  },
  'an agent as a tool that fails': {
    agent: (process) => {
      const failing = createAgent({
        name: 'failing',
        model: script(process, [pay('ann')], [pay('bob')]),
        tools: [process.effect('pay')],
        limits: { maxIterations: 1, onLimit: 'error' },
      });
      return leader(process, script(process, [ask('failing', 'Pay.')], [text('No.')]), failing);
    },
  },
  'a tool that makes two calls': {
    agent: (process) => {
      const [one, two] = [worker(process, 'one'), worker(process, 'two')];
      return createAgent({
        ...options(process),
        model: script(process, [toolCall('both')], [text('Done.')]),
        tools: [
          tool({
            name: 'both',
            description: 'Asks both.',
            idempotent: true,
            run: (_, parent) =>
              one.call$('Pay.', { parent }).pipe(
                concatMap((reply) => two.call$(textOf(reply), { parent })),
                map(textOf),
              ),
          }),
        ],
      });
    },
  },
  'a handoff, there and back': {
    before: ['Hello.'],
    agent: (process) => {
      const member = (name: string, model: Model) => ({
        agent: createAgent({
          name,
          model,
          tools: [process.effect('pay')],
        }),
        description: name,
      });
      const desk = process.model((request) => {
        if (request.messages.at(-1)?.role === 'tool') return [toolCall('transfer_to_bank')];
        const heard = request.messages.map(textOf).join(' ');
        if (heard.endsWith('Hello.')) return [text('Hi.')];
        return heard.includes('back') ? [text('All is paid.')] : [text('Let me see. '), pay('ann')];
      });
      const bank = process.model((request) =>
        request.messages.at(-1)?.role === 'tool'
          ? [text('Going back. '), toolCall('transfer_to_desk', { reason: 'back' })]
          : [pay('bob')],
      );
      return handoff({
        ...options(process),
        agents: [member('desk', desk), member('bank', bank)],
      });
    },
  },
  'a hub': {
    agent: (process) =>
      asAgent(
        aggregate(
          hub({ agents: [listener(process, 'a'), listener(process, 'b')], rounds: 2 }),
          (transcript) => transcript.map(textOf).join('\n'),
        ),
        options(process),
      ),
  },
  'a hub in which somebody decides who is next': {
    agent: (process) => {
      const agents = [listener(process, 'a'), listener(process, 'b')] as const;
      return asAgent(
        aggregate(
          hub({
            agents,
            next: (transcript) => agents[transcript.length === 2 ? 0 : 1 - (transcript.length % 2)],
            maxTurns: 3,
          }),
          (transcript) => transcript.map(textOf).join('\n'),
        ),
        options(process),
      );
    },
  },
  'a debate': {
    agent: (process) =>
      asAgent(
        debate({
          agents: [listener(process, 'pro'), worker(process, 'con')],
          judge: listener(process, 'judge'),
        }),
        options(process),
      ),
  },
  'a route that a model chooses': {
    agent: (process) =>
      asAgent(
        routeBy(
          process.model((request) =>
            lastText(request) === 'Go on.'
              ? [text('{"route": "nowhere"}')]
              : [text('{"route": "pay"}')],
          ),
          {
            pay: { step: worker(process), when: 'Pay.' },
            talk: { step: listener(process, 'talker'), when: 'Talk.' },
          },
        ),
        options(process),
      ),
  },
  'steps in a row, with a route': {
    agent: (process) =>
      asAgent(
        sequential(
          worker(process, 'one'),
          route((input) => (typeof input === 'string' ? worker(process) : listener(process, 'x'))),
          worker(process, 'two'),
        ),
        options(process),
      ),
  },
  'a step that shows what it was told, in an agent of another': {
    agent: (process) => {
      const inner = asAgent(
        sequential(
          worker(process, 'one'),
          createStep((input, given) =>
            listener(process, 'two')
              .call$(input, given)
              .pipe(map((it) => it)),
          ),
        ),
        { name: 'inner' },
      );
      return leader(process, script(process, [ask('inner', 'Go.')], [text('Done.')]), inner);
    },
  },
  'rows of steps side by side, the first the slower one': {
    atOnce: 2,
    agent: (process) =>
      asAgent(
        aggregate(
          parallel(
            sequential(
              below(process, 'slow', [toolCall('slow')], [text('Slow.')]),
              below(process, 'behindSlow', [pay('a'), toolCall('slow')], [text('Behind slow.')]),
            ),
            sequential(
              below(process, 'fast', [text('Fast.')]),
              below(process, 'behindFast', [pay('b'), toolCall('slow')], [text('Behind fast.')]),
            ),
          ),
          (replies) => replies.map(textOf).join('\n'),
        ),
        options(process),
      ),
  },
};

describe('a call of agents that follow one another, cut anywhere', () => {
  it.each(Object.entries(setUps))('S6, S7, G4, G5: %s', async (_, setUp) => {
    await healsFrom(setUp);
  });
});
