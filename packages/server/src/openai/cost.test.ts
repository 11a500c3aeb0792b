import { afterEach, expect, it } from '@jest/globals';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { cost, type PriceList } from 'millrace/traffic';
import { clientOf, closeServers, serving, weather } from './client-of.test-support.js';

afterEach(closeServers);

const model = 'helper';
const usage = {
  type: 'usage',
  usage: { inputTokens: 1_000, outputTokens: 500, cacheReadTokens: 0 },
} as const;
const list: PriceList = {
  currency: 'USD',
  date: '2026-11-30',
  prices: { [scriptedModel().name]: { input: 2, output: 4 } },
};
const answer = [text('Hello.'), usage];

/** The usage of a completion and of a response, whole and streamed, and of the response that is read again. */
const usages = async (prices: PriceList | undefined): Promise<readonly unknown[]> => {
  const { client } = serving([answer, answer, answer, answer], {
    ...(prices && { use: [cost(prices)] }),
  });
  const messages = [{ role: 'user' as const, content: 'Hi' }];
  const completion = await client.chat.completions.create({ model, messages });
  const chunks = [];
  for await (const chunk of await client.chat.completions.create({
    ...{ model, messages, stream: true },
    stream_options: { include_usage: true },
  })) {
    chunks.push(chunk);
  }
  const response = await client.responses.create({ model, input: 'Hi' });
  const events = [];
  for await (const event of await client.responses.create({ model, input: 'Hi', stream: true })) {
    events.push(event);
  }
  const last = events.at(-1);
  const again = await client.responses.retrieve(response.id);
  return [
    ...[completion.usage, chunks.at(-1)?.usage, response.usage],
    ...[last?.type === 'response.completed' ? last.response.usage : undefined, again.usage],
  ];
};

it('reports what a call has cost, in dollars, in the usage of both formats', async () => {
  const found = await usages(list);
  expect(found).toHaveLength(5);
  for (const it of found) expect(it).toMatchObject({ total_tokens: 1_500, cost: 0.004 });
});

it.each<[string, PriceList | undefined]>([
  ['without prices', undefined],
  ['in another currency', { ...list, currency: 'EUR' }],
  ['if a part of it is unknown', { ...list, prices: {} }],
])('reports no cost %s', async (_when, prices) => {
  const found = await usages(prices);
  for (const it of found) {
    expect(it).toMatchObject({ total_tokens: 1_500 });
    expect(it).not.toHaveProperty('cost');
  }
});

it('reports the cost so far of a call that waits for a tool of the client', async () => {
  const answers = [[toolCall('weather', { city: 'Oslo' }), usage]];
  const { server } = serving(answers, { use: [cost(list)] });
  const completion = await clientOf(server).chat.completions.create({
    ...{ model, messages: [{ role: 'user', content: 'Weather?' }] },
    tools: [{ type: 'function', function: weather }],
  });
  expect(completion).toMatchObject({
    choices: [{ finish_reason: 'tool_calls' }],
    usage: { cost: 0.004 },
  });
});
