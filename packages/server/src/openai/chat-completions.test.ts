import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, on, suspend, tool } from 'millrace';
import { denyList } from 'millrace/guards';
import { finish, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import OpenAI from 'openai';
import type { ChatCompletionChunk, ChatCompletionMessageParam } from 'openai/resources';
import { map, Subject, throwError } from 'rxjs';
import { chatServer } from '../chat/index.js';
import { clientOf, closeServers, held, post, serving, weather } from './client-of.test-support.js';
import { openAi } from './index.js';

afterEach(closeServers);

const model = 'helper';
const user = (content: string): ChatCompletionMessageParam => ({ role: 'user', content });
const usage = {
  type: 'usage',
  usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 3 },
} as const;

const read = async (stream: AsyncIterable<ChatCompletionChunk>) => {
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const choices = chunks.flatMap((chunk) => chunk.choices);
  return {
    chunks,
    text: choices.map(({ delta }) => delta.content ?? '').join(''),
    finish: choices.flatMap((it) => it.finish_reason ?? []),
  };
};

describe('a call without a conversation', () => {
  it('runs to its end when the server closes', async () => {
    const { answer, say, end } = held();
    const { client, server } = serving([answer]);
    say('Half');
    const stream = await client.chat.completions.create({
      ...{ model: 'helper', stream: true },
      messages: [{ role: 'user', content: '?' }],
    });
    const closed = server.close();
    say(' and whole.');
    end();
    let all = '';
    for await (const { choices } of stream) all += choices[0]?.delta.content ?? '';
    await closed;
    expect(all).toBe('Half and whole.');
  });

  it('L9, C1: text guards check the history that a client sends', async () => {
    const { client } = serving([[text('Fine.')]], { use: [denyList(['secret'])] });
    const asks = (first: string) =>
      client.chat.completions.create({
        model,
        messages: [user(first), { role: 'assistant', content: 'A secret?' }, user('Well?')],
      });
    await expect(asks('A secret.')).rejects.toThrow(OpenAI.APIError);
    expect((await asks('A question.')).choices[0]?.message.content).toBe('Fine.');
  });

  it('does not begin for a client that has left while its user was checked', async () => {
    const checked$ = new Subject<string>();
    const { answer, isHeard } = held();
    const { server } = serving([answer], {}, { user: () => checked$, maxCalls: 1 });
    const leaving = new AbortController();
    const answered = server.respond(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'helper', messages: [{ role: 'user', content: '?' }] }),
        signal: leaving.signal,
      }),
    );
    leaving.abort();
    checked$.next('ann');
    await answered;
    expect(isHeard()).toBe(false);
  });
});

