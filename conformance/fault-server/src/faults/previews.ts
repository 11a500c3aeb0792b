import { wires } from '../scenario.js';
import { streamed } from '../steps.js';
import { chatChunk, chatDelta, chatDone, chatUsage } from '../streams/chat-stream.js';
import { responsesEvents, responseObject } from '../streams/responses-stream.js';
import { streamOf } from '../streams/wires.js';
import {
  answering,
  askOslo,
  done,
  fails,
  type Fault,
  isDone,
  isSunny,
  sunny,
  upTo,
} from './fault.js';
import { oslo, rome, runsBoth, runsOslo } from './tool-calls.js';

type Json = Readonly<Record<string, unknown>>;

const chatCall = (index: number, args: string, finish: string | null = null): string =>
  chatDelta(
    {
      tool_calls: [
        {
          index,
          id: `call_${index}`,
          type: 'function',
          function: { name: 'weather', arguments: args },
        },
      ],
    },
    finish,
  );
const chatStop = (finish: string): string => chatDelta({}, finish);
const usage = chatChunk({ choices: [], usage: chatUsage({ input: 21, cached: 0, output: 7 }) });

/** A failure of the provider behind a gateway, in the choice. */
const failedChoice = (finish: string | null): string =>
  chatChunk({
    choices: [
      {
        index: 0,
        delta: {},
        finish_reason: finish,
        error: { code: 502, message: 'Provider died.' },
      },
    ],
  });

interface Preview {
  readonly id: string;
  readonly about: string;
  readonly events: readonly string[];
  readonly runs?: readonly Json[];
}

/** The finish of a chat completion is the last one that its stream contains. */
const finishes: readonly Preview[] = [
  {
    id: 'finish-on-each-call',
    about: 'A finish reason is next to each call.',
    events: [chatCall(0, oslo, 'tool_calls'), chatCall(1, rome, 'tool_calls'), chatStop('stop')],
    runs: runsBoth,
  },
  {
    id: 'finish-before-call',
    about: 'A finish reason follows the text, and then a call comes.',
    events: [chatDelta({ content: 'I look.' }, 'stop'), chatCall(0, oslo, 'tool_calls')],
    runs: runsOslo,
  },
  {
    id: 'finish-alone-before-call',
    about: 'A call comes after the finish reason and the usage.',
    events: [chatDelta({ content: 'I look.' }), chatStop('stop'), usage, chatCall(0, oslo)],
    runs: runsOslo,
  },
  {
    id: 'finish-within-arguments',
    about: 'A finish reason comes before the last piece of the arguments.',
    events: [
      chatCall(0, '{"city":', 'tool_calls'),
      chatDelta({ tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] }),
    ],
    runs: runsOslo,
  },
];

const errors: readonly Preview[] = [
  {
    id: 'error-then-finish',
    about: 'The provider fails in the middle, and the gateway then finishes the choice.',
    events: [chatDelta({ content: 'It is ' }), failedChoice(null), chatStop('stop')],
  },
  {
    id: 'error-with-finish',
    about: 'The provider fails in the middle, in the choice that finishes.',
    events: [chatDelta({ content: 'It is ' }), failedChoice('stop')],
  },
  {
    id: 'error-after-call',
    about: 'The provider fails after a whole call.',
    events: [chatCall(0, oslo), failedChoice('tool_calls')],
  },
  {
    id: 'error-after-finish',
    about: 'The provider fails after the finish reason of a call.',
    events: [chatCall(0, oslo, 'tool_calls'), failedChoice(null)],
  },
];

const oslosCall = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather' };
const created = { type: 'response.created', response: responseObject() };
const ended = (output: readonly Json[]) => ({
  type: 'response.completed',
  response: responseObject({ status: 'completed', output }),
});
const added = (item: Json) => ({ type: 'response.output_item.added', output_index: 0, item });
const argumentsOf = (what: 'delta' | 'done', text: string) => ({
  type: `response.function_call_arguments.${what}`,
  output_index: 0,
  item_id: 'fc_1',
  [what === 'delta' ? 'delta' : 'arguments']: text,
});
const call = (args: string): Json => ({ ...oslosCall, arguments: args });

