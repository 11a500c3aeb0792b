import { describe, expect, it } from '@jest/globals';
import type { Model } from 'millrace';
import {
  a,
  b,
  type Fetch,
  type Json,
  none,
  one,
  type Outcome,
  outcomeOf,
  settings,
  sse,
  two,
} from './edges.test-support.js';
import { openai } from './index.js';

describe('X7, X31: a response', () => {
  const call = (written: unknown, fields: Json = {}): Json => ({
    ...{ type: 'function_call', id: 'f', call_id: 'c1', name: 'pay', arguments: written },
    ...fields,
  });
  const added = (item: Json, output_index: unknown = 0): string =>
    sse({ type: 'response.output_item.added', output_index, item });
  const itemDone = (item: Json): string =>
    sse({ type: 'response.output_item.done', output_index: 0, item });
  const part = { output_index: 0, item_id: 'f' };
  const delta = (text: string, fields: Json = part): string =>
    sse({ type: 'response.function_call_arguments.delta', ...fields, delta: text });
  const valueDone = (text: string, fields: Json = {}): string =>
    sse({ type: 'response.function_call_arguments.done', ...part, arguments: text, ...fields });
  const ended = (output: unknown, fields: Json = {}): string =>
    sse({
      type: 'response.completed',
      response: { id: 'r', status: 'completed', output, ...fields },
    });
  const incomplete = (reason: string): string =>
    sse({
      type: 'response.incomplete',
      response: {
        id: 'r',
        status: 'incomplete',
        incomplete_details: { reason },
        output: [call(a)],
      },
    });
  const other = { id: 'g', call_id: 'c2' };
  const content = [{ type: 'output_text', text: 'Done.' }];
  const done = ended([{ type: 'message', id: 'm', content }]);
  const created = (id: string): string => sse({ type: 'response.created', response: { id } });

  const edges: Readonly<Record<string, readonly [expected: Outcome, stream: string]>> = {
    'a call id that the item changes': [
      one,
      added(call('')) + delta(a) + itemDone(call(a, { call_id: 'c2' })) + ended([]),
    ],
    'a call id that the item and the end change': [
      one,
      added(call('')) +
        delta(a) +
        itemDone(call(a, { call_id: 'c2' })) +
        ended([call(a, { call_id: 'c2' })]),
    ],
    'a call id that the end changes': [
      one,
      added(call('')) + delta(a) + itemDone(call(a)) + ended([call(a, { call_id: 'c2' })]),
    ],
    'a call id and arguments that the end changes': [
      two,
      added(call('')) + delta(a) + itemDone(call(a)) + ended([call(b, { call_id: 'c2' })]),
    ],
    'one call id in two items': [
      [
        ['pay', { amount: 1 }],
        ['pay', { amount: 2 }],
      ],
      ended([call(a), call(b, { id: 'g' })]),
    ],
    'one call id in two items that are the same': [
      one,
      ended([call(a), call('{ "amount": 1 }', { id: 'g' })]),
    ],
    'an item twice, with other arguments': [
      [
        ['pay', { amount: 1 }],
        ['pay', { amount: 2 }],
      ],
      ended([call(a), call(b)]),
    ],
    'one call id of a function and a custom tool': [
      [
        ['pay', { amount: 1 }],
        ['pay', { input: 'x' }],
      ],
      ended([
        call(a),
        { type: 'custom_tool_call', id: 'g', call_id: 'c1', name: 'pay', input: 'x' },
      ]),
    ],
    'an item that is completed again': [two, itemDone(call(a)) + itemDone(call(b)) + ended([])],
    'arguments that are completed again': [
      two,
      added(call('')) + valueDone(a) + valueDone(b) + ended([]),
    ],
    'arguments in the item that differ from the completed ones': [
      two,
      added(call('')) + valueDone(a) + itemDone(call(b)) + ended([]),
    ],
    'a name that the item changes': [
      [['delete_draft', { amount: 1 }]],
      added(call('', { name: 'delete' })) +
        delta(a) +
        itemDone(call(a, { name: 'delete_draft' })) +
        ended([]),
    ],
    'a name that the completed arguments change': [
      [['delete_draft', { amount: 1 }]],
      added(call('', { name: 'delete' })) +
        delta(a) +
        valueDone(a, { name: 'delete_draft' }) +
        ended([]),
    ],
    'a name that the completed arguments leave empty': [
      one,
      added(call('')) + delta(a) + valueDone(a, { name: '' }) + ended([]),
    ],
    'arguments that the end leaves out': [one, added(call('')) + delta(a) + ended([call('')])],
    'arguments that are null at the end': [one, added(call('')) + delta(a) + ended([call(null)])],
    'no arguments at the end': [[['pay', {}]], added(call('')) + delta(a) + ended([call('{}')])],
    'arguments at another place': [
      none,
      added(call('')) + delta(a, { output_index: 1 }) + ended([]),
    ],
    'arguments at another place, and an end that has them': [
      one,
      added(call('')) + delta(a, { output_index: 1 }) + ended([call(a)]),
    ],
    'places that are strings': [
      one,
      added(call(''), '0') + delta(a, { ...part, output_index: '0' }) + ended([]),
    ],
    'items after the end': [one, ended([call(a)]) + itemDone(call(b, other))],
    'a cut answer with a whole call': [
      'truncated',
      added(call('')) + itemDone(call(a)) + incomplete('max_output_tokens'),
    ],
    'a filtered answer with a whole call': ['refused', incomplete('content_filter')],
    'an item that is cut': [
      'truncated',
      added(call('')) + delta(a) + itemDone(call(a, { status: 'incomplete' })) + ended([]),
    ],
    'a refusal beside the call': [
      'refused',
      ended([
        { type: 'message', id: 'm', content: [{ type: 'refusal', refusal: 'No.' }] },
        call(a),
      ]),
    ],
    'an error after the call': [
      'server',
      itemDone(call(a)) + sse({ type: 'error', code: 'server_error', message: 'x' }),
    ],
    'an end that says that it failed': [
      'server',
      ended([call(a)], { status: 'failed', error: { code: 'server_error' } }),
    ],
    'an end that says that it was cancelled': [
      'invalidResponse',
      ended([call(a)], { status: 'cancelled' }),
    ],
    'an end that says that it is under way': [
      'invalidResponse',
      ended([call(a)], { status: 'in_progress' }),
    ],
    'an end without a status': [one, ended([call(a)], { status: undefined })],
    'no end': ['invalidResponse', itemDone(call(a)) + sse('[DONE]')],
    'another response after a whole call': [
      two,
      created('r1') + itemDone(call(a)) + created('r2') + ended([call(b, other)], { id: 'r2' }),
    ],
    'an event whose name contradicts its type': [
      one,
      `event: response.output_text.delta\n${ended([call(a)])}`,
    ],
    'a number beyond all numbers': [none, ended([call('{"amount":1e400}')])],
  };

  it.each(Object.entries(edges))('X7, X31: with %s', async (_, [expected, stream]) => {
    const make = (fetch: Fetch): Model => openai.responses('gpt-5-mini', { ...settings, fetch });
    expect(await outcomeOf(make, stream, done)).toEqual(expected);
  });
});
