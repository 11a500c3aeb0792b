import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  createAgent,
  fallback,
  type Model,
  type ModelChunk,
  type ModelRequest,
  output,
  textOf,
  tool,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { lentContext, modelContract } from 'millrace/testing';
import {
  bodyOf,
  bytes,
  type FaultServer,
  json,
  type Played,
  type ResponseScript,
  type Scenario,
  stall,
  startFaultServer,
  streamed,
  streamHeaders,
  streamOf,
  vendorError,
} from '@millrace/fault-server';
import { toolNames } from '@millrace/wire';
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs';
import { user } from './conversation.test-support.js';
import { endpoint } from './endpoint.js';
import { azure, deepseek, gemini, groq, ollama, openai, snowflake, vllm } from './vendors.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const before = { ...process.env };
afterEach(() => {
  process.env = { ...before };
});

const apiKey = 'sk-test-0123456789';

const play = (
  responses: readonly ResponseScript[],
  scenario: Partial<Scenario> = {},
): Promise<Played> => server.play({ responses, ...scenario });

const hello = (wire: 'chat' | 'responses'): ResponseScript =>
  streamed(streamOf(wire, { text: 'Hello.' }));

const question: ModelRequest = { messages: [user('Hi')] };

const ask = (model: Model, request: ModelRequest = question): Promise<readonly ModelChunk[]> =>
  lastValueFrom(model.stream$(request, lentContext()).pipe(toArray()));

const weatherBy = (run: (input: { readonly city: string }) => unknown) =>
  tool({
    name: 'city.weather',
    description: 'Tells the weather.',
    input: jsonSchema({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    }),
    run,
  });

const weather = weatherBy(({ city }) => `Rain in ${city}.`);

/** What the tool above is called on a wire: points are not taken. */
const weatherOnWire = toolNames(['city.weather']).toWire('city.weather');

describe.each([
  ['chat', openai.chat],
  ['responses', openai.responses],
] as const)('a model over %s', (wire, make) => {
  let url: string;
  beforeAll(async () => {
    ({ url } = await play([hello(wire)]));
  });

  it.each(modelContract(() => make('gpt-5-mini', { apiKey, baseURL: url })))('$name', ({ run }) =>
    run(),
  );

  it('X16: works through tools, for any names, and sends its thoughts back', async () => {
    const asks = {
      thinking: 'Hm.',
      toolCalls: ['Oslo', 'Rome'].map((city, index) => ({
        id: `call_${index}`,
        name: weatherOnWire,
        arguments: JSON.stringify({ city }),
      })),
    };
    const done = streamOf(wire, { text: 'It rains.' });
    const played = await play([streamed(streamOf(wire, asks)), streamed(done, 1)]);
    const agent = createAgent({
      model: make('gpt-5', { apiKey, baseURL: played.url }),
      tools: [weather],
    });
    const reply = await agent.call('How is the weather?');
    expect(textOf(reply)).toBe('It rains.');
    const seen = await played.settled();
    expect(seen.flatMap(({ violations }) => violations)).toEqual([]);
    const sent = JSON.stringify(seen[1]?.body);
    expect(sent).toContain('Rain in Oslo.');
    expect(sent).toContain('Rain in Rome.');
    if (wire === 'responses') expect(sent).toContain('gAAAAABFault');
  });

  it('R3: holds an answer to a schema, natively, while it has tools', async () => {
    const played = await play([streamed(streamOf(wire, { text: '{"city":"Oslo"}' }))]);
    const reply = await createAgent({
      model: make('gpt-5-mini', { apiKey, baseURL: played.url }),
      tools: [weather],
      use: [
        output(
          jsonSchema({
            type: 'object',
            properties: { city: { type: 'string' } },
            required: ['city'],
            additionalProperties: false,
          }),
        ),
      ],
    }).call('Where?');
    expect(reply.reason).toBe('answer');
    const [seen] = await played.settled();
    expect(seen?.violations).toEqual([]);
    expect(JSON.stringify(seen?.body)).toContain('"strict":true');
  });

  it('C7: says what the vendor said, with its status and the id of the request', async () => {
    const body = vendorError(wire, 404, { message: 'No such model.' });
    const played = await play([json(404, body, { 'x-request-id': 'req_1' })]);
    await expect(ask(make('gpt-5-mini', { apiKey, baseURL: played.url }))).rejects.toMatchObject({
      code: 'invalidRequest',
      retryable: false,
      status: 404,
      requestId: 'req_1',
      message: expect.stringContaining('No such model.'),
    });
  });

  it('C8: lets another model answer if it cannot', async () => {
    const broken = await play([json(503, vendorError(wire, 503))]);
    const well = await play([hello(wire)]);
    const options = { apiKey, retry: false } as const;
    const model = fallback(
      make('gpt-5', { ...options, baseURL: broken.url }),
      make('gpt-5-mini', { ...options, baseURL: well.url }),
    );
    const chunks = await ask(model);
    expect(chunks.at(-1)).toMatchObject({ type: expect.stringMatching(/finish|usage/u) });
    expect(await broken.requests()).toHaveLength(1);
  });

  it('X1: reads a whole answer if a stream was asked for', async () => {
    const played = await play([json(200, bodyOf(wire, { text: 'Hello.' }))]);
    const reply = await createAgent({
      model: make('gpt-5-mini', { apiKey, baseURL: played.url }),
    }).call('Hi');
    expect(textOf(reply)).toBe('Hello.');
  });

  it('closes the socket when it is left, also before anything has come', async () => {
    const silent = await play([[stall()]]);
    const model = make('gpt-5-mini', { apiKey, baseURL: silent.url });
    const subscription = model.stream$(question, lentContext()).subscribe();
    await silent.arrived(0);
    subscription.unsubscribe();
    expect(await silent.closed(0)).toMatchObject({ closedEarly: true });

    const [first = '', ...more] = streamOf(wire, { text: 'Hello.' });
    const slow = await play([
      [streamHeaders, bytes([first, ...more.slice(0, -3)].join('')), stall()],
    ]);
    const begun = make('gpt-5-mini', { apiKey, baseURL: slow.url }).stream$(
      question,
      lentContext(),
    );
    await firstValueFrom(begun.pipe(take(1)));
    expect(await slow.closed(0)).toMatchObject({ closedEarly: true });
  });
});

