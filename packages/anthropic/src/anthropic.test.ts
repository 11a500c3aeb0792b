import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  createAgent,
  type MillraceError,
  type Model,
  type ModelChunk,
  type ModelReport,
  type ModelRequest,
  textOf,
  tool,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { lentContext, modelContract } from 'millrace/testing';
import {
  bytes,
  type FaultServer,
  json,
  messageEnd,
  messagesBlock,
  messagesStream,
  messageStart,
  type Played,
  type ResponseScript,
  type SeenRequest,
  stall,
  startFaultServer,
  streamed,
  streamHeaders,
  vendorError,
} from '@millrace/fault-server';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { anthropic, type AnthropicOptions } from './index.js';

const key = 'sk-ant-0123456789abcdef';
const environment = process.env;

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());
beforeEach(() => {
  process.env = {};
});
afterEach(() => {
  process.env = environment;
});

const play = (...responses: readonly ResponseScript[]): Promise<Played> =>
  server.play({ responses });
const saying = (text: string): ResponseScript => streamed(messagesStream({ text }));

const modelAt = ({ url }: Played, options: AnthropicOptions = {}): Model =>
  anthropic('claude-sonnet-4-5', {
    apiKey: key,
    baseURL: url,
    retry: { attempts: 3, minMs: 1, maxMs: 2 },
    ...options,
  });

const globalProperty = (name: string) => Object.getOwnPropertyDescriptor(globalThis, name);

/** Defines a global variable, or removes it. */
const define = (name: string, property: PropertyDescriptor | undefined): void => {
  if (property === undefined) Reflect.deleteProperty(globalThis, name);
  else Object.defineProperty(globalThis, name, property);
};

const question: ModelRequest = {
  messages: [{ id: 'm1', role: 'user', content: [{ type: 'text', text: 'Hello?' }] }],
};

const ask = (
  model: Model,
  request: Partial<ModelRequest> = {},
  reports: ModelReport[] = [],
): Promise<readonly ModelChunk[]> =>
  lastValueFrom(
    model
      .stream$({ ...question, ...request }, lentContext({ report: (event) => reports.push(event) }))
      .pipe(toArray()),
  );

const failureOf = (promise: Promise<unknown>): Promise<MillraceError> =>
  promise.then(
    () => {
      throw new Error('It should have failed.');
    },
    (error: unknown) => error as MillraceError,
  );

const said = (chunks: readonly ModelChunk[]): string =>
  chunks.map((chunk) => (chunk.type === 'text' ? chunk.text : '')).join('');

const bodiesOf = (requests: readonly SeenRequest[]): readonly Readonly<Record<string, unknown>>[] =>
  requests.map(({ body }) => body as Readonly<Record<string, unknown>>);

