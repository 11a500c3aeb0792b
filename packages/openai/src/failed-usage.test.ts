import { describe, expect, it } from '@jest/globals';
import { createAgent, isMillraceError } from 'millrace';
import { openai } from './index.js';

/** The code and the usage of the error of a call, which a budget counts. */
const failedWith = async (api: 'chat' | 'responses', body: string): Promise<readonly unknown[]> => {
  const type = body.startsWith('data:') ? 'text/event-stream' : 'application/json';
  const model = openai[api]('m', {
    ...{ apiKey: 'k', baseURL: 'https://models.example/v1', retry: false },
    fetch: () => Promise.resolve(new Response(body, { headers: { 'content-type': type } })),
  });
  try {
    await createAgent({ model }).call('?');
    return ['none'];
  } catch (error) {
    if (!isMillraceError(error)) throw error;
    return [error.code, error.usage?.inputTokens, error.usage?.outputTokens];
  }
};

const events = (...data: readonly object[]): string =>
  data.map((it) => `data: ${JSON.stringify(it)}\n\n`).join('');

const usage = { prompt_tokens: 7, completion_tokens: 2 };
const used = { input_tokens: 7, output_tokens: 2 };
const error = { code: 'server_error', message: 'It broke.' };
const delta = { choices: [{ index: 0, delta: { content: 'Half' } }] };
const response = { id: 'r', status: 'failed', error, usage: used };
const started = { type: 'response.output_text.delta', item_id: 'i', delta: 'Half' };

describe('an answer that fails after its usage was reported', () => {
  it.each<[string, 'chat' | 'responses', string, string]>([
    ['by an event that is an error', 'chat', events(delta, { error, usage }), 'server'],
    [
      'by a choice that is an error',
      'chat',
      events(delta, { choices: [{ index: 0, delta: {}, error }], usage }),
      'server',
    ],
    [
      'by its finish reason',
      'chat',
      events(delta, { choices: [{ index: 0, delta: {}, finish_reason: 'error' }], usage }),
      'server',
    ],
    [
      'by its finish reason, of Groq',
      'chat',
      events(delta, {
        choices: [{ index: 0, delta: {}, finish_reason: 'error' }],
        x_groq: { usage },
      }),
      'server',
    ],
    ['by an event after it', 'chat', events(delta, { choices: [], usage }, { error }), 'server'],
    ['by an event before it', 'chat', events(delta, { error }, { choices: [], usage }), 'server'],
    [
      'by a choice before it',
      'chat',
      events(delta, { choices: [{ index: 0, delta: {}, error }] }, { choices: [], usage }),
      'server',
    ],
    [
      'by its finish reason before it',
      'chat',
      events(
        delta,
        { choices: [{ index: 0, delta: {}, finish_reason: 'error' }] },
        { error: { message: 'Again.' } },
        { choices: [], usage },
      ),
      'server',
    ],
    [
      'by an event that cannot be read before it',
      'chat',
      `${events(delta)}data: {"half\n\n${events({ choices: [], usage })}`,
      'invalidResponse',
    ],
    [
      'by an error before response.failed',
      'responses',
      events(started, { type: 'error', error }, { type: 'response.failed', response }),
      'server',
    ],
    [
      'by an end without a finish',
      'chat',
      events(delta, { choices: [], usage }),
      'invalidResponse',
    ],
    ['as a whole that is an error', 'chat', JSON.stringify({ error, usage }), 'server'],
    [
      'as a whole whose choice is an error',
      'chat',
      JSON.stringify({ choices: [{ message: { content: 'Half' }, error }], usage }),
      'server',
    ],
    [
      'as a whole without an answer',
      'chat',
      JSON.stringify({ choices: [], usage }),
      'invalidResponse',
    ],
    [
      'by response.failed',
      'responses',
      events(started, { type: 'response.failed', response }),
      'server',
    ],
    [
      'by response.completed with an error',
      'responses',
      events(started, {
        type: 'response.completed',
        response: { ...response, status: 'completed' },
      }),
      'server',
    ],
    ['as a whole that failed', 'responses', JSON.stringify(response), 'server'],
    [
      'as a whole that failed without an error',
      'responses',
      JSON.stringify({ ...response, error: null, output: [] }),
      'server',
    ],
    [
      'as a whole of an unknown status',
      'responses',
      JSON.stringify({ ...response, status: 'odd', error: null, output: [] }),
      'invalidResponse',
    ],
  ])('still costs: %s (%#, %s)', async (_, api, body, code) => {
    expect(await failedWith(api, body)).toEqual([code, 7, 2]);
  });
});
