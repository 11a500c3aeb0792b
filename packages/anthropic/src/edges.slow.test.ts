import { describe, expect, it } from '@jest/globals';
import { createAgent, isMillraceError, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { anthropic } from './index.js';

type Json = Readonly<Record<string, unknown>>;
/** The tools that run with their inputs, or the code of the error, or the reason of the reply. */
type Outcome = readonly (readonly [name: string, input: unknown])[] | string;

const streamOf = (...events: readonly Json[]): string =>
  events
    .map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('');

const start: Json = {
  type: 'message_start',
  message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 1 } },
};
const stopped = (stop_reason: string): readonly Json[] => [
  { type: 'message_delta', delta: { stop_reason } },
  { type: 'message_stop' },
];
const piece = (partial_json: unknown): Json => ({ type: 'input_json_delta', partial_json });
const use = (id: string, name: string, input: unknown = {}): Json => ({
  type: 'tool_use',
  id,
  name,
  input,
});
const begin = (index: unknown, content_block: Json): Json => ({
  ...{ type: 'content_block_start', index, content_block },
});
const add = (index: unknown, delta: Json): Json => ({ type: 'content_block_delta', index, delta });
const block = (index: unknown, content: Json, ...deltas: readonly Json[]): readonly Json[] => [
  begin(index, content),
  ...deltas.map((delta) => add(index, delta)),
  { type: 'content_block_stop', index },
];
const answer = (...blocks: readonly (readonly Json[])[]): string =>
  streamOf(start, ...blocks.flat(), ...stopped('tool_use'));

const done = streamOf(
  start,
  ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Done.' }),
  ...stopped('end_turn'),
);

const outcomeOf = async (stream: string): Promise<Outcome> => {
  const runs: (readonly [string, unknown])[] = [];
  let count = 0;
  const model = anthropic('claude-sonnet-4-5', {
    ...{ apiKey: 'test', baseURL: 'http://127.0.0.1:9', retry: false },
    fetch: () =>
      Promise.resolve(
        new Response(count++ === 0 ? stream : done, {
          headers: { 'content-type': 'text/event-stream' },
        }),
      ),
  });
  const tools = ['pay', 'now', 'delete', 'delete_draft'].map((name) =>
    tool({
      name,
      description: 'Does it.',
      input: jsonSchema({ type: 'object', additionalProperties: true }),
      run: (input) => {
        runs.push([name, input]);
        return 'ok';
      },
    }),
  );
  const ended = await createAgent({ model, tools })
    .call('?')
    .then(
      ({ reason }) => (reason === 'answer' ? runs : reason),
      (error: unknown) => (isMillraceError(error) ? error.code : String(error)),
    );
  if (typeof ended === 'string') expect(runs).toEqual([]);
  return ended;
};

const [a, b] = ['{"amount":1}', '{"amount":2}'];
const one: Outcome = [['pay', { amount: 1 }]];
const both: Outcome = [
  ['pay', { amount: 1 }],
  ['now', {}],
];
const pay = block(0, use('a', 'pay'), piece(a));
const overloaded: Json = { type: 'error', error: { type: 'overloaded_error', message: 'x' } };