describe('anthropic()', () => {
  it.each<[string, () => unknown, string]>([
    ['no name', () => anthropic('', { apiKey: key }), 'needs a name'],
    [
      'a misspelt option',
      () => anthropic('claude', { apikey: key } as object),
      "no option 'apikey'. Did you mean 'apiKey'?",
    ],
    [
      'tokens in the spelling of the API',
      () => anthropic('claude', { max_tokens: 5 } as object),
      "no option 'max_tokens'. Did you mean 'maxTokens'?",
    ],
    [
      'a temperature, which agents have',
      () => anthropic('claude', { temperature: 0 } as object),
      'createAgent({ model, instructions, tools, request: { temperature, ',
    ],
    [
      'no address',
      () => anthropic('claude', { apiKey: key, baseURL: 'localhost:1' }),
      'not an HTTP URL',
    ],
    [
      'a password in the address',
      () => anthropic('claude', { apiKey: key, baseURL: 'http://a:bcdefg@c' }),
      "option 'headers'",
    ],
    ['no tokens', () => anthropic('claude', { apiKey: key, maxTokens: 0 }), 'maxTokens'],
    [
      'thinking by a number',
      () => anthropic('claude', { apiKey: key, thinking: 5 } as object),
      "'thinking' must be false, 'adaptive' or",
    ],
    [
      'a budget that is called otherwise',
      () => anthropic('claude', { apiKey: key, thinking: { budget: 5 } } as object),
      '{ budgetTokens: 1024 }',
    ],
    [
      'a budget that is too small',
      () => anthropic('claude', { apiKey: key, thinking: { budgetTokens: 5 } }),
      '{ budgetTokens: 1024 }',
    ],
    [
      'thinking that is only switched on',
      () => anthropic('claude', { apiKey: key, thinking: true } as object),
      `'adaptive' or`,
    ],
    [
      'thinking by effort',
      () => anthropic('claude', { apiKey: key, thinking: 'high' } as object),
      `see 'effort'`,
    ],
    [
      'a beta that is no list',
      () => anthropic('claude', { apiKey: key, betas: 'one' } as object),
      "'betas' must be a list of names",
    ],
    [
      'built-in tools by name',
      () => anthropic('claude', { apiKey: key, builtInTools: ['web_search'] } as object),
      "{ type: 'web_search_20260318', name: 'web_search' }",
    ],
    [
      'a cache of another time',
      () => anthropic('claude', { apiKey: key, cache: '2h' } as object),
      "'cache' must be true",
    ],
  ])('C7: refuses %s immediately, and says how to put it right', (_, create, hint) => {
    expect(create).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringContaining(hint) }),
    );
    expect(create).not.toThrow(key);
    expect(create).not.toThrow('bcdefg');
  });

  it.each([undefined, ' '])('C7: misses the key %j with the first request', async (apiKey) => {
    const agent = createAgent({ model: anthropic('claude', { apiKey }) });
    expect(await failureOf(agent.call('Hello?'))).toMatchObject({
      code: 'config',
      retryable: false,
      message: "Anthropic needs a key: set ANTHROPIC_API_KEY, or pass the option 'apiKey'.",
    });
  });

  it('takes a key that is in the environment by the time of a request', async () => {
    const played = await play(saying('Hi.'));
    const agent = createAgent({ model: anthropic('claude', { baseURL: played.url }) });
    await failureOf(agent.call('Hello?'));
    process.env['ANTHROPIC_API_KEY'] = key;
    expect(textOf(await agent.call('Hello?'))).toBe('Hi.');
  });

  describe('in a browser', () => {
    const before = new Map(['window', 'navigator'].map((name) => [name, globalProperty(name)]));
    beforeEach(() => {
      define('window', { value: { document: {} }, configurable: true });
      define('navigator', { value: {}, configurable: true });
    });
    afterEach(() => {
      before.forEach((property, name) => define(name, property));
    });

    it('C7: says what to do about a key that everybody could read', async () => {
      const played = await play(saying('Hi.'));
      const error = await failureOf(ask(modelAt(played)));
      expect(error).toMatchObject({ code: 'config', retryable: false });
      expect(error.message).toMatch(/on your server, or, .* 'dangerouslyAllowBrowser' to true/u);
      expect(await played.settled()).toEqual([]);
    });

    it('sends requests if that is allowed', async () => {
      const played = await play(saying('Hi.'));
      const chunks = await ask(modelAt(played, { dangerouslyAllowBrowser: true }));
      expect(said(chunks)).toBe('Hi.');
      const [seen] = await played.settled();
      expect(seen?.headers).toMatchObject({ 'anthropic-dangerous-direct-browser-access': 'true' });
    });
  });

  it('finds its key and its address in the environment, and reads it when it is made', async () => {
    const played = await play(saying('Hi.'));
    process.env['ANTHROPIC_BASE_URL'] = played.url;
    process.env['ANTHROPIC_AUTH_TOKEN'] = 'of-the-token';
    const byToken = anthropic('claude');
    process.env['ANTHROPIC_API_KEY'] = 'of-the-key';
    const byKey = anthropic('claude');
    process.env['ANTHROPIC_API_KEY'] = 'of-somebody-else';
    process.env['ANTHROPIC_BASE_URL'] = 'http://127.0.0.1:1';
    expect(said([...(await ask(byToken)), ...(await ask(byKey))])).toBe('Hi.Hi.');
    expect((await played.settled()).map(({ headers }) => headers['authorization'])).toEqual([
      'Bearer of-the-token',
      'Bearer of-the-key',
    ]);
  });

  it('X16: sends a request that the vendor takes, with the headers that were wanted', async () => {
    const played = await play(saying('Hi.'));
    const headers = { 'x-team': 'mill', 'Anthropic-Beta': 'two, three' };
    await ask(modelAt(played, { betas: ['one', 'two'], headers }), {
      system: 'Be brief.',
      messages: [
        { id: 'm1', role: 'user', content: [{ type: 'text', text: 'Half \ud83d and "\\ud83d"' }] },
      ],
    });
    const [request] = await played.settled();
    expect(request?.violations).toEqual([]);
    expect(request?.path).toBe('/v1/messages');
    expect(request?.headers).toMatchObject({
      'anthropic-beta': 'one,two,three',
      'x-team': 'mill',
      'x-stainless-retry-count': '0',
    });
    expect(request?.body).toMatchObject({
      max_tokens: 32_000,
      stream: true,
      messages: [{ content: [{ text: 'Half \ufffd and "\\ud83d"' }] }],
    });
  });

  it('takes an option that is undefined as none, and an address with the version in it', async () => {
    const played = await play(saying('Hi.'));
    process.env['ANTHROPIC_API_KEY'] = key;
    const absent: AnthropicOptions = {
      apiKey: process.env['NOT_THERE'],
      headers: undefined,
      retry: undefined,
      timeouts: undefined,
      caps: undefined,
      fetch: undefined,
      maxTokens: undefined,
      thinking: undefined,
      effort: undefined,
      cache: undefined,
      builtInTools: undefined,
      betas: undefined,
      body: undefined,
    };
    expect(said(await ask(modelAt(played, { ...absent, baseURL: `${played.url}/v1/` })))).toBe(
      'Hi.',
    );
    const [request] = await played.settled();
    expect(request?.path).toBe('/v1/messages');
    expect(request?.body).toMatchObject({ max_tokens: 32_000 });
    expect(request?.body).toHaveProperty('messages.0.content.0.cache_control');
  });

  it('C7: names the server that has failed, if it is not that of Anthropic', async () => {
    const played = await play(json(404, vendorError('messages', 404)));
    const { host } = new URL(played.url);
    const error = await failureOf(ask(modelAt(played)));
    expect(error.message).toContain(`server at ${host}`);
    expect(error.message).not.toContain('Anthropic');
  });

  it('C7: leaves it to Millrace to send a request again', async () => {
    const played = await play(json(529, vendorError('messages', 529)));
    const once = await failureOf(ask(modelAt(played, { retry: false })));
    expect(once).toMatchObject({ code: 'server', status: 529, retryable: true });
    expect(await played.settled()).toHaveLength(1);
    await failureOf(ask(modelAt(played)));
    expect(await played.settled()).toHaveLength(4);
  });

  it('asks a function for the key of each request', async () => {
    const played = await play(json(529, vendorError('messages', 529)), saying('Hi.'));
    let count = 0;
    await ask(modelAt(played, { apiKey: () => Promise.resolve(`key-number-${(count += 1)}`) }));
    expect((await played.settled()).map(({ headers }) => headers['authorization'])).toEqual([
      'Bearer key-number-1',
      'Bearer key-number-2',
    ]);
  });

  it('sends no key if a header has one', async () => {
    const played = await play(saying('Hi.'));
    await ask(anthropic('claude', { baseURL: played.url, headers: { 'X-Api-Key': key } }));
    await ask(modelAt(played, { headers: { Authorization: 'Bearer of-the-gateway' } }));
    const [bare, set] = await played.settled();
    expect(bare?.headers).toMatchObject({ 'x-api-key': key });
    expect(bare?.headers).not.toHaveProperty('authorization');
    expect(set?.headers).toMatchObject({ authorization: 'Bearer of-the-gateway' });
  });

  it.each([
    ['throws', () => Promise.reject(new Error(`no vault for ${key}`))],
    ['gives nothing', () => ' '],
  ])(
    'C7, X10: fails with `auth` and without the reason when that function %s',
    async (_, apiKey) => {
      const error = await failureOf(ask(modelAt(await play(saying('Hi.')), { apiKey })));
      expect(error).toMatchObject({ code: 'auth', retryable: false });
      expect(JSON.stringify([error.message, String(error.cause), error.stack])).not.toContain(key);
    },
  );

  it.each([
    ['an option', key],
    ['a function', () => key],
  ])('X10: takes a key from %s out of what the vendor echoes', async (_, apiKey) => {
    const echo = json(401, vendorError('messages', 401, { message: `No such key: {{key}}` }));
    const error = await failureOf(ask(modelAt(await play(echo), { apiKey })));
    expect(error).toMatchObject({ code: 'auth', status: 401 });
    expect(error.message).toContain('[redacted]');
    expect([error.message, String(error.cause)].join()).not.toContain(key);
  });

  it('X10: takes secret headers out of what the vendor echoes, those of the environment too', async () => {
    process.env['ANTHROPIC_CUSTOM_HEADERS'] = 'x-gate-token: opensesame';
    const echo = json(403, vendorError('messages', 403, { message: 'opensesame, Basic hunter22' }));
    const headers = { 'proxy-authorization': 'Basic hunter22' };
    const played = await play(echo);
    const error = await failureOf(ask(modelAt(played, { headers })));
    expect(error.message).toContain('[redacted], [redacted]');
    expect((await played.settled())[0]?.headers).toMatchObject({ 'x-gate-token': 'opensesame' });
  });

  it('C7: closes the connection in the tick in which it is left', async () => {
    const played = await play([
      streamHeaders,
      bytes(messagesStream({ text: 'Hi.' }).slice(0, 4).join('')),
      stall(),
    ]);
    await firstValueFrom(modelAt(played).stream$(question, lentContext()));
    expect(await played.closed(0)).toMatchObject({ closedEarly: true });
  });

  it('reports what it cannot send, and sends the rest', async () => {
    const played = await play(saying('Hi.'));
    const reports: ModelReport[] = [];
    const request = { tools: [weatherDeclaration], toolChoice: 'required' } as const;
    await ask(modelAt(played, { thinking: 'adaptive' }), request, reports);
    expect(reports).toEqual([
      {
        type: 'warning',
        message: `The model 'claude-sonnet-4-5' does not support 'toolChoice' while it thinks: it was dropped from the request.`,
      },
    ]);
    expect(bodiesOf(await played.settled())[0]).not.toHaveProperty('tool_choice');
    const audio = { type: 'audio', source: { kind: 'url', url: 'https://a.b/c.mp3' } } as const;
    const error = await failureOf(
      ask(modelAt(played), { messages: [{ id: 'm9', role: 'user', content: [audio] }] }),
    );
    expect(error).toMatchObject({ code: 'invalidRequest', retryable: false });
    expect(error.message).toContain(`The message 'm9' has an audio block`);
    expect(await played.requests()).toHaveLength(1);
  });

  it('takes a temperature only if an older version of the API is asked for', async () => {
    const played = await play(saying('Hi.'));
    const older = modelAt(played, { headers: { 'Anthropic-Version': '2023-06-01' } });
    expect(modelAt(played).unsupported).toEqual(['temperature']);
    expect(older.unsupported).toBeUndefined();
    await ask(older, { temperature: 0.5 });
    expect(bodiesOf(await played.settled())[0]).toMatchObject({ temperature: 0.5 });
  });

  it('R3: holds an answer to a schema that the API takes, and lets a tool give any other', async () => {
    const native = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const map = { type: 'object', additionalProperties: { type: 'number' } };
    const played = await play(
      saying('{"city":"Oslo"}'),
      streamed(messagesStream({ toolCalls: [{ name: 'final_answer', arguments: '{"a":1}' }] })),
    );
    const model = modelAt(played);
    expect(said(await ask(model, { outputSchema: native }))).toBe('{"city":"Oslo"}');
    expect(said(await ask(model, { outputSchema: map }))).toBe('{"a":1}');
    const [first, second] = bodiesOf(await played.settled());
    expect(first).toHaveProperty('output_config.format.type', 'json_schema');
    expect(second).not.toHaveProperty('output_config');
    expect(second).toMatchObject({
      tools: [{ name: 'final_answer' }],
      tool_choice: { type: 'any' },
    });
  });
});

