import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  type Model,
  textOf,
  tool,
} from 'millrace';
import { finish, scriptedModel, text } from 'millrace/testing';
import {
  actionDialect,
  type Dialect,
  flatDialect,
  linesDialect,
  parseToolCalls,
  splitThinking,
  stepsDialect,
  textTools,
} from '@millrace/text-tools';
import fc from 'fast-check';
import { concat, from, lastValueFrom, map, of, tap, toArray } from 'rxjs';
import { action, flat, guarded, native, planner } from '@millrace/presets';

const now = tool({ name: 'now', description: 'Returns the time.', run: () => 'noon' });
const quiet = { analyse: false, reflect: false } as const;

const dialects: readonly Dialect[] = [
  actionDialect(),
  flatDialect(),
  linesDialect(),
  stepsDialect(),
];
/** Every way to an agent: presets, dialects, and models that write their own format. */
const styles: Readonly<Record<string, (options: AgentOptions) => AgentOptions>> = {
  native: (options) => native(options),
  action: (options) => action(options),
  flat: (options) => flat(options),
  guarded: (options) => guarded(options),
  'planner, steps': (options) => planner(options, quiet),
  'planner, native': (options) => planner(options, { ...quiet, calling: 'native' }),
  'planner with a plan': (options) => planner(options, { ...quiet, plan: true }),
  'guarded action': (options) => guarded(action(options)),
  'no dialect': (options) => ({ ...options, model: parseToolCalls(options.model) }),
  'thoughts only': (options) => ({ ...options, model: splitThinking(options.model) }),
  ...Object.fromEntries(
    dialects.flatMap((dialect) => [
      [
        `textTools, ${dialect.name}`,
        (options: AgentOptions) => ({ ...options, model: textTools(options.model, dialect) }),
      ],
      [
        `parseToolCalls, ${dialect.name}`,
        (options: AgentOptions) => ({
          ...options,
          model: parseToolCalls(options.model, { dialect }),
        }),
      ],
    ]),
  ),
};

const cut = (reply: string, size: number): readonly string[] =>
  Array.from({ length: Math.ceil(reply.length / size) }, (_, index) =>
    reply.slice(index * size, (index + 1) * size),
  );

interface Streamed {
  readonly events: readonly AgentEvent[];
  readonly reply: string;
  /** The text of the message that became the reply, as its deltas have it. */
  readonly shown: string;
}

const play = async (
  style: (options: AgentOptions) => AgentOptions,
  replies: readonly (readonly string[])[],
): Promise<Streamed> => {
  const model = scriptedModel(...replies.map((pieces) => pieces.map(text)));
  const agent = createAgent({
    ...style({ model, tools: [now] }),
    limits: { maxParseRetries: 0, maxIterations: replies.length },
  });
  const events = await lastValueFrom(agent.stream$('?').pipe(toArray()));
  const end = events.at(-1);
  if (end?.type !== 'postCall') throw new Error('The call did not end.');
  return { events, reply: textOf(end.reply), shown: textIn(events, end.reply.id) };
};

const textIn = (events: readonly AgentEvent[], id: string): string =>
  events
    .map((event) =>
      'kind' in event && event.kind === 'text' && event.messageId === id ? event.delta : '',
    )
    .join('');

const words = fc.constantFrom(
  'The mill grinds slowly. ',
  'I would say that it is noon.\n\n',
  'Here is a plan:\n1. Look.\n2. Think.\n',
  '- a **bold** item\n',
  'Das Mühlrad dreht sich, 水車は回る, 👩‍👩‍👧 e\u0301. ',
  '> a quoted line\n\n',
  'Use `now()` or `{"tool": "now"}` there. ',
  'She said: “it is time”. ',
  '```js\nconst a = { b: [1] };\n```\n',
  '| a | b |\n| - | - |\n',
  'First action: none. Thought is free. ',
  'x < y, and [a](https://b.example). ',
  '# A title\n',
);
const prose = fc
  .tuple(fc.constantFrom('It is noon. ', 'Well, ', 'A mill '), fc.array(words, { maxLength: 40 }))
  .map(([lead, rest]) => `${lead}${rest.join('')}`.trim());

const long = 'The mill grinds slowly, and it grinds exceedingly fine. '.repeat(60).trim();

/** Prose that may be a thought, and what may become a mark. */
const maxHeld = 256 + 160;

/** The largest number of characters that the model had written, and nobody had seen. */
const longestHold = async (
  style: (options: AgentOptions) => AgentOptions,
  answer: string,
): Promise<number> => {
  let [written, seen, longest] = [0, 0, 0];
  const model: Model = {
    name: 'm',
    stream$: () =>
      concat(
        from(answer).pipe(
          map((piece) => {
            longest = Math.max(longest, written - seen);
            written += piece.length;
            return text(piece);
          }),
        ),
        of(finish()),
      ),
  };
  const agent = createAgent(style({ model, tools: [now] }));
  await lastValueFrom(
    agent.stream$('?').pipe(
      tap((event) => {
        if ('kind' in event && event.kind === 'text') seen += event.delta.length;
      }),
    ),
  );
  expect(seen).toBe(answer.length);
  return longest;
};

describe.each(Object.entries(styles))('P10: answers stream as answers: %s', (_, style) => {
  it('P10: the deltas of an answer in prose are the reply, in any pieces', async () => {
    await fc.assert(
      fc.asyncProperty(prose, fc.integer({ min: 1, max: 700 }), async (answer, size) => {
        for (const pieces of [[answer], cut(answer, size)]) {
          const { reply, shown, events } = await play(style, [pieces]);
          expect({ reply, shown }).toEqual({ reply: answer, shown: answer });
          expect(events.some(({ type }) => type === 'messageDiscarded')).toBe(false);
        }
      }),
      {
        numRuns: 25,
        examples: [
          [long, 1],
          [long, 300],
        ],
      },
    );
  });

  it('P10: no more than some characters of it are held at any moment', async () => {
    await fc.assert(
      fc.asyncProperty(prose, async (answer) => {
        expect(await longestHold(style, answer)).toBeLessThanOrEqual(maxHeld);
      }),
      { numRuns: 25, examples: [[long]] },
    );
  });
});
