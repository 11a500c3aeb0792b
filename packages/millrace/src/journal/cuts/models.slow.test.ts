import { describe, it } from '@jest/globals';
import { concat, delay, EMPTY, filter, map, NEVER, of, throwError, timer } from 'rxjs';
import {
  createAgent,
  fallback,
  MillraceError,
  type Model,
  type ModelChunk,
  on,
  prepare,
  retry,
  stopMessage,
  textBlock,
  timeouts,
  tool,
  transformChunks,
  selectTools,
} from '../../index.js';
import { guardAnswer, guardInput } from '../../layers/guards/index.js';
import { budget, limitConcurrency, limitRate } from '../../layers/traffic/index.js';
import { finish, text, thinking, toolCall } from '../../testing/index.js';
import { healsFrom, type SetUp } from './heals.test-support.js';
import type { Process } from './process.test-support.js';
import { options, said, script } from './set-ups.test-support.js';
import { addTools } from '../../layers/select-tools.js';

const pay = (to: string) => toolCall('pay', { to });
const busy = new MillraceError('server', 'Busy.', { retryable: true });
const turns: readonly (readonly ModelChunk[])[] = [
  [thinking('Hm. '), text('First '), pay('ann')],
  [text('Paid.')],
];

/** Fails once at each turn, behind its first words. */
const flaky = ({ model }: Process, words: readonly ModelChunk[] = []): Model => {
  const failed = new Set<number>();
  return model((request) => {
    const turn = said(request);
    const isNew = !failed.has(turn);
    failed.add(turn);
    return isNew
      ? concat(
          of(...words),
          throwError(() => busy),
        )
      : (turns[turn] ?? [text('Over.')]);
  });
};

const made = (
  process: Process,
  model: Model,
  more: Partial<Parameters<typeof createAgent>[0]> = {},
) =>
  createAgent({
    ...options(process),
    model,
    tools: [process.effect('pay')],
    ...more,
  });

