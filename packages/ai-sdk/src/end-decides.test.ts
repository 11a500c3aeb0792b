import { afterEach, describe, expect, it } from '@jest/globals';
import { isMillraceError, textOf } from 'millrace';
import { ask, chat, closeServers, cutOff, oslo, responses, type Make } from './ask.test-support.js';
import type { Response } from './serve.test-support.js';
import {
  chatCall,
  chatCalls,
  chatStop,
  chatText,
  completed,
  completion,
  itemAdded,
  itemDone,
  message,
  messageItem,
  response,
  responseText,
} from './wire-events.test-support.js';

afterEach(closeServers);

describe('a preview is not the end', () => {
  const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather' };
  const args = '{"city":"Oslo","days":365}';

  it('01: arguments without deltas never run as defaults', async () => {
    const list = [
      itemAdded(0, { ...item, arguments: '' }),
      {
        type: 'response.function_call_arguments.done',
        ...{ item_id: 'fc_1', output_index: 0, arguments: args },
      },
    ];
    const whole = itemDone(0, { ...item, arguments: args, status: 'completed' });
    const { runs } = await ask(responses, [
      response(...list, whole, completed()),
      responseText('Done.'),
    ]);
    expect(runs).toEqual([{ city: 'Oslo', days: 365 }]);
    const cut = await ask(responses, [response(...list, completed())]);
    expect(cut.error).toMatchObject(cutOff);
    expect(cut.runs).toEqual([]);
  });

  it('the whole call replaces the arguments that streamed', async () => {
    const delta = { type: 'response.function_call_arguments.delta', item_id: 'fc_1' };
    const { runs } = await ask(responses, [
      response(
        itemAdded(0, { ...item, arguments: '' }),
        { ...delta, output_index: 0, delta: '{"city":"Rome"}' },
        itemDone(0, { ...item, arguments: oslo, status: 'completed' }),
        completed(),
      ),
      responseText('Done.'),
    ]);
    expect(runs).toEqual([{ city: 'Oslo', days: 1 }]);
  });

  it.each<[string, Make, Response]>([
    ['text of chat completions', chat, completion({ delta: { content: 'Half' } })],
    ['a call of chat completions', chat, completion(chatCall(0, 'weather', oslo))],
    ['text of responses', responses, response(...message(0, 'Half'))],
  ])('without a finish is an error: %s', async (_, make, cut) => {
    const { error, runs } = await ask(make, [cut]);
    expect(error).toMatchObject(cutOff);
    expect(runs).toEqual([]);
  });

  it('02: sequence numbers decide nothing', async () => {
    const list = [...message(0, 'It ', 'snows ', 'in Oslo.'), completed()];
    for (const number of [(index: number) => index % 2, () => 1]) {
      const numbered = list.map((it, index) => ({ ...it, sequence_number: number(index) }));
      const { reply } = await ask(responses, [response(...numbered)]);
      expect(reply && textOf(reply)).toBe('It snows in Oslo.');
    }
  });

  it('03: an answer that only the last event has is asked for again, and never half of it', async () => {
    const said = messageItem('m1', { content: [{ type: 'output_text', text: 'Hello.' }] });
    const { reply, server } = await ask(responses, [
      response(completed([said])),
      responseText('Hello again.'),
    ]);
    expect(reply && textOf(reply)).toBe('Hello again.');
    expect(server.bodies).toHaveLength(2);
  });

  it.each([
    [
      'a finish on each call',
      [
        chatCall(0, 'weather', oslo, chatCalls),
        chatCall(1, 'weather', '{"city":"Rome"}', chatCalls),
        chatStop,
      ],
      ['Oslo', 'Rome'],
    ],
    [
      'a finish before the call',
      [
        { delta: { content: 'I look. ' }, finish_reason: 'stop' },
        chatCall(0, 'weather', oslo),
        chatStop,
      ],
      ['Oslo'],
    ],
  ])('04: %s loses no call', async (_, choices, cities) => {
    const { runs } = await ask(chat, [completion(...choices), chatText('Done.')]);
    expect(runs).toMatchObject(cities.map((city) => ({ city })));
  });
});

describe('what waits, and what fails', () => {
  it.each([
    { type: 'mcp_approval_request', name: 'roll', server_label: 'dice', arguments: '{"dice":2}' },
    { type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: '*** Begin' },
    { type: 'shell_call', call_id: 'call_1', action: { commands: ['ls'] }, status: 'completed' },
  ])('05: an item that waits is no complete answer: $type', async (item) => {
    const { error, reply } = await ask(responses, [
      response(...message(0, 'I do it.'), itemDone(1, { id: 'x_1', ...item }), completed()),
      responseText('Done.'),
    ]);
    // A package that hands the item over makes a call of it, which has no tool.
    const isTold = isMillraceError(error) || reply?.toolCalls.some(({ isError }) => isError);
    expect(isTold).toBe(true);
  });

  it.each([
    ['then stop', [{ error: { code: 502, message: 'Provider died.' } }, chatStop]],
    ['with stop', [{ ...chatStop, error: { code: 504, message: 'Upstream timed out.' } }]],
  ])('09: an error in a choice, %s, ends no half answer', async (_, choices) => {
    const { error } = await ask(chat, [
      completion({ delta: { content: 'The total is 4' } }, ...choices),
    ]);
    expect(error).toMatchObject({ retryable: true, partial: 'The total is 4' });
    expect(String(error)).toMatch(/Provider died|Upstream timed out/);
  });

  it('16: a call of a custom tool is no call without a name', async () => {
    const custom = { index: 0, id: 'c1', type: 'custom', custom: { name: 'patch', input: '*' } };
    const { error, runs } = await ask(chat, [
      completion({ delta: { tool_calls: [custom] } }, chatCalls),
    ]);
    expect(error).toMatchObject({ code: 'invalidResponse' });
    expect(runs).toEqual([]);
  });

  it.each([
    "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens.",
    'Input is too long for requested model.',
    'Prompt exceeds max length',
    'too many tokens: total number of tokens in the prompt exceeds the limit of 128000',
  ])('10: a conversation that is too long: %s', async (message) => {
    const headers = { 'content-type': 'application/json' };
    // The second form is none of OpenAI, so its package says only the text of the status.
    for (const body of [
      { error: { message, type: 'invalid_request_error' } },
      { error: message },
    ]) {
      const frames = [JSON.stringify(body)];
      const { error } = await ask(chat, [{ status: 400, headers, frames }]);
      expect(error).toMatchObject({ code: 'contextTooLong', retryable: false });
    }
  });
});
