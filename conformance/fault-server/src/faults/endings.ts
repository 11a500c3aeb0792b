import { type Wire, wires } from '../scenario.js';
import { json, streamed } from '../steps.js';
import type { Answer } from '../streams/answer.js';
import { chatBody, chatStream, chatUsage } from '../streams/chat-stream.js';
import { messagesBody, messagesStream } from '../streams/messages-stream.js';
import { responsesStream } from '../streams/responses-stream.js';
import { dataLine } from '../streams/sse.js';
import { bodyOf } from '../streams/wires.js';
import { answering, type Fault, isSunny, type Outcome, sunny } from './fault.js';

interface Ending {
  readonly id: string;
  readonly about: string;
  readonly wires?: readonly Wire[];
  readonly answer: Answer;
  readonly outcome: Outcome;
  readonly runs?: readonly [];
}

const truncated: Outcome = { reason: 'truncated' };
const refused: Outcome = { reason: 'refused' };
const half = ['{"city":', '"Os'];

const endings: readonly Ending[] = [
  {
    id: 'filtered',
    about: 'A filter cuts the text off.',
    answer: { text: 'It is ', finish: 'filtered' },
    outcome: refused,
  },
  {
    id: 'filtered-at-once',
    about: 'A filter lets nothing through.',
    answer: { finish: 'filtered' },
    outcome: refused,
  },
  {
    id: 'refusal',
    about: 'The model refuses, and says so.',
    answer: { refusal: 'I cannot help with that.' },
    outcome: refused,
  },
  {
    id: 'refusal-silent',
    about: 'The model refuses without a word.',
    wires: ['messages'],
    answer: { finish: 'refusal' },
    outcome: refused,
  },
  {
    id: 'length',
    about: 'The text is cut off at the limit of tokens.',
    answer: { text: 'It is ', finish: 'length' },
    outcome: truncated,
  },
  {
    id: 'length-at-once',
    about: 'The limit of tokens is used up before any text.',
    answer: { finish: 'length' },
    outcome: truncated,
  },
  {
    id: 'length-in-arguments',
    about: "A tool's arguments are cut off at the limit of tokens.",
    answer: { text: 'Let me look.', toolCalls: [{ arguments: half }], finish: 'length' },
    outcome: truncated,
    runs: [],
  },
  {
    id: 'length-behind-arguments',
    about: "The limit of tokens comes behind a tool's whole arguments.",
    answer: { toolCalls: [{ arguments: '{"city":"Oslo"}' }], finish: 'length' },
    outcome: truncated,
    runs: [],
  },
  {
    id: 'filtered-in-arguments',
    about: "A filter cuts a tool's arguments off.",
    answer: { toolCalls: [{ arguments: half }], finish: 'filtered' },
    outcome: refused,
    runs: [],
  },
];

const fault = ({ id, about, wires: on = wires, answer, outcome, runs }: Ending): Fault => ({
  id: `end-${id}`,
  row: runs === undefined ? 'X1' : 'X2',
  about,
  wires: on,
  scenario: (wire) => ({ responses: [answering(wire, answer)] }),
  expects: { outcome, requests: 1, ...(runs === undefined ? {} : { runs }) },
});

/** The same ends of an answer that is one JSON body. Arguments that are cut off cannot be in one of Anthropic's. */
const whole = ({ id, about, wires: on = wires, answer, outcome }: Ending): Fault => ({
  id: `end-${id}-json`,
  row: 'X1',
  about: `${about} The answer is one JSON body.`,
  wires: on,
  scenario: (wire) => ({ responses: [json(200, bodyOf(wire, answer))] }),
  expects: { outcome, requests: 1 },
});

/** Answers that end otherwise than well. */
export const endingFaults: readonly Fault[] = [
  ...endings.map(fault),
  ...endings.filter(({ runs }) => runs === undefined).map(whole),
  {
    id: 'end-context-window',
    row: 'X1',
    about: 'The text is cut off at the end of the context window.',
    wires: ['messages'],
    scenario: () => {
      const cut = messagesStream({ text: 'It is ', finish: 'length' });
      return {
        responses: [
          streamed(
            cut.map((event) => event.replace('"max_tokens"', '"model_context_window_exceeded"')),
          ),
        ],
      };
    },
    expects: { outcome: truncated, requests: 1 },
  },
];

/** What a usage may be instead of numbers. */
const usages: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['empty', {}],
  ['partial', { prompt_tokens: 3, input_tokens: 3 }],
  [
    'nulls',
    { prompt_tokens: null, input_tokens: null, output_tokens: null, prompt_tokens_details: null },
  ],
  ['text', { prompt_tokens: 'many', output_tokens: 'many' }],
  ['absent', undefined],
];

/** Puts another usage in the place of each object that is one. */
const withUsage = (events: readonly string[], usage: unknown): readonly string[] =>
  events.map((event) =>
    event.replace(dataLine, (_, data: string) => {
      const changed: unknown = JSON.parse(data, (key, value: unknown) =>
        key === 'usage' && value !== null ? usage : value,
      );
      return `data: ${JSON.stringify(changed)}`;
    }),
  );

const streams: Readonly<Record<Wire, readonly string[]>> = {
  chat: chatStream(sunny),
  responses: responsesStream(sunny),
  messages: messagesStream(sunny),
};

/** Usage in every shape in which it has been seen. */
export const usageFaults: readonly Fault[] = [
  ...usages.map(([id, usage]): Fault => ({
    id: `usage-${id}`,
    row: 'X8',
    about: `The usage is ${id}.`,
    wires,
    scenario: (wire) => ({ responses: [streamed(withUsage(streams[wire], usage))] }),
    expects: { outcome: isSunny, requests: 1 },
  })),
  {
    id: 'usage-in-every-chunk',
    row: 'X8',
    about: 'The usage so far is in every chunk, also in the one that finishes.',
    wires: ['chat'],
    scenario: () => {
      const usage = JSON.stringify(chatUsage({ input: 21, cached: 5, output: 3 }));
      return {
        responses: [
          streamed(streams.chat.map((event) => event.replace('"usage":null', `"usage":${usage}`))),
        ],
      };
    },
    expects: { outcome: isSunny, requests: 1 },
  },
  {
    id: 'usage-null-json',
    row: 'X8',
    about: 'The usage of an answer that is one JSON body is null.',
    wires: ['chat', 'messages'],
    scenario: (wire) => ({
      responses: [
        json(200, { ...(wire === 'chat' ? chatBody(sunny) : messagesBody(sunny)), usage: null }),
      ],
    }),
    expects: { outcome: isSunny, requests: 1 },
  },
];
