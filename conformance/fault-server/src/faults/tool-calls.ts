import { type ResponseScript, wires } from '../scenario.js';
import type { Answer } from '../streams/answer.js';
import { answering, done, type Fault, isDone, isSunny, sunny } from './fault.js';

/** What the tool is asked in most of these faults, and what it then runs with. */
export const oslo = '{"city":"Oslo"}';
export const rome = '{"city":"Rome"}';
export const runsOslo = [{ city: 'Oslo' }];
export const runsBoth = [{ city: 'Oslo' }, { city: 'Rome' }];

/** What is odd about a turn that asks for tools, and what runs all the same. */
export interface Oddity {
  readonly id: string;
  readonly about: string;
  readonly row?: string;
  readonly script: ResponseScript;
  readonly runs: readonly Readonly<Record<string, unknown>>[];
}

interface OddAnswer {
  readonly id: string;
  readonly about: string;
  readonly answers: readonly Answer[];
  readonly runs: readonly Readonly<Record<string, unknown>>[];
}

/** Oddities that can be said on every wire. */
const oddAnswers: readonly OddAnswer[] = [
  {
    id: 'one',
    about: 'One tool use, as it should be.',
    answers: [{ toolCalls: [{ arguments: oslo }] }],
    runs: runsOslo,
  },
  {
    id: 'two-with-text',
    about: 'Two tool uses behind some thinking and some text.',
    answers: [
      {
        thinking: 'Both.',
        text: 'Let me look.',
        toolCalls: [{ arguments: oslo }, { arguments: rome }],
      },
    ],
    runs: runsBoth,
  },
  {
    id: 'same-id-twice',
    about: 'Two tool uses have one id, and other arguments.',
    answers: [
      {
        toolCalls: [
          { id: 'call_1', arguments: oslo },
          { id: 'call_1', arguments: rome },
        ],
      },
    ],
    runs: runsBoth,
  },
  {
    id: 'same-id-each-turn',
    about: 'The tool uses of two turns have one id.',
    answers: [
      { toolCalls: [{ id: 'call_1', arguments: oslo }] },
      { toolCalls: [{ id: 'call_1', arguments: rome }] },
    ],
    runs: runsBoth,
  },
  ...['__proto__', 'constructor', 'with space/and:colon', 'x'.repeat(200)].map(
    (id, index): OddAnswer => ({
      id: `id-odd-${index + 1}`,
      about: `The id of a tool use is ${id.slice(0, 20)}.`,
      answers: [{ toolCalls: [{ id, arguments: oslo }] }],
      runs: runsOslo,
    }),
  ),
  {
    id: 'name-proto',
    about: 'The model asks for a tool named `__proto__`.',
    answers: [{ toolCalls: [{ name: '__proto__', arguments: oslo }] }],
    runs: [],
  },
  {
    id: 'name-unknown',
    about: 'The model asks for a tool that is not there, with a name that no vendor takes.',
    answers: [{ toolCalls: [{ name: 'weather in Oslo?', arguments: oslo }] }],
    runs: [],
  },
  {
    id: 'arguments-proto',
    about: 'The arguments hold `__proto__` beside what is asked for.',
    answers: [{ toolCalls: [{ arguments: '{"city":"Oslo","__proto__":{"polluted":true}}' }] }],
    runs: runsOslo,
  },
  {
    id: 'arguments-empty',
    about: 'The arguments are empty, though the city is required.',
    answers: [{ toolCalls: [{ arguments: '' }] }],
    runs: [],
  },
  {
    id: 'arguments-blank-around',
    about: 'The arguments have white space around them.',
    answers: [{ toolCalls: [{ arguments: [' \n{"city": ', '"Oslo"}', '\n '] }] }],
    runs: runsOslo,
  },
];

/** Oddities of arguments that Anthropic's wire can have only in a stream, as they are no objects. */
const noObjects: readonly OddAnswer[] = [
  ['list', '["Oslo"]'],
  ['text', '"Oslo"'],
  ['prose', 'Oslo, please!'],
].map(([id = '', json = '']) => ({
  id: `arguments-${id}`,
  about: `The arguments are no object: ${json}.`,
  answers: [{ toolCalls: [{ arguments: json }] }],
  runs: [],
}));

const onEveryWire = [...oddAnswers, ...noObjects].map(({ id, about, answers, runs }): Fault => ({
  id: `tool-${id}`,
  row: 'X7',
  about,
  wires,
  scenario: (wire) => ({
    responses: [...answers, done].map((answer) => answering(wire, answer)),
  }),
  expects: { outcome: isDone, requests: answers.length + 1, runs },
}));

/** Tool uses with odd ids, names and arguments, as every wire can say them. */
export const toolFaults: readonly Fault[] = [
  ...onEveryWire,
  {
    id: 'tool-finish-without-use',
    row: 'X8',
    about:
      'The finish says that tools are asked for, but none is: the call was lost. The model is asked again.',
    wires: ['chat', 'messages'],
    scenario: (wire) => ({
      responses: [answering(wire, { ...sunny, finish: 'toolCalls' }), answering(wire, sunny)],
    }),
    expects: { outcome: isSunny, requests: 2 },
  },
  {
    id: 'tool-finish-stop',
    row: 'X8',
    about: 'The finish says that all is said, but a tool is asked for.',
    wires: ['chat', 'messages'],
    scenario: (wire) => ({
      responses: [
        answering(wire, { toolCalls: [{ arguments: oslo }], finish: 'stop' }),
        answering(wire, done),
      ],
    }),
    expects: { outcome: isDone, requests: 2, runs: runsOslo },
  },
];
