import { type ResponseScript, type Wire, wires } from '../scenario.js';
import { bytes, forever, stall, status, streamHeaders } from '../steps.js';
import type { Answer } from '../streams/answer.js';
import { chatDelta } from '../streams/chat-stream.js';
import { messagesEvent } from '../streams/messages-stream.js';
import { sse } from '../streams/sse.js';
import { streamOf } from '../streams/wires.js';
import { type Expectation, fails, failsThrice, type Fault, sunny, upTo } from './fault.js';

/** The answer but for its end: what is too much must be noticed before. */
const unended = (wire: Wire, answer: Answer): ResponseScript => [
  streamHeaders,
  bytes(streamOf(wire, answer).slice(0, -3).join('')),
  stall(),
];

const times = (count: number, piece: string): readonly string[] => Array<string>(count).fill(piece);

/** What stands before the deltas of a text. */
const beforeText = (wire: Wire): string => upTo(streamOf(wire, sunny), 'It is ').join('');

/** A delta of text that may come again and again: it has no number. */
const textDelta: Readonly<Record<Wire, string>> = {
  chat: chatDelta({ content: 'and so on ' }),
  responses: sse(
    {
      type: 'response.output_text.delta',
      item_id: 'msg_0fa01t0',
      output_index: 0,
      content_index: 0,
      delta: 'and so on ',
    },
    'response.output_text.delta',
  ),
  messages: messagesEvent({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text: 'and so on ' },
  }),
};

const nonsense: Readonly<Record<Wire, string>> = {
  chat: sse({ object: 'chat.completion.future', choices: [] }),
  responses: sse({ type: 'response.future' }, 'response.future'),
  messages: messagesEvent({ type: 'future' }),
};

const deep = `{"city":${'['.repeat(10_000)}"Oslo"${']'.repeat(10_000)}}`;

interface Flood {
  readonly id: string;
  readonly row?: string;
  readonly about: string;
  readonly script: (wire: Wire) => ResponseScript;
  readonly expects: Expectation;
}

const tooLarge: Expectation = { ...fails('tooLarge', 1, false), closes: true };
const noRuns: Expectation = { ...tooLarge, runs: [] };

const floods: readonly Flood[] = [
  {
    id: 'event',
    about: 'One event has 1.2 million characters.',
    script: (wire) => unended(wire, { text: ['x'.repeat(1_200_000)] }),
    expects: tooLarge,
  },
  {
    id: 'text',
    about: 'The text has 150,000 characters.',
    script: (wire) => unended(wire, { text: times(150, 'x'.repeat(1000)) }),
    expects: tooLarge,
  },
  {
    id: 'thinking',
    about: 'The thinking has 150,000 characters.',
    script: (wire) => unended(wire, { thinking: times(150, 'x'.repeat(1000)), text: 'Hm.' }),
    expects: tooLarge,
  },
  {
    id: 'arguments',
    about: "A tool's arguments have 30,000 characters.",
    script: (wire) =>
      unended(wire, {
        toolCalls: [{ arguments: ['{"city":"', ...times(30, 'x'.repeat(1000)), '"}'] }],
      }),
    expects: noRuns,
  },
  {
    id: 'arguments-deep',
    about: "A tool's arguments are 10,000 levels deep.",
    script: (wire) =>
      unended(wire, { toolCalls: [{ arguments: deep.match(/[^]{1,100}/g) ?? [] }] }),
    expects: noRuns,
  },
  {
    id: 'arguments-deep-at-once',
    about: "A tool's arguments are 200 levels deep, and come in one piece.",
    script: (wire) =>
      unended(wire, {
        toolCalls: [{ arguments: [`${'{"city":'.repeat(200)}1${'}'.repeat(200)}`] }],
      }),
    expects: noRuns,
  },
  {
    id: 'tools',
    about: 'The model asks for 200 tool uses in one turn.',
    script: (wire) =>
      unended(wire, {
        toolCalls: Array.from({ length: 200 }, () => ({ arguments: ['{"city":"Oslo"}'] })),
      }),
    expects: noRuns,
  },
  {
    id: 'endless-text',
    about: 'The text does not end.',
    script: (wire) => [streamHeaders, bytes(beforeText(wire)), forever(textDelta[wire])],
    expects: tooLarge,
  },
  {
    id: 'endless-line',
    about: 'An event does not end.',
    script: (wire) => [
      streamHeaders,
      bytes(`${beforeText(wire)}data: {"x":"`),
      forever('x'.repeat(1000)),
    ],
    expects: tooLarge,
  },
  {
    id: 'endless-data',
    about: 'An event has endless lines of data.',
    script: (wire) => [
      streamHeaders,
      bytes(beforeText(wire)),
      forever(`data: [${'1,'.repeat(500)}\n`),
    ],
    expects: tooLarge,
  },
  {
    id: 'endless-json',
    about: 'A JSON body does not end.',
    script: () => [
      status(200, { 'content-type': 'application/json' }),
      bytes('{"choices":['),
      forever('{},'),
    ],
    expects: tooLarge,
  },
  {
    id: 'endless-comments',
    row: 'X3',
    about: 'Comments come as fast as they are read, and nothing else.',
    script: () => [streamHeaders, forever(': hello\n\n')],
    expects: { ...fails('timeout', 2, true), closes: true },
  },
  {
    id: 'endless-nonsense',
    row: 'X3',
    about: 'Events that nobody knows come as fast as they are read.',
    script: (wire) => [streamHeaders, forever(nonsense[wire])],
    expects: { ...fails('timeout', 2, true), closes: true },
  },
  {
    id: 'error-body',
    about: 'The body of an error has 10 MB.',
    script: () => [
      status(400, { 'content-type': 'application/json' }),
      bytes('{"error":{"message":"'),
      bytes('x'.repeat(65_536), { times: 160 }),
      bytes('"}}'),
      stall(),
    ],
    expects: { ...fails('invalidRequest', 1, false), closes: true },
  },
  {
    id: 'error-body-endless',
    about: 'The body of an error does not end.',
    script: () => [status(500, { 'content-type': 'text/plain' }), forever('x'.repeat(1000))],
    expects: { ...failsThrice('server'), closes: true },
  },
];

/** More than anybody can want: everything has its cap, and what goes beyond it closes the connection. */
export const floodFaults: readonly Fault[] = floods.map(
  ({ id, row = 'X6', about, script, expects }): Fault => ({
    id: `flood-${id}`,
    row,
    about,
    wires,
    scenario: (wire) => ({ responses: [script(wire)] }),
    expects,
  }),
);