/** Each value of a response counts as its end says. */
const responses: readonly (Omit<Preview, 'events'> & {
  readonly events: Parameters<typeof responsesEvents>[0];
})[] = [
  {
    id: 'only-done',
    about: 'The arguments of a call come only when they are complete.',
    events: [created, added(call('')), argumentsOf('done', oslo), ended([call(oslo)])],
  },
  {
    id: 'only-completed',
    about: 'The answer comes only with the completed response.',
    events: [created, ended([call(oslo)])],
  },
  {
    id: 'done-contradicts',
    about: 'The complete arguments differ from the streamed ones.',
    events: [
      added(call('')),
      argumentsOf('delta', rome),
      argumentsOf('done', oslo),
      ended([call(oslo)]),
    ],
  },
  {
    id: 'completed-contradicts',
    about: 'The arguments of the completed response differ from all earlier ones.',
    events: [
      added(call('')),
      argumentsOf('delta', rome),
      argumentsOf('done', rome),
      { type: 'response.output_item.done', output_index: 0, item: call(rome) },
      ended([call(oslo)]),
    ],
  },
  {
    id: 'delta-missing',
    about: 'A piece of the arguments is missing.',
    events: [
      added(call('')),
      argumentsOf('delta', '{"city":'),
      argumentsOf('delta', '}'),
      argumentsOf('done', oslo),
      ended([call(oslo)]),
    ],
  },
];

/** What streams is a preview: these streams say something else at their end. */
export const previewFaults: readonly Fault[] = [
  ...finishes.map(({ id, about, events, runs = [] }): Fault => ({
    id: `preview-${id}`,
    row: 'X5',
    about,
    wires: ['chat'],
    scenario: () => ({
      responses: [streamed([...events, chatDone]), answering('chat', done)],
    }),
    expects: { outcome: isDone, requests: 2, runs },
  })),
  {
    id: 'preview-finish-then-length',
    row: 'X2',
    about: 'The last of two finish reasons is the limit of tokens.',
    wires: ['chat'],
    scenario: () => ({
      responses: [
        streamed([chatCall(0, oslo, 'tool_calls'), chatStop('length'), chatDone]),
        answering('chat', done),
      ],
    }),
    expects: { outcome: { reason: 'truncated' }, requests: 1, runs: [] },
  },
  ...errors.map(({ id, about, events }): Fault => ({
    id: `preview-${id}`,
    row: 'X1',
    about,
    wires: ['chat'],
    scenario: () => ({ responses: [streamed([...events, chatDone])] }),
    expects: { ...fails('server', 1, true), runs: [] },
  })),
  {
    id: 'preview-error-event-after-finish',
    row: 'X1',
    about: 'The vendor reports an error after the finish.',
    wires: ['messages'],
    scenario: () => ({
      responses: [
        streamed([
          ...upTo(streamOf('messages', sunny), 'end_turn'),
          'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"No."}}\n\n',
        ]),
      ],
    }),
    expects: fails('server', 1, true),
  },
  {
    id: 'preview-lost-after-end',
    row: 'X5',
    about: 'Something that is not JSON comes after the end.',
    wires,
    scenario: (wire) => ({
      responses: [streamed([...streamOf(wire, sunny), 'data: {"choices": [}\n\n'])],
    }),
    expects: { outcome: isSunny, requests: 1 },
  },
];

const numbers: readonly (readonly [string, (index: number) => number])[] = [
  ['always 0', () => 0],
  ['always 1', () => 1],
  ['0 and 1 by turns', (index) => index % 2],
  ['falling', (index) => 1_000 - index],
];

/** Responses whose events differ from their end, or have odd numbers. */
export const responsePreviewFaults: readonly Fault[] = [
  ...responses.map(({ id, about, events }): Fault => ({
    id: `preview-${id}`,
    row: 'X31',
    about,
    wires: ['responses'],
    scenario: () => ({
      responses: [streamed(responsesEvents(events)), answering('responses', done)],
    }),
    expects: { outcome: isDone, requests: 2, runs: runsOslo },
  })),
  ...numbers.map(([about, numberOf]): Fault => ({
    id: `preview-numbers-${about.replaceAll(' ', '-')}`,
    row: 'X31',
    about: `The numbers of the events are ${about}.`,
    wires: ['responses'],
    scenario: () => ({
      responses: [askOslo, done].map((answer) =>
        streamed(
          streamOf('responses', answer).map((event, index) =>
            event.replace(/"sequence_number":\d+/u, `"sequence_number":${numberOf(index)}`),
          ),
        ),
      ),
    }),
    expects: { outcome: isDone, requests: 2, runs: runsOslo },
  })),
];