describe('in a browser', () => {
  const names = ['window', 'navigator'] as const;
  const before = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
  beforeEach(() => {
    for (const name of names) {
      Object.defineProperty(globalThis, name, { value: { document: {} }, configurable: true });
    }
  });
  afterEach(() => {
    names.forEach((name, at) => {
      const property = before[at];
      if (property === undefined) Reflect.deleteProperty(globalThis, name);
      else Object.defineProperty(globalThis, name, property);
    });
  });

  it('C7: a key that everybody could read is not sent, unless that is allowed', async () => {
    const played = await play([hello('chat')]);
    const options = { apiKey, baseURL: played.url };
    await expect(ask(openai('m', options))).rejects.toMatchObject({
      code: 'config',
      retryable: false,
      message: expect.stringMatching(/on your server, or, .* 'dangerouslyAllowBrowser' to true/u),
    });
    expect(await played.settled()).toEqual([]);
    await ask(openai('m', { ...options, dangerouslyAllowBrowser: true }));
    expect(await played.settled()).toHaveLength(1);
  });

  it('a request without a key needs no permission', async () => {
    const played = await play([hello('chat')], { auth: 'none' });
    await ask(ollama('m', { baseURL: played.url }));
    expect(await played.settled()).toHaveLength(1);
  });
});