describe('an agent as a model', () => {
  it('is listed, and found by its name', async () => {
    const { client } = serving([]);
    const listed = await client.models.list();
    expect(listed.data.map(({ id }) => id)).toEqual([model]);
    expect(await client.models.retrieve(model)).toMatchObject({ id: model, object: 'model' });
    await expect(client.models.retrieve('other')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
  });

  it('has the name and the path of the options', async () => {
    const agent = createAgent({ model: scriptedModel([text('Hello.')]) });
    const protocols = [openAi({ path: '/openai/', model: 'gpt' })];
    const client = clientOf(chatServer(agent, { protocols })).withOptions({
      baseURL: 'http://localhost/openai',
    });
    const { choices } = await client.chat.completions.create({
      model: 'gpt',
      messages: [user('Hi')],
    });
    expect(choices[0]?.message.content).toBe('Hello.');
    expect(() => openAi({ name: 'x' } as object)).toThrow(/no option 'name'/);
  });
});

describe('a chat completion', () => {
  it('answers with the whole conversation of the request, and keeps nothing', async () => {
    const { client, model: asked } = serving([[text('You are Ann.'), usage], [text('No idea.')]], {
      instructions: 'Be brief.',
    });
    const completion = await client.chat.completions.create({
      model,
      messages: [
        { role: 'system', content: 'Be kind.' },
        user('I am Ann.'),
        { role: 'assistant', content: 'Hello.' },
        { role: 'developer', content: [{ type: 'text', text: 'Be quick.' }] },
        user('Who am I?'),
      ],
      temperature: 0.5,
      max_tokens: 100,
      stop: ['END'],
    });
    expect(completion).toMatchObject({
      object: 'chat.completion',
      model,
      choices: [{ message: { role: 'assistant', content: 'You are Ann.' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 13,
        completion_tokens: 5,
        total_tokens: 18,
        prompt_tokens_details: { cached_tokens: 3 },
      },
    });
    expect(asked.requests[0]).toMatchObject({
      system: expect.stringMatching(/^Be brief\.\n\nBe kind\.\n\nBe quick\./),
      temperature: 0.5,
      maxTokens: 100,
      stopSequences: ['END'],
      messages: [
        { role: 'user', content: [{ text: 'I am Ann.' }] },
        { role: 'assistant', content: [{ text: 'Hello.' }] },
        { role: 'user', content: [{ text: 'Who am I?' }] },
      ],
    });
    await client.chat.completions.create({ model, messages: [user('Who am I?')] });
    expect(asked.requests[1]?.messages).toHaveLength(1);
  });

  it.each<[object, number]>([
    [{ max_tokens: 100 }, 50],
    [{ max_completion_tokens: 100 }, 50],
    [{ max_tokens: 20 }, 20],
    [{}, 50],
  ])('asks for no more tokens than the agent allows: %j', async (more, expected) => {
    const { client, model: asked } = serving([[text('Hello.')]], { request: { maxTokens: 50 } });
    await client.chat.completions.create({ model, messages: [user('Hi')], ...more });
    expect(asked.requests[0]?.maxTokens).toBe(expected);
  });

  it('streams deltas, and ends with the usage if it is asked for', async () => {
    const answers = [thinking('Hm.'), text('Hel'), text('lo.'), usage];
    const { client } = serving([answers, answers]);
    const { chunks, ...rest } = await read(
      await client.chat.completions.create({
        model,
        messages: [user('Hi')],
        stream: true,
        stream_options: { include_usage: true },
      }),
    );
    expect(rest).toEqual({ text: 'Hello.', finish: ['stop'] });
    expect(chunks.map(({ choices: [choice] }) => choice?.delta)).toEqual([
      { role: 'assistant', content: '' },
      { reasoning_content: 'Hm.' },
      { content: 'Hel' },
      { content: 'lo.' },
      {},
      undefined,
    ]);
    expect(chunks.at(-1)?.usage).toMatchObject({ total_tokens: 18 });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const stream = client.chat.completions.stream({ model, messages: [user('Hi')] });
    expect(await stream.finalContent()).toBe('Hello.');
  });

  it('runs the tools of the agent on the server, and does not show them', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'rain' });
    const answers = [[text('Let me see.'), toolCall('look'), finish()], [text('It rains.')]];
    const { client } = serving([...answers, ...answers], { tools: [look] });
    const request = { model, messages: [user('Weather?')] };
    const { choices } = await client.chat.completions.create(request);
    expect(choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: 'Let me see.\n\nIt rains.' },
    });
    expect(choices[0]?.message.tool_calls).toBeUndefined();
    const streamed = await read(await client.chat.completions.create({ ...request, stream: true }));
    expect(streamed.text).toBe('Let me see.\n\nIt rains.');
  });

  it('lets the client run its own tools', async () => {
    const { client, model: asked } = serving([
      [toolCall('weather', { city: 'Oslo' }, 'call_1'), finish()],
      [text('Rain.')],
    ]);
    const runner = client.chat.completions.runTools({
      model,
      stream: true,
      messages: [user('Weather in Oslo?')],
      tools: [
        {
          type: 'function',
          function: {
            ...weather,
            parse: JSON.parse,
            function: ({ city }: { city: string }) => `It rains in ${city}.`,
          },
        },
      ],
    });
    const ends: string[] = [];
    runner.on('chatCompletion', ({ choices }) => ends.push(String(choices[0]?.finish_reason)));
    expect(await runner.finalContent()).toBe('Rain.');
    expect(ends).toEqual(['tool_calls', 'stop']);
    expect(asked.requests[0]).toMatchObject({
      tools: [{ name: 'weather', inputSchema: weather.parameters }],
    });
    expect(asked.requests[1]?.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: [{ type: 'tool_call', id: 'call_1', name: 'weather' }] },
      { role: 'tool', content: [{ content: [{ text: 'It rains in Oslo.' }], isError: false }] },
    ]);
  });

  it('shows each tool call with its arguments', async () => {
    const tools = [{ type: 'function', function: weather } as const];
    const { client, model: asked } = serving([
      [toolCall('weather', { city: 'Oslo' }, 'a'), toolCall('weather', { city: 'Rom' }, 'b')],
    ]);
    const stream = client.chat.completions.stream({
      model,
      tools,
      messages: [user('?')],
      tool_choice: { type: 'function', function: { name: 'weather' } },
    });
    const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0] ?? {};
    expect(finish_reason).toBe('tool_calls');
    expect(asked.requests[0]?.toolChoice).toEqual({ name: 'weather' });
    expect(message?.tool_calls).toMatchObject([
      { id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
      { id: 'b', type: 'function', function: { name: 'weather', arguments: '{"city":"Rom"}' } },
    ]);
  });

  it('answers a tool of the agent that suspends, as one of the client', async () => {
    const where = tool({ name: 'where', description: 'Where.', run: () => suspend() });
    const { client } = serving([[toolCall('where', {}, 'w'), finish()], [text('Oslo.')]], {
      tools: [where],
    });
    const messages = [user('Where?')];
    const first = await client.chat.completions.create({ model, messages });
    const message = first.choices[0]?.message;
    expect(message?.tool_calls).toMatchObject([{ id: 'w', function: { name: 'where' } }]);
    const second = await client.chat.completions.create({
      model,
      messages: [
        ...messages,
        message as ChatCompletionMessageParam,
        { role: 'tool', tool_call_id: 'w', content: 'In Oslo' },
      ],
    });
    expect(second.choices[0]?.message.content).toBe('Oslo.');
  });

  it('returns JSON for a schema, without the text around it', async () => {
    const answer = [text('Here: {"city":"Oslo"}')];
    const { client, model: asked } = serving([answer, answer, answer]);
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    };
    const request = {
      model,
      messages: [user('Where?')],
      response_format: { type: 'json_schema' as const, json_schema: { name: 'place', schema } },
    };
    const { choices } = await client.chat.completions.parse(request);
    expect(choices[0]?.message.parsed).toEqual({ city: 'Oslo' });
    const stream = client.chat.completions.stream(request);
    expect(await stream.finalContent()).toBe('{"city":"Oslo"}');
    expect(asked.requests[0]?.outputSchema).toEqual(schema);
    const object = { ...request, response_format: { type: 'json_object' as const } };
    const { choices: others } = await client.chat.completions.create(object);
    expect(others[0]?.message.content).toBe('{"city":"Oslo"}');
  });

  it('reports why an answer is incomplete', async () => {
    const { client } = serving([
      [text('Once upon'), finish('length')],
      [text('No.'), finish('filtered')],
    ]);
    const ask = () => client.chat.completions.create({ model, messages: [user('?')] });
    expect((await ask()).choices[0]?.finish_reason).toBe('length');
    expect((await ask()).choices[0]?.finish_reason).toBe('content_filter');
  });

  it('never ends with a message that was discarded: a stream that has shown it ends with an error', async () => {
    const again = on(
      'postReasoning',
      map((event) => (event.iteration === 1 ? { ...event, again: 'Better!' } : event)),
    );
    const answers = [[text('Bad.')], [text('Good.')]];
    const { client } = serving([...answers, ...answers], { use: [again] });
    const request = { model, messages: [user('?')] };
    const { choices } = await client.chat.completions.create(request);
    expect(choices[0]?.message.content).toBe('Good.');
    const stream = await client.chat.completions.create({ ...request, stream: true });
    await expect(read(stream)).rejects.toMatchObject({ code: 'message_discarded' });
  });

  it('reads images, audio and files', async () => {
    const { client, model: asked } = serving([[text('Nice.')]]);
    await client.chat.completions.create({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See:' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,aaaa' } },
            { type: 'input_audio', input_audio: { data: 'bbbb', format: 'mp3' } },
            {
              type: 'file',
              file: { file_data: 'data:application/pdf;base64,cccc', filename: 'a.pdf' },
            },
          ],
        },
      ],
    });
    expect(asked.requests[0]?.messages[0]?.content).toMatchObject([
      { type: 'text', text: 'See:' },
      { type: 'image', source: { mediaType: 'image/png', data: 'aaaa' } },
      { type: 'audio', source: { mediaType: 'audio/mpeg', data: 'bbbb' } },
      { type: 'file', source: { mediaType: 'application/pdf', data: 'cccc' }, name: 'a.pdf' },
    ]);
  });

  it('is aborted when its client leaves', async () => {
    const { answer, say, isHeard } = held();
    const { client } = serving([answer]);
    const stream = await client.chat.completions.create({
      model,
      messages: [user('?')],
      stream: true,
    });
    say('Once');
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'Once') break;
    expect(isHeard()).toBe(false);
  });

  it('is aborted when the client of a non-streamed answer leaves', async () => {
    const { answer, isHeard } = held();
    const { client } = serving([answer]);
    const leaving = new AbortController();
    const asked = client.chat.completions.create(
      { model, messages: [user('?')] },
      { signal: leaving.signal },
    );
    asked.catch(() => undefined);
    while (!isHeard()) await Promise.resolve();
    leaving.abort();
    await expect(asked).rejects.toThrow();
    expect(isHeard()).toBe(false);
  });

  it('counts towards the calls of the server', async () => {
    const { answer, end, say } = held();
    const { client } = serving([answer, [text('Free.')]], {}, { maxCalls: 1 });
    const request = { model, messages: [user('?')] };
    const first = await client.chat.completions.create({ ...request, stream: true });
    const once = client.withOptions({ maxRetries: 0 });
    await expect(once.chat.completions.create(request)).rejects.toMatchObject({
      status: 503,
      code: 'busy',
    });
    say('One.');
    end();
    expect((await read(first)).text).toBe('One.');
    const { choices } = await client.chat.completions.create(request);
    expect(choices[0]?.message.content).toBe('Free.');
  });

  it('reports an error of its call once, and the SDK does not repeat the call', async () => {
    const secret = new MillraceError('server', 'secret', { status: 502 });
    const { client, model: asked, errors } = serving([() => throwError(() => secret), []]);
    const request = { model, messages: [user('?')] };
    const failed = client.chat.completions.create(request);
    await expect(failed).rejects.toMatchObject({
      status: 500,
      code: 'server',
      message: '500 The service did not respond as expected. Please try again.',
    });
    expect([asked.requests.length, errors]).toEqual([1, ['server']]);
  });

  it('ends a stream with the error of its call', async () => {
    const secret = new MillraceError('rateLimited', 'secret');
    const { client, errors } = serving([() => throwError(() => secret)]);
    const request = { model, messages: [user('?')], stream: true as const };
    await expect(
      client.chat.completions.create(request).then((stream) => read(stream)),
    ).rejects.toMatchObject({
      code: 'rateLimited',
      message: expect.not.stringContaining('secret'),
    });
    expect(errors).toEqual(['rateLimited']);
  });
});

