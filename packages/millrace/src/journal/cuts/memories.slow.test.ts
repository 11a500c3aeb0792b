import { describe, it } from '@jest/globals';
import { delay, of } from 'rxjs';
import { type AgentOptions, createAgent } from '../../index.js';
import { fitContext, withEviction } from '../../layers/fitting/index.js';
import type { LongTermMemoryOptions } from '../../layers/long-term-memory/memory-settings.js';
import { withLongTermMemory } from '../../layers/long-term-memory/index.js';
import {
  inputAndAnswer,
  summarise,
  summarisingMemory,
  windowMemory,
} from '../../memories/index.js';
import { insertBefore, reasoning } from '../../phases/index.js';
import { retrieve } from '../../layers/retrieval/index.js';
import { text, toolCall } from '../../testing/index.js';
import { healsFrom, type SetUp } from './heals.test-support.js';
import type { Process } from './process.test-support.js';
import { options, script } from './set-ups.test-support.js';

const pay = (to: string) => toolCall('pay', { to });
const long = (words: string) => `${words} `.repeat(60);

const remembering =
  (settings: Partial<LongTermMemoryOptions>, more: Partial<AgentOptions> = {}) =>
  (process: Process) =>
    createAgent(
      withLongTermMemory(
        {
          ...options(process),
          model: script(
            process,
            [toolCall('record_memory', { text: 'Likes tea.' }), pay('ann')],
            [toolCall('retrieve_memory', { query: 'tea' })],
            [text('Paid.')],
          ),
          tools: [process.effect('pay')],
          ...more,
        },
        { memory: process.longTerm, ...settings },
      ),
    );

const ofAnn = () => ({ metadata: { userId: 'ann' } });

const setUps: Readonly<Record<string, SetUp>> = {
  'a memory that summarises': {
    before: [long('One.'), long('Two.')],
    memory: (process) =>
      summarisingMemory(process.memory, {
        model: process.model(() => [text('Notes.')]),
        whenTokens: 100,
        keepTurns: 1,
        report: () => undefined,
      }),
    agent: (process) =>
      createAgent({
        ...options(process),
        model: process.model(({ messages }) =>
          messages.at(-1)?.role === 'tool' || messages.length < 4
            ? [text(long(`Said ${messages.length}.`))]
            : [pay('ann')],
        ),
        tools: [process.effect('pay')],
      }),
  },
  'a memory with a window': {
    before: ['One.', 'Two.', 'Three.'],
    memory: (process) => windowMemory(process.memory, { turns: 2 }),
    agent: (process) =>
      createAgent({
        ...options(process),
        model: process.model(({ messages }) =>
          messages.at(-1)?.role === 'tool' ? [text(`${messages.length}.`)] : [pay('ann')],
        ),
        tools: [process.effect('pay')],
      }),
  },
  'a memory of inputs and answers': {
    before: ['One.'],
    memory: (process) => inputAndAnswer(process.memory),
    agent: (process) =>
      createAgent({
        ...options(process),
        model: process.model(({ messages }) =>
          messages.at(-1)?.role === 'tool' ? [text(`${messages.length}.`)] : [pay('ann')],
        ),
        tools: [process.effect('pay')],
      }),
  },
  'a long call that is summarised': {
    before: [long('One.'), long('Two.')],
    agent: (process) =>
      createAgent({
        ...options(process),
        model: process.model(({ messages }) => {
          const results = messages.filter(({ role }) => role === 'tool').length;
          return results < 2 && messages.at(-1)?.id.startsWith('c/') === true
            ? [pay(`ann ${messages.length}`)]
            : [text(long(`Said ${messages.length}.`))];
        }),
        tools: [process.effect('pay')],
        use: [insertBefore(reasoning, summarise({ contextWindow: 300, keepTurns: 1 }))],
      }),
  },
  'results that are put away, and requests that are fitted': {
    before: [long('One.'), long('Two.')],
    agent: (process) =>
      createAgent(
        withEviction({
          ...options(process),
          model: process.model(({ messages }) =>
            messages.at(-1)?.role === 'tool'
              ? [text(`Of ${messages.length}.`)]
              : [pay(long('ann')), pay(long('bob'))],
          ),
          tools: [process.effect('pay')],
          use: fitContext({ contextWindow: 2_000, reserve: 100 }),
        }),
      ),
  },
  'what is retrieved, beside a failure': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [text('As it says [1].')]),
        use: [
          retrieve({
            retrieve$: (query) =>
              of([{ source: 'a', text: query.text }]).pipe(delay(2, process.scheduler)),
          }),
          retrieve({
            retrieve$: () => {
              throw new Error('No index.');
            },
          }),
        ],
      }),
  },
  'long-term memory of its own': {
    before: ['I like tea.'],
    options: ofAnn,
    input: 'What tea do I like?',
    agent: remembering({}),
  },
  'long-term memory, ranked': {
    before: ['I like tea.', 'I like green tea.', 'Tea is good.', 'No tea today.'],
    options: ofAnn,
    input: 'What tea do I like?',
    agent: remembering({ rank: true, top: 1 }),
  },
  'long-term memory in the hands of the model': {
    options: ofAnn,
    agent: remembering({ mode: 'agent', forgetTool: true }),
  },
  'long-term memory of both': {
    before: ['I like tea.'],
    input: 'What tea do I like?',
    options: ofAnn,
    agent: remembering({ mode: 'both', placement: 'beforeInput' }),
  },
};

describe('a call that remembers, and is cut anywhere', () => {
  it.each(Object.entries(setUps))('S6, S7: %s', async (_, setUp) => {
    await healsFrom(setUp);
  });
});