describe('what leaves', () => {
  const headersOf = async (make: (baseURL: string) => Model, scenario: Partial<Scenario> = {}) => {
    const played = await play([hello('chat')], scenario);
    await ask(make(played.url));
    const [seen] = await played.settled();
    expect(seen?.violations).toEqual([]);
    return seen?.headers;
  };

  const setEnvironment = () => {
    Object.assign(process.env, {
      OPENAI_API_KEY: 'sk-environment',
      OPENAI_ADMIN_KEY: 'sk-admin',
      OPENAI_ORG_ID: 'org-1',
      OPENAI_PROJECT_ID: 'proj-1',
      OPENAI_CUSTOM_HEADERS: 'X-Team: core',
      OPENAI_BASE_URL: 'http://127.0.0.1:1/nowhere',
    });
  };

  it('to OpenAI: the key and what the environment says', async () => {
    setEnvironment();
    expect(await headersOf((baseURL) => openai('m', { baseURL }))).toMatchObject({
      authorization: 'Bearer sk-environment',
      'openai-organization': 'org-1',
      'openai-project': 'proj-1',
      'x-team': 'core',
    });
  });

  it('X10: to others: nothing that is meant for OpenAI', async () => {
    setEnvironment();
    const headers = await headersOf((baseURL) => ollama('m', { baseURL }), { auth: 'none' });
    for (const name of ['authorization', 'openai-organization', 'openai-project', 'x-team']) {
      expect(headers).not.toHaveProperty(name);
    }
    expect(JSON.stringify(headers)).not.toMatch(/sk-environment|sk-admin|org-1|proj-1/u);
    expect(await headersOf((baseURL) => deepseek('m', { baseURL, apiKey }))).toMatchObject({
      authorization: `Bearer ${apiKey}`,
    });
  });

  it('X8: to Azure: the key in its own header', async () => {
    const headers = await headersOf((baseURL) => azure('m', { baseURL, apiKey }));
    expect(headers).toMatchObject({ 'api-key': apiKey });
    expect(headers).not.toHaveProperty('authorization');
  });

  it('headers of one’s own take precedence over all others', async () => {
    const headers = { Authorization: 'Bearer own-token', 'User-Agent': 'mine' };
    expect(await headersOf((baseURL) => vllm('m', { baseURL, headers }))).toMatchObject({
      authorization: 'Bearer own-token',
      'user-agent': 'mine',
    });
  });

  it('to an address of the environment, as with the vendor’s own client', async () => {
    const played = await play([hello('chat')]);
    process.env['OPENAI_BASE_URL'] = played.url;
    await ask(openai('m', { apiKey }));
    expect(await played.settled()).toMatchObject([{ path: '/chat/completions', violations: [] }]);
  });

  it('another key for each request, by a function', async () => {
    const played = await play([hello('chat')]);
    let count = 0;
    const rotated = openai('m', {
      baseURL: played.url,
      apiKey: () => Promise.resolve(`sk-rotated-${(count += 1)}`),
    });
    await ask(rotated);
    await ask(rotated);
    const sent = (await played.settled()).map(({ headers }) => headers['authorization']);
    expect(sent).toEqual(['Bearer sk-rotated-1', 'Bearer sk-rotated-2']);
  });

  it('through a `fetch` of one’s own', async () => {
    const played = await play([hello('chat')]);
    const asked: string[] = [];
    const model = openai('m', {
      apiKey,
      baseURL: played.url,
      fetch: (input, init) => {
        asked.push(input instanceof Request ? input.url : input.toString());
        return fetch(input, init);
      },
    });
    await ask(model);
    expect(asked).toEqual([`${played.url}/chat/completions`]);
  });
});

describe('an event that is no object', () => {
  const chunk = { choices: [{ index: 0, delta: { content: 'Sunny.' }, finish_reason: 'stop' }] };
  const ended = (data: unknown) => [data, chunk].map((it) => `data: ${JSON.stringify(it)}\n\n`);

  it.each([null, 1, 'text', []])('is ignored if it cannot have content: %j', async (data) => {
    const played = await play([streamed(ended(data))]);
    const model = openai('m', { apiKey, baseURL: played.url });
    expect(textOf(await createAgent({ model }).call('Hi.'))).toBe('Sunny.');
  });

  it('is an error if it is a list of events', async () => {
    const data = [chunk];
    const played = await play([streamed(ended(data))]);
    const model = openai('m', { apiKey, baseURL: played.url });
    await expect(createAgent({ model }).call('Hi.')).rejects.toMatchObject({
      code: 'invalidResponse',
    });
  });
});