describe('a request for a chat completion that is refused', () => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const withTools = (...tools: readonly unknown[]) => ({ messages: [user('?')], tools });
  const named = (name: unknown, parameters: unknown = undefined) => ({
    type: 'function',
    function: { name, parameters },
  });
  it.each<[string, unknown, string | null]>([
    ['no object', [], null],
    ['no messages', {}, 'messages'],
    ['no message', { messages: [] }, null],
    ['messages that are no list', { messages: { length: 1 } }, 'messages'],
    ['an unknown role', { messages: [{ role: 'root', content: 'x' }] }, 'messages[0].role'],
    ['nothing', { messages: [null] }, 'messages[0].role'],
    [
      'an assistant at the end',
      { messages: [user('?'), { role: 'assistant', content: 'x' }] },
      null,
    ],
    [
      'a URL',
      {
        messages: [
          {
            role: 'user',
            content: [{ type: 'image_url', image_url: { url: 'http://10.0.0.1/' } }],
          },
        ],
      },
      'messages[0].content',
    ],
    [
      'a tool call without a result',
      { messages: [user('?'), { role: 'assistant', tool_calls: [call] }, user('!')] },
      null,
    ],
    [
      'a result without a tool call',
      { messages: [user('?'), { role: 'tool', tool_call_id: 'a', content: 'x' }] },
      null,
    ],
    [
      'two results',
      {
        messages: [
          user('?'),
          { role: 'assistant', tool_calls: [call] },
          { role: 'tool', tool_call_id: 'a', content: 'x' },
          { role: 'tool', tool_call_id: 'a', content: 'x' },
        ],
      },
      null,
    ],
    ['n', { messages: [user('?')], n: 2 }, 'n'],
    ['a temperature', { messages: [user('?')], temperature: 'hot' }, 'temperature'],
    ['tokens', { messages: [user('?')], max_tokens: 0 }, 'max_tokens'],
    ['stream', { messages: [user('?')], stream: 'yes' }, 'stream'],
    ['stop', { messages: [user('?')], stop: [1] }, 'stop'],
    ['a form', { messages: [user('?')], response_format: { type: 'xml' } }, 'response_format'],
    [
      'a schema',
      {
        messages: [user('?')],
        response_format: { type: 'json_schema', json_schema: { schema: { type: 'array' } } },
      },
      'response_format',
    ],
    ['a tool without a name', withTools(named(undefined)), 'tools'],
    ['a tool that is no function', withTools({ type: 'custom' }), 'tools'],
    ['a tool of the server', withTools(named('look')), 'tools'],
    ['two tools of one name', withTools(named('a'), named('a')), 'tools'],
    ['parameters', withTools(named('a', { type: 'string' })), 'tools'],
    [
      'a tool choice',
      { messages: [user('?')], tool_choice: { type: 'function', function: { name: 'look' } } },
      'tool_choice',
    ],
  ])('%s', async (_what, body, param) => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => '' });
    const { server, model: asked } = serving([[text('x')]], { tools: [look] });
    const response = await post(server, '/chat/completions', JSON.stringify(body));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { type: 'invalid_request_error', message: expect.any(String), param },
    });
    expect(asked.requests).toEqual([]);
  });

  it('is no JSON, too large, or holds keys of a prototype', async () => {
    const { server, model: asked } = serving([[text('x')]], {}, { maxBytes: 1_000 });
    expect((await post(server, '/chat/completions', '{')).status).toBe(400);
    const large = await post(server, '/chat/completions', JSON.stringify(user('x'.repeat(1_000))));
    expect([large.status, Object.keys((await large.json()) as object)]).toEqual([413, ['error']]);
    const keys = '{"__proto__":{"messages":[{"role":"user","content":"?"}]}}';
    expect((await post(server, '/chat/completions', keys)).status).toBe(400);
    expect(asked.requests).toEqual([]);
  });

  it('is long: it takes no more than linear time', async () => {
    const { server } = serving([]);
    const messages = Array.from({ length: 10_001 }, () => user('x'));
    const body = JSON.stringify({ messages });
    expect((await post(server, '/chat/completions', body)).status).toBe(400);
  });

  it.each(['__proto__', 'constructor', 'prototype'])('has %s in arguments', async (key) => {
    const { server, model: asked, errors } = serving([[text('Yes.')]]);
    const body = {
      messages: [
        user('?'),
        {
          role: 'assistant',
          tool_calls: [
            {
              id: 'a',
              type: 'function',
              function: { name: 't', arguments: `{"${key}":{"x":1},"y":2}` },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'a', content: `{"${key}":{"x":1}}` },
      ],
    };
    const { status } = await post(server, '/chat/completions', JSON.stringify(body));
    expect([status, errors]).toEqual([200, []]);
    expect(JSON.stringify(asked.requests[0]?.messages)).not.toContain(`"input":{"__proto__"`);
  });

  it('is nested deeply', async () => {
    const { server, errors } = serving([[text('x')]]);
    const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
    const tools = `[{"type":"function","function":{"name":"f","parameters":{"type":"object","x":${deep}}}}]`;
    const body = `{"messages":[{"role":"user","content":"?"}],"tools":${tools}}`;
    expect((await post(server, '/chat/completions', body)).status).toBe(400);
    const deepCall = { id: 'a', type: 'function', function: { name: 'f', arguments: deep } };
    const messages = [
      user('?'),
      { role: 'assistant', tool_calls: [deepCall] },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
    ];
    const history = await post(server, '/chat/completions', JSON.stringify({ messages }));
    expect([history.status, errors]).toEqual([400, ['invalidRequest', 'invalidRequest']]);
  });

  it('is for another model', async () => {
    const { client } = serving([]);
    await expect(
      client.chat.completions.create({ model: 'gpt-5', messages: [user('?')] }),
    ).rejects.toThrow("404 The model does not exist. This server has 'helper'.");
  });

  it('has no user: the SDK shows why', async () => {
    const { client } = serving([], {}, { user: () => undefined });
    await expect(client.models.list()).rejects.toThrow('401 You are not logged in.');
    await expect(client.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });
});