const edges: Readonly<Record<string, readonly [expected: Outcome, stream: string]>> = {
  'a whole call and no room for more': [
    'truncated',
    streamOf(start, ...pay, ...stopped('max_tokens')),
  ],
  'a refusal after a call': ['refused', streamOf(start, ...pay, ...stopped('refusal'))],
  'a stop sequence after a call': [one, streamOf(start, ...pay, ...stopped('stop_sequence'))],
  'two stop reasons, the last of them max_tokens': [
    'truncated',
    streamOf(
      start,
      ...pay,
      { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
      ...stopped('max_tokens'),
    ),
  ],
  'no stop reason': ['invalidResponse', streamOf(start, ...pay, { type: 'message_stop' })],
  'an error after a call': ['server', streamOf(start, ...pay, overloaded)],
  'an error after the stop reason': [
    'server',
    streamOf(
      start,
      ...pay,
      { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
      overloaded,
    ),
  ],
  'arguments at the start': [one, answer(block(0, use('a', 'pay', { amount: 1 })))],
  'arguments at the start, and again': [
    one,
    answer(block(0, use('a', 'pay', { amount: 1 }), piece('{ "amount"'), piece(': 1 }'))),
  ],
  'arguments at the start, and an empty piece': [
    one,
    answer(block(0, use('a', 'pay', { amount: 1 }), piece(''))),
  ],
  'arguments at the start, and others': [
    [['pay', { amount: 2 }]],
    answer(block(0, use('a', 'pay', { amount: 1 }), piece(b))),
  ],
  'arguments at the start, and an empty object': [
    [['pay', {}]],
    answer(block(0, use('a', 'pay', { amount: 1 }), piece('{}'))),
  ],
  'arguments at the start, and a part of them': [
    [],
    answer(block(0, use('a', 'pay', { amount: 1 }), piece('{"amount":'))),
  ],
  'one id with other arguments': [
    [
      ['pay', { amount: 1 }],
      ['pay', { amount: 2 }],
    ],
    answer(pay, block(1, use('a', 'pay'), piece(b))),
  ],
  'one id with another name': [both, answer(pay, block(1, use('a', 'now')))],
  'one id with the same arguments': [
    one,
    answer(pay, block(1, use('a', 'pay'), piece('{ "amount": 1 }'))),
  ],
  'one id at one index with the same arguments': [one, answer(pay, pay)],
  'a name that a second start continues': [
    [],
    answer([
      begin(0, use('a', 'delete')),
      add(0, piece(a)),
      begin(0, use('a', 'delete_draft')),
      { type: 'content_block_stop', index: 0 },
    ]),
  ],
  'pieces of two calls in turn': [
    both,
    answer([
      begin(0, use('a', 'pay')),
      add(0, piece('{"amount":')),
      begin(1, use('b', 'now')),
      add(0, piece('1}')),
    ]),
  ],
  'a piece after the end of its block': [
    one,
    answer(block(0, use('a', 'pay'), piece('{"amount":')), [add(0, piece('1}'))]),
  ],
  'indexes that are strings': [
    both,
    answer(block('0', use('a', 'pay'), piece(a)), block('1', use('b', 'now'))),
  ],
  'no indexes': [
    both,
    answer(block(undefined, use('a', 'pay'), piece(a)), block(undefined, use('b', 'now'))),
  ],
  'a piece for a block that has not started': ['invalidResponse', answer(pay, [add(3, piece(b))])],
  'text within a call': [
    one,
    answer(block(0, use('a', 'pay'), { type: 'text_delta', text: 'x' }, piece(a))),
  ],
  'a block that does not end': [one, answer([begin(0, use('a', 'pay')), add(0, piece(a))])],
  'a call without a name': [[], answer(block(0, use('a', ''), piece(a)))],
  'names of events that contradict their types': [
    one,
    answer(pay).replaceAll(/event: .*/g, 'event: ping'),
  ],
  'a number beyond all numbers': [[], answer(block(0, use('a', 'pay'), piece('{"amount":1e400}')))],
  'a number beyond all numbers at the start': [
    [],
    answer(block(0, use('a', 'pay', { amount: 1 }))).replace('"amount":1', '"amount":1e400'),
  ],
  'a line that is no event within a call': [
    'connection',
    answer(block(0, use('a', 'pay'), piece('{"amount":1'), piece('0'), piece('}'))).replace(
      /data: (?=.*"0")/,
      ' data: ',
    ),
  ],
};

describe('X7, X31: a message', () => {
  it.each(Object.entries(edges))('X7, X31: with %s', async (_, [expected, stream]) => {
    expect(await outcomeOf(stream)).toEqual(expected);
  });
});