describe('X1: a stream without a finish reason that ends with [DONE]', () => {
  const chunk = (delta: object) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
  const call = { id: 'c1', function: { name: weatherOnWire, arguments: '{"city":"Oslo"}' } };
  const calls = chunk({ tool_calls: [{ index: 0, ...call }] });
  const answer = chunk({ content: 'Sunny.' });
  const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3 } })}\n\n`;
  const done = 'data: [DONE]\n\n';

  it('is complete for an endpoint that ends its answers so, also with tool calls', async () => {
    const makers = [
      (baseURL: string) =>
        endpoint({ name: 'Mine', baseURL, finishesWithDone: true })('m', { apiKey }),
      (baseURL: string) => snowflake('m', { apiKey, baseURL }),
    ];
    for (const make of makers) {
      const played = await play([streamed([calls, done]), streamed([answer, usage, done])]);
      const model = make(played.url);
      const reply = await createAgent({ model, tools: [weather] }).call('How is the weather?');
      expect(textOf(reply)).toBe('Sunny.');
      expect(reply).toMatchObject({ reason: 'answer', finish: 'stop', usage: { inputTokens: 3 } });
      expect((await played.settled()).map(({ violations }) => violations)).toEqual([[], []]);
    }
  });

  it('is an error without [DONE], and for every other endpoint', async () => {
    for (const [finishesWithDone, events] of [
      [true, [answer, usage]],
      [false, [answer, usage, done]],
    ] as const) {
      const played = await play([streamed(events)]);
      const mine = endpoint({ name: 'Mine', baseURL: played.url, finishesWithDone });
      await expect(ask(mine('m', { apiKey, retry: false }))).rejects.toMatchObject({
        code: 'invalidResponse',
      });
    }
  });

  it('keeps the finish reason that it has', async () => {
    const cut = `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'length' }] })}\n\n`;
    const played = await play([streamed([answer, cut, done])]);
    const chunks = await ask(snowflake('m', { apiKey, baseURL: played.url }));
    expect(chunks.filter(({ type }) => type === 'finish')).toEqual([
      { type: 'finish', finish: 'length' },
    ]);
  });
});

describe('errors', () => {
  it('X10: have no key in them, also if the vendor repeats it', async () => {
    const body = vendorError('chat', 401, { message: `Incorrect API key provided: ${apiKey}.` });
    const played = await play([json(401, body)]);
    for (const given of [apiKey, () => apiKey]) {
      const model = openai('m', { apiKey: given, baseURL: played.url });
      const error: unknown = await ask(model).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'auth' });
      const { message, stack, cause } = error as Error;
      expect([message, stack, String(cause)].join()).not.toContain(apiKey);
    }
  });

  it('X8: are reported to the model if it wrote a call that cannot be read', async () => {
    const error = {
      message: 'Failed to call a function.',
      type: 'invalid_request_error',
      code: 'tool_use_failed',
      failed_generation: '<function=weather{"city"',
    };
    const usage = { prompt_tokens: 7000, completion_tokens: 2 };
    const played = await play([json(400, { error, usage }), hello('chat')]);
    const model = groq('llama-3.3-70b-versatile', { apiKey, baseURL: played.url });
    const reply = await createAgent({ model, tools: [weather] }).call('How is the weather?');
    expect(textOf(reply)).toBe('Hello.');
    expect(reply.usage.inputTokens).toBeGreaterThan(7000);
    const [, second] = await played.settled();
    expect(second?.violations).toEqual([]);
    expect(JSON.stringify(second?.body)).toContain('<function=weather');
  });

  it.each([
    ['an event', 'event: error\n'],
    ['a chunk', ''],
  ])('P4, L7: in %s of a stream reach the model if its call cannot be parsed', async (_, name) => {
    const error = {
      message: 'Failed to call a function.',
      code: 'tool_use_failed',
      failed_generation: '<function=weather{"city"',
    };
    const call = { id: 'c1', function: { name: weatherOnWire, arguments: '{"city":"Oslo"}' } };
    const choices = [{ delta: { content: 'Let me see.', tool_calls: [{ index: 0, ...call }] } }];
    const failed = streamed([
      `data: ${JSON.stringify({ choices })}\n\n`,
      `${name}data: ${JSON.stringify({ error })}\n\n`,
    ]);
    const runs: unknown[] = [];
    const counted = weatherBy((input) => runs.push(input));
    const played = await play([failed, hello('chat')]);
    const model = groq('llama-3.3-70b-versatile', { apiKey, baseURL: played.url });
    const reply = await createAgent({ model, tools: [counted] }).call('How is the weather?');
    expect(textOf(reply)).toBe('Hello.');
    expect(runs).toEqual([]);
    const [, second, ...more] = await played.settled();
    expect(second?.violations).toEqual([]);
    expect(JSON.stringify(second?.body)).toContain('<function=weather');
    expect(more).toEqual([]);
  });

  it('P4: are thrown if the model writes calls that cannot be parsed again and again', async () => {
    const error = { message: 'Failed to call a function.', code: 'tool_use_failed' };
    const played = await play([streamed([`data: ${JSON.stringify({ error })}\n\n`])]);
    const model = groq('llama-3.3-70b-versatile', { apiKey, baseURL: played.url });
    await expect(
      createAgent({ model, tools: [weather] }).call('How is the weather?'),
    ).rejects.toMatchObject({ code: 'invalidResponse' });
    expect(await played.settled()).toHaveLength(3);
  });

  it('X1: come of a stream that was aborted, and no tool runs', async () => {
    const call = { id: 'c1', function: { name: weatherOnWire, arguments: '{"city":"Oslo"}' } };
    const event = (choice: object) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
    const played = await play([
      streamed([
        event({ delta: { tool_calls: [{ index: 0, ...call }] } }),
        event({ delta: {}, finish_reason: 'abort' }),
      ]),
    ]);
    const runs: unknown[] = [];
    const counted = weatherBy((input) => runs.push(input));
    const model = openai('m', { apiKey, baseURL: played.url, retry: false });
    await expect(
      createAgent({ model, tools: [counted] }).call('How is the weather?'),
    ).rejects.toMatchObject({
      code: 'server',
      message: expect.stringMatching(/^The server at 127\.0\.0\.1:\d+ failed/u),
    });
    expect(runs).toEqual([]);
  });

  it('C7: are not sent again when the function for the key fails', async () => {
    const played = await play([hello('chat')]);
    const model = openai('m', {
      baseURL: played.url,
      apiKey: () => Promise.reject(new Error('no luck')),
    });
    await expect(ask(model)).rejects.toMatchObject({ code: 'auth', retryable: false });
    expect(await played.requests()).toEqual([]);
  });

  it('C7: come before anything is sent if a block is not supported', async () => {
    const played = await play([hello('chat')]);
    const source = { kind: 'url', url: 'https://example.com/a.png' } as const;
    const model = deepseek('deepseek-chat', { apiKey, baseURL: played.url });
    await expect(ask(model, { messages: [user({ type: 'image', source })] })).rejects.toMatchObject(
      { code: 'invalidRequest', retryable: false },
    );
    expect(await played.requests()).toEqual([]);
  });
});

describe('a vendor that cannot be held to a schema', () => {
  const outputSchema = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  };
  const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' } }];

  const sent = async (make: (baseURL: string) => Model, request: ModelRequest) => {
    const played = await play([hello('chat')], { auth: 'none' });
    await ask(make(played.url), request);
    const [seen] = await played.settled();
    expect(seen?.violations).toEqual([]);
    return seen?.body;
  };

  it('R3: is, while there are no tools', async () => {
    const body = await sent((baseURL) => vllm('m', { baseURL }), { ...question, outputSchema });
    expect(body).toHaveProperty('response_format');
    expect(body).not.toHaveProperty('tools');
  });

  it('R3: else answers by a tool', async () => {
    const request = { ...question, outputSchema, tools };
    const body = await sent((baseURL) => vllm('m', { baseURL }), request);
    expect(body).not.toHaveProperty('response_format');
    expect(body).toMatchObject({
      tools: [{ function: { name: 'look' } }, { function: { name: 'final_answer' } }],
    });
  });
});

describe('a conversation that continues with another vendor', () => {
  it('X16: is valid for the next one', async () => {
    const asks = { thinking: 'Hm.', toolCalls: [{ id: 'call_1', arguments: '{"city":"Oslo"}' }] };
    const first = await play([streamed(streamOf('responses', asks))]);
    const next = await play([hello('chat')], { allow: ['extra_content', 'google'] });
    const named = tool({
      name: 'weather',
      description: 'Tells the weather.',
      input: jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
      run: () => 'Rain.',
    });
    const one = openai.responses('gpt-5', { apiKey, baseURL: first.url });
    const other = gemini('gemini-3-pro', { apiKey, baseURL: next.url });
    let asked = 0;
    const model: Model = {
      name: 'both',
      stream$: (request, context) => {
        asked += 1;
        return (asked === 1 ? one : other).stream$(request, context);
      },
    };
    const reply = await createAgent({ model, tools: [named] }).call('How is the weather?');
    expect(textOf(reply)).toBe('Hello.');
    const [seen] = await next.settled();
    expect(seen?.violations).toEqual([]);
    expect(JSON.stringify(seen?.body)).not.toContain('gAAAA');
  });
});

describe('an endpoint of one’s own', () => {
  it('X8: works by its profile, and tolerates what it does not say', async () => {
    const played = await play(
      [
        streamed([
          'data: {"choices":[{"delta":{"reasoning":"Hm."}}]}\n\n',
          'data: {"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}\n\n',
        ]),
      ],
      { auth: 'none' },
    );
    const mine = endpoint({ name: 'Mine', baseURL: played.url, keyless: true });
    expect(await ask(mine('mine-1'))).toEqual([
      { type: 'thinking', text: 'Hm.' },
      { type: 'text', text: 'Hello.' },
      { type: 'facts', facts: { name: 'Mine', stopReason: 'stop' } },
      { type: 'finish', finish: 'stop' },
    ]);
  });
});