const weatherDeclaration = {
  name: 'weather',
  description: 'Tells the weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
};

const weather = tool({
  name: 'weather',
  description: 'Tells the weather.',
  input: jsonSchema(weatherDeclaration.inputSchema),
  run: () => 'sunny',
});

describe('an agent with a model of Anthropic', () => {
  it('X8: sends thinking back as it was signed, in its place before the use of the tool', async () => {
    const name = 'weather';
    const played = await play(
      streamed(
        messagesStream({
          thinking: 'Hm.',
          text: 'I look.',
          toolCalls: [{ name, arguments: '{"city":"Oslo"}' }],
        }),
      ),
      saying('Sunny.'),
    );
    const agent = createAgent({
      name: 'helper',
      model: modelAt(played, { thinking: { budgetTokens: 1_024 } }),
      tools: [weather],
    });
    const reply = await agent.call('Weather in Oslo?');
    expect(textOf(reply)).toBe('Sunny.');
    const [, second] = bodiesOf(await played.settled());
    expect(second).toMatchObject({
      thinking: { type: 'enabled' },
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: expect.stringMatching(/^Eq.*==$/) },
            { type: 'text', text: 'I look.' },
            { type: 'tool_use', name, input: { city: 'Oslo' } },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', content: [{ text: 'sunny' }] }] },
      ],
    });
  });

  it('X8: continues an answer that paused, and sends all of it back', async () => {
    const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
    const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
    const query = { type: 'input_json_delta', partial_json: '{"query":"Oslo"}' };
    const played = await play(
      streamed([
        messageStart(null),
        ...messagesBlock(0, { type: 'text', text: 'I search. ' }, []),
        ...messagesBlock(1, search, [query]),
        ...messagesBlock(2, found, []),
        ...messageEnd('pause_turn', null),
      ]),
      saying('Sunny.'),
    );
    const builtInTools = [{ type: 'web_search_20260318', name: 'web_search' }];
    const agent = createAgent({ name: 'helper', model: modelAt(played, { builtInTools }) });
    const reply = await agent.call('Weather in Oslo?');
    expect(reply.content.filter(({ type }) => type === 'text')).toHaveLength(2);
    const [first, second] = await played.settled();
    expect(first?.body).toMatchObject({ tools: builtInTools });
    expect(second?.violations).toEqual([]);
    expect(second?.body).toMatchObject({
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [{ text: 'I search. ' }, { ...search, input: { query: 'Oslo' } }, found],
        },
      ],
    });
  });
});

