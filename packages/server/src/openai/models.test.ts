import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import OpenAI, { NotFoundError } from 'openai';
import {
  type ChatServer,
  chatServer,
  type ChatServerOptions,
  type MountedServers,
} from '../chat/index.js';
import { openAi, openAiModels } from './index.js';

const closing: ChatServer[] = [];
afterEach(() => Promise.all(closing.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

const serverOf = (name: string, options: ChatServerOptions = {}) => {
  const answers = Array.from({ length: 8 }, () => [text(`I am ${name}.`)]);
  const agent = createAgent({ name, model: scriptedModel(...answers) });
  const server = chatServer(agent, { protocols: [openAi()], ...options });
  closing.push(server);
  return server;
};

const both = (options: ChatServerOptions = {}, other = options) =>
  openAiModels({ sales: serverOf('sales', options), support: serverOf('support', other) });

const clientOf = ({ respond }: MountedServers, apiKey = 'none') =>
  new OpenAI({
    apiKey,
    baseURL: 'http://localhost/v1',
    fetch: (input, init) => respond(new Request(String(input), init)),
  });

const post = (path: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
  new Request(`http://localhost/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });

const asking = (model: unknown) =>
  JSON.stringify({ model, messages: [{ role: 'user', content: 'Who are you?' }] });

const missing = {
  error: {
    message: "The model does not exist. This server has 'sales', 'support'.",
    type: 'invalid_request_error',
    param: 'model',
    code: 'model_not_found',
  },
};

describe('X43: several agents as the models of one OpenAI API', () => {
  it.each(['sales', 'support'])('asks the agent of the model %s', async (model) => {
    const client = clientOf(both());
    const messages = [{ role: 'user' as const, content: 'Who are you?' }];
    const chat = await client.chat.completions.create({ model, messages });
    expect([chat.model, chat.choices[0]?.message.content]).toEqual([model, `I am ${model}.`]);
    let streamed = '';
    for await (const chunk of await client.chat.completions.create({
      ...{ model, messages, stream: true },
    })) {
      streamed += chunk.choices[0]?.delta.content ?? '';
    }
    expect(streamed).toBe(`I am ${model}.`);
    const response = await client.responses.create({ model, input: 'Who are you?' });
    expect(response.output_text).toBe(`I am ${model}.`);
    const again = await client.responses.retrieve(response.id);
    expect([again.model, again.output_text]).toEqual([model, `I am ${model}.`]);
    expect((await client.responses.cancel(response.id)).id).toBe(response.id);
    const next = { model, input: 'And now?', previous_response_id: response.id };
    expect((await client.responses.create(next)).output_text).toBe(`I am ${model}.`);
    expect((await client.models.retrieve(model)).id).toBe(model);
  });

  it('lists all of them', async () => {
    const models = await clientOf(both()).models.list();
    expect(models.data.map(({ id, object }) => [id, object])).toEqual([
      ['sales', 'model'],
      ['support', 'model'],
    ]);
    const head = new Request('http://localhost/v1/models/', { method: 'HEAD' });
    const { status, body } = await both().respond(head);
    expect([status, body]).toEqual([200, null]);
  });

  it.each(['/chat/completions', '/responses', '/responses/'])(
    'refuses a model that it lacks, with the names of the others: %s',
    async (path) => {
      for (const model of ['none', undefined, null, 5, ['sales'], '__proto__', 'Sales', '']) {
        const answer = await both().respond(post(path, asking(model)));
        expect([answer.status, await answer.json()]).toEqual([404, missing]);
      }
    },
  );

  it('refuses a model that it lacks as the SDK expects', async () => {
    const client = clientOf(both());
    const messages = [{ role: 'user' as const, content: 'Who are you?' }];
    const asked = client.chat.completions.create({ model: 'none', messages });
    await expect(asked).rejects.toThrow("This server has 'sales', 'support'.");
    await expect(client.models.retrieve('a/b%')).rejects.toBeInstanceOf(NotFoundError);
    await expect(client.responses.retrieve('resp_none')).rejects.toBeInstanceOf(NotFoundError);
  });

  it.each([
    ['not JSON', post('/responses', '{'), 400],
    ['a list', post('/chat/completions', '[]'), 400],
    ['another type', post('/responses', '{}', { 'content-type': 'text/plain' }), 415],
    ['too large', post('/responses', 'x'.repeat(2_000)), 413],
    ['not UTF-8', new Request(post('/responses', ''), { body: new Uint8Array([0xff]) }), 400],
    ['another path', post('/other', '{}'), 404],
    ['another method', new Request('http://localhost/v1/models', { method: 'PUT' }), 405],
  ])('refuses what is malformed: %s', async (_, request, status) => {
    const servers = { sales: serverOf('sales'), support: serverOf('support') };
    const answer = await openAiModels(servers, { maxBytes: 1_000 }).respond(request);
    expect(answer.status).toBe(status);
  });

  it('shows to a user only what the servers show', async () => {
    const keyOf = (key: string) => ({
      user: ({ headers }: Request) =>
        headers.get('authorization') === `Bearer ${key}` ? 'ann' : undefined,
    });
    const models = both(keyOf('one'), keyOf('two'));
    const list = await clientOf(models, 'two').models.list();
    expect(list.data.map(({ id }) => id)).toEqual(['support']);
    const headers = { authorization: 'Bearer two' };
    const unknown = await models.respond(post('/responses', asking('none'), headers));
    expect(await unknown.json()).toMatchObject({
      error: { message: "The model does not exist. This server has 'support'." },
    });
    const denied = await models.respond(post('/responses', asking('none')));
    expect([denied.status, await denied.text()]).toEqual([
      401,
      expect.not.stringContaining('support'),
    ]);
    expect((await models.respond(post('/responses', asking('sales'), headers))).status).toBe(401);
  });

  it('answers pages of the origins that a server allows', async () => {
    const origin = 'https://app.example';
    const models = both({}, { origins: [origin] });
    const preflight = new Request('http://localhost/v1/responses', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    });
    const allowed = await models.respond(preflight);
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([
      204,
      origin,
    ]);
    for (const body of [asking('none'), asking('support')]) {
      const answer = await models.respond(post('/chat/completions', body, { origin }));
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
    }
    const list = await models.respond(
      new Request('http://localhost/v1/models', { headers: { origin } }),
    );
    expect(list.headers.get('access-control-allow-origin')).toBe(origin);
    expect(await list.json()).toMatchObject({ data: [{ id: 'support' }] });
  });

  it('handles only the routes below its path', () => {
    const own = { protocols: [openAi({ path: '/llm/v1' })] };
    const models = openAiModels({ sales: serverOf('sales', own) }, { path: '/llm/v1/' });
    const at = (path: string, method = 'GET') =>
      models.handles({ method, url: `http://localhost${path}` });
    expect(at('/llm/v1/models')).toBe(true);
    expect(at('/llm/v1/chat/completions', 'POST')).toBe(true);
    expect(at('/llm/v1/chat/completions', 'OPTIONS')).toBe(true);
    for (const path of ['/api/chat', '/llm/v1', '/llm/v1/other', '/v1/models']) {
      expect(at(path)).toBe(false);
    }
  });

  it.each([[undefined], [{}], [{ sales: 5 }], [{ '': serverOf('x') }]])('refuses %j', (servers) => {
    expect(() => openAiModels(servers as never)).toThrow('servers by the names of their models');
  });
});