const setUps: Readonly<Record<string, SetUp>> = {
  'a model that is asked again': {
    atOnce: 2,
    agent: (process) => made(process, retry(flaky(process), { minMs: 3 })),
  },
  'a model that is asked again behind words that were shown': {
    atOnce: 2,
    agent: (process) =>
      made(process, retry(flaky(process, [text('Half')]), { minMs: 3, retryPartial: true })),
  },
  'a model that falls back on another': {
    atOnce: 2,
    agent: (process) =>
      made(
        process,
        fallback(
          process.model(() => throwError(() => busy)),
          script(process, ...turns),
        ),
      ),
  },
  'a model that fails for good': {
    agent: (process) =>
      made(
        process,
        process.model((request) =>
          said(request) === 0
            ? [pay('ann')]
            : concat(
                of(text('Half')),
                throwError(() => new MillraceError('auth', 'No.')),
              ),
        ),
      ),
  },
  'a model that is switched for one call, with options of its own': {
    options: (process) => ({
      model: script(process, ...turns),
      request: { temperature: 0.5 },
      metadata: { userId: 'ann' },
      use: [addTools(process.effect('more'))],
    }),
    agent: (process) => made(process, script(process, [text('Never.')])),
  },
  'a model that interceptors choose turn by turn': {
    agent: (process) =>
      made(process, script(process, ...turns), {
        use: [
          prepare(
            map((prepared) => ({
              ...prepared,
              input: [{ role: 'user', content: [textBlock('Prepared.')] }],
            })),
          ),
          on(
            'preReasoning',
            map((event) => ({
              ...event,
              options: { ...event.options, temperature: event.iteration / 10 },
            })),
          ),
          on('postReasoning', (event$) => event$.pipe(delay(2, process.scheduler))),
        ],
      }),
  },
  'models that wait for their turn': {
    agent: (process) =>
      made(
        process,
        limitConcurrency(1)(limitRate({ requestsPerMinute: 60 })(script(process, ...turns))),
      ),
  },
  'a model that is silent for too long, and one behind it': {
    atOnce: 2,
    agent: (process) =>
      made(
        process,
        fallback(
          timeouts(
            process.model(() => NEVER),
            { firstChunkMs: 5 },
          ),
          script(process, ...turns),
        ),
      ),
  },
  'a pause in a message': {
    atOnce: 2,
    agent: (process) =>
      made(
        process,
        process.model(({ messages }) => {
          const last = messages.at(-1);
          if (last?.role === 'tool') return [text('Paid.')];
          return last?.role === 'assistant'
            ? [text('more. '), pay('ann')]
            : of(text('Some '), finish('pause'));
        }),
      ),
  },
  'a refusal': {
    agent: (process) => made(process, script(process, [text('I will not.'), finish('refusal')])),
  },
  'nothing said': {
    atOnce: 3,
    agent: (process) => made(process, script(process, [pay('ann')], [], [])),
  },
  'a budget of tools': {
    agent: (process) =>
      createAgent({
        ...options(process),
        model: script(process, [pay('ann'), pay('ann2')], [pay('bob')], [pay('cat')]),
        tools: [process.effect('pay')],
        use: [budget({ toolCalls: 3 })],
      }),
  },
  'tools that are too slow': {
    agent: (process) =>
      made(process, script(process, [pay('ann'), toolCall('hang')], [text('Late.')]), {
        ...options(process, { limits: { timeouts: { toolMs: 9 } } }),
        tools: [
          process.effect('pay'),
          tool({ name: 'hang', description: 'Hangs.', run: () => NEVER }),
        ],
      }),
  },
  'a turn that is too slow': {
    agent: (process) =>
      made(
        process,
        process.model((request) => (said(request) === 0 ? [pay('ann')] : NEVER)),
        options(process, { limits: { timeouts: { iterationMs: 30 } } }),
      ),
  },
  'guards, and an answer that is asked for again': {
    agent: (process) =>
      made(process, script(process, [pay('ann')], [text('Rude.')], [text('Paid.')]), {
        use: [
          guardInput(() => timer(1, process.scheduler).pipe(map(() => true))),
          guardAnswer(
            ({ text: answer }) =>
              answer.includes('Rude') ? { allowed: false, reason: 'rude' } : true,
            { onReject: 'again', feedback: 'Be polite.' },
          ),
        ],
      }),
  },
  'an answer that is refused': {
    agent: (process) =>
      made(process, script(process, [pay('ann')], [text('Rude.')]), {
        use: [guardAnswer(() => false)],
      }),
  },
  'a message that a transform stops, with feedback': {
    agent: (process) =>
      made(process, script(process, [text('bad '), text('words')], [text('Good.')]), {
        use: [
          transformChunks(
            map((chunk) =>
              chunk.type === 'text' && chunk.text === 'words' ? stopMessage('Not that.') : chunk,
            ),
          ),
        ],
      }),
  },
  'uses that are vetoed, and results that are': {
    agent: (process) =>
      made(process, script(process, [pay('ann'), pay('bob')], [text('Paid.')]), {
        use: [
          on(
            'preActing',
            filter(({ toolCall }) => toolCall.input['to'] === 'ann'),
          ),
          on('postActing', () => EMPTY),
        ],
      }),
  },
  'a call that an interceptor of its end changes': {
    agent: (process) =>
      made(process, script(process, ...turns), {
        use: [
          on(
            'postCall',
            map((event) => ({
              ...event,
              reply: { ...event.reply, content: [{ type: 'text', text: 'Changed.' }] },
            })),
          ),
        ],
      }),
  },
  'tools that are selected': {
    options: ({ scheduler }) => ({
      use: [selectTools({ select: () => of(['pay']).pipe(delay(1, scheduler)), maxTools: 1 })],
    }),
    agent: (process) =>
      made(process, script(process, ...turns), {
        tools: [process.effect('pay'), process.effect('look'), process.effect('other')],
      }),
  },
};

describe('a call of a model that fails, waits or is held back, cut anywhere', () => {
  it.each(Object.entries(setUps))('S6, S7: %s', async (_, setUp) => {
    await healsFrom(setUp);
  });
});