describe('a model that thinks', () => {
  const map = { type: 'object', additionalProperties: { type: 'number' } };
  const answer = streamed(
    messagesStream({ toolCalls: [{ name: 'final_answer', arguments: '{"a":1}' }] }),
  );

  it.each<[string, AnthropicOptions]>([
    ['claude-sonnet-4-5', { thinking: { budgetTokens: 1_024 } }],
    ['claude-opus-5-5', {}],
  ])('R3: %s gets a tool to answer with, and warns of nothing', async (name, options) => {
    const played = await play(answer);
    const reports: ModelReport[] = [];
    const model = anthropic(name, { apiKey: key, baseURL: played.url, ...options });
    const request = { outputSchema: map, tools: [weatherDeclaration] };
    expect(said(await ask(model, request, reports))).toBe('{"a":1}');
    expect(said(await ask(model, { ...request, toolChoice: 'none' }, reports))).toBe('{"a":1}');
    expect(reports).toEqual([]);
    const bodies = bodiesOf(await played.settled());
    bodies.forEach((body) => expect(body).not.toHaveProperty('tool_choice'));
    expect(bodies).toHaveLength(2);
    await ask(model, { ...request, toolChoice: { name: 'weather' } }, reports);
    expect(reports).toHaveLength(1);
  });
});

describe('our tools beside those of the vendor', () => {
  it('X7: keep their names, and the vendor gets no name twice', async () => {
    const played = await play(saying('Hi.'));
    const own = { ...weatherDeclaration, name: 'web_search' };
    const builtInTools = [{ type: 'web_search_20260318', name: 'web_search' }];
    await ask(modelAt(played, { builtInTools }), { tools: [own], toolChoice: { name: own.name } });
    const [request] = await played.settled();
    expect(request?.violations).toEqual([]);
    const renamed = expect.stringMatching(/^web_search_./);
    expect(request?.body).toMatchObject({
      tools: [...builtInTools, { name: renamed }],
      tool_choice: { name: renamed },
    });
  });
});

describe('modelContract', () => {
  let played: Played;
  beforeAll(async () => {
    played = await play(saying('Four.'));
  });
  modelContract(() => modelAt(played)).forEach(({ name, run }) => it(name, run));
});
