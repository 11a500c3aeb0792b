import { describe, expect, it } from '@jest/globals';
import { createAgent, isMillraceError } from 'millrace';
import { anthropic } from './index.js';

/** The code and the usage of the error of a call, which a budget counts. */
const failedWith = async (body: string): Promise<readonly unknown[]> => {
  const type = body.startsWith('data:') ? 'text/event-stream' : 'application/json';
  const model = anthropic('m', {
    ...{ apiKey: 'k', baseURL: 'https://models.example', retry: false },
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

const usage = { input_tokens: 7, output_tokens: 2 };
const error = { type: 'overloaded_error', message: 'Too much.' };
const start = { type: 'message_start', message: { id: 'm', content: [], usage } };
const stray = { type: 'content_block_delta', index: 3, delta: { type: 'input_json_delta' } };
const broken = { id: 'm', content: [{ type: 'text', text: 'Half' }], usage };

describe('an answer that fails after its usage was reported', () => {
  it.each([
    ['by an event that is an error', events(start, { type: 'error', error }), 'server'],
    ['by an error with usage', events({ type: 'error', error, usage }), 'server'],
    ['by an event of an unknown shape', events(start, stray), 'invalidResponse'],
    ['by an end without a stop reason', events(start), 'invalidResponse'],
    ['as a whole that is an error', JSON.stringify({ type: 'error', error, usage }), 'server'],
    ['as a whole without a stop reason', JSON.stringify(broken), 'invalidResponse'],
  ])('still costs: %s', async (_, body, code) => {
    expect(await failedWith(body)).toEqual([code, 7, 2]);
  });
});
