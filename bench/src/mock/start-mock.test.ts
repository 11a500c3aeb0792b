import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { request } from 'node:https';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiKey, lookup, weatherOf } from '../lookup.js';
import { answerOf } from './answer.js';
import { at, listAt, textAt } from './paths.js';
import { type Mock, startMock } from './start-mock.js';

const tools = [{ type: 'function', function: lookup }];
const question = { role: 'user', content: 'What is the weather?' };
const toolCalls = [0, 1].map((day) => ({
  id: `call_0_${day}`,
  type: 'function',
  function: { name: 'lookup', arguments: `{"city":"Oslo","day":${day}}` },
}));
const asks = { role: 'assistant', content: null, tool_calls: toolCalls };
const result = (day: number) => ({
  role: 'tool',
  tool_call_id: `call_0_${day}`,
  content: weatherOf('Oslo', day),
});

describe('the mock over HTTP', () => {
  let mock: Mock;
  beforeAll(async () => {
    mock = await startMock();
  });
  afterAll(() => mock.close());

  const ask = (
    body: object,
    { key = apiKey, path = '/chat/completions' } = {},
  ): Promise<Response> =>
    fetch(`${mock.baseURL}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    });

  it('plays the turns of a script, then the answer, by the conversation alone', async () => {
    const model = 'gpt-bench-1x2-7';
    const first = await (await ask({ model, tools, messages: [question], stream: true })).text();
    expect(first).toContain('"finish_reason":"tool_calls"');
    const messages = [question, asks, result(0), result(1)];
    const second = await (await ask({ model, tools, messages, stream: true })).text();
    expect(second).toContain('"finish_reason":"stop"');
    expect(second.match(/"content":"[^"]/g)).toHaveLength(7);
    expect(second.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  it('answers as a whole if it is not asked for a stream', async () => {
    const body: unknown = await (await ask({ model: '0x0-12', messages: [question] })).json();
    const [choice] = listAt(body, 'choices');
    expect(textAt(at(choice, 'message'), 'content')).toBe(answerOf(12));
  });

  it.each([
    ['a missing result', 400, { messages: [question, asks, result(0)] }, /no result: call_0_1/],
    ['no tools', 400, { messages: [question], tools: [] }, /not offered/],
    ['a model that plays nothing', 404, { messages: [question], model: 'gpt-5' }, /no script/],
  ])('refuses %s', async (_, status, body, why) => {
    const response = await ask({ model: '1x2-7', tools, stream: true, ...body });
    expect(response.status).toBe(status);
    expect(await response.text()).toMatch(why);
    expect((await mock.seen()).refused.at(-1)).toMatch(why);
  });

  it('refuses another key, another path and what is no JSON object', async () => {
    const body = { model: '0x0-5', messages: [question] };
    expect((await ask(body, { key: 'other' })).status).toBe(401);
    expect((await ask(body, { path: '/completions' })).status).toBe(404);
    expect((await ask([body])).status).toBe(400);
  });

  it('I5: sees when a client leaves in the middle of a stream, and only then', async () => {
    await (await ask({ model: '0x0-20', messages: [question], stream: true })).text();
    expect((await mock.seen()).cutAt).toEqual([]);
    const left = await ask({ model: '0x0-9999-5', messages: [question], stream: true });
    await left.body?.cancel();
    while ((await mock.seen()).cutAt.length === 0) await sleep(1);
  });
});

it('marks how far a stream has come, if the system reports it', async () => {
  const mock = await startMock({ isWatching: true });
  const body = JSON.stringify({ model: '0x0-10-10', messages: [question], stream: true });
  const headers = { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${mock.baseURL}/chat/completions`, {
    method: 'POST',
    headers,
    body,
  });
  const { length } = await response.text();
  const [marks = []] = (await mock.seen()).watched;
  await mock.close();
  if (process.platform !== 'linux') return;
  const { written = NaN, sendQueue } = marks.at(-1) ?? {};
  expect(marks.length).toBeGreaterThan(1);
  expect(written).toBeLessThan(length * 1.3);
  expect(sendQueue).toBeGreaterThanOrEqual(0);
});

describe('the mock over TLS', () => {
  let mock: Mock;
  beforeAll(async () => {
    mock = await startMock({ isTls: true });
  });
  afterAll(() => mock.close());

  const asked = (ca?: string) => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const options = { method: 'POST', headers, agent: false, ...(ca && { ca }) };
    return request(`${mock.baseURL}/chat/completions`, options).end(
      JSON.stringify({ model: '0x0-12', messages: [question] }),
    );
  };

  it('answers a client that trusts its certificate', async () => {
    expect(mock.baseURL).toMatch(/^https:/);
    const [response] = await once(asked(mock.certificate), 'response');
    const [choice] = listAt(await json(response), 'choices');
    expect(textAt(at(choice, 'message'), 'content')).toBe(answerOf(12));
  });

  it('is not trusted otherwise', async () => {
    await expect(once(asked(), 'response')).rejects.toThrow(/self-signed certificate/);
  });
});
