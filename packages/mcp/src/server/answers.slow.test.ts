import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { isMillraceError, type Tool, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { isRecord } from 'millrace/values';
import { catchError, filter, firstValueFrom, map, type Observable, of, Subject } from 'rxjs';
import {
  closeAll,
  connected,
  modernMessage,
  serving,
  textIn,
  type Way,
  ways,
} from './clients.test-support.js';
import { type McpClient, mcpClient, mcpHandler } from './index.js';

afterEach(closeAll);

const name = jsonSchema({
  type: 'object',
  properties: { name: { type: 'string', maxLength: 5 } },
  required: ['name'],
});
const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
} as const;

const questions: Readonly<Record<string, (client: McpClient) => Observable<unknown>>> = {
  forms: (client) => client.elicit$({ message: 'Name?', schema: name }),
  pages: (client) => client.elicitUrl$({ message: 'Pay', url: 'https://example.com/pay' }),
  sampling: (client) => client.sample$({ messages: 'Hello', maxTokens: 5 }),
  samplingTools: (client) => client.sample$({ messages: 'Hello', maxTokens: 5, tools: [weather] }),
  roots: ({ roots$ }) => roots$,
};

/** Asks, and says what became of it. */
const asking = (feature: string): Tool =>
  tool({
    name: feature,
    description: 'Asks.',
    timeoutMs: 400,
    run: (_input, context) =>
      (questions[feature]?.(mcpClient(context)) ?? of('none')).pipe(
        map((answer) => JSON.stringify(answer)),
        catchError((error: unknown) => of(isMillraceError(error) ? error.code : 'unknown')),
      ),
  });

/** A client of version 2025 that writes its messages by hand. */
const rawClient = async (tools: readonly Tool[]) => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const received$ = new Subject<Readonly<Record<string, unknown>>>();
  let rest = '';
  output.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) received$.next(JSON.parse(line));
  });
  await serving(tools, { stdio: { input, output } });
  const send = (message: object): void =>
    void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request = (id: number, method: string, params: object) => {
    const answer = firstValueFrom(
      received$.pipe(filter((it) => it['id'] === id && it['method'] === undefined)),
    );
    send({ id, method, params });
    return answer;
  };
  const capabilities = {
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
    roots: {},
  };
  const clientInfo = { name: 'raw', version: '1' };
  await request(1000, 'initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo });
  send({ method: 'notifications/initialized' });
  return { send, request, received$ };
};

/** The outcome of a tool whose question gets these messages. */
const outcomeOf = async (
  feature: string,
  answers: (id: unknown) => readonly object[],
): Promise<string> => {
  const { send, request, received$ } = await rawClient([asking(feature)]);
  received$
    .pipe(filter(({ method, id }) => method !== undefined && id !== undefined))
    .subscribe(({ id }) => answers(id).forEach(send));
  const { result } = await request(1001, 'tools/call', { name: feature });
  // The server goes on.
  expect(await request(1002, 'tools/list', {})).toHaveProperty('result.tools');
  return textIn(isRecord(result) ? result : {});
};

const said = (content: unknown, more: object = {}) => ({
  role: 'assistant',
  model: 'm',
  content,
  ...more,
});
const hello = { type: 'text', text: 'Hello' };
const call = (tool_: string, input: unknown = {}) => ({
  type: 'tool_use',
  id: '1',
  name: tool_,
  input,
});

describe('T24: an answer of a client with the wrong shape', () => {
  it.each<[feature: string, result: unknown]>([
    ...Object.keys(questions).map((feature): [string, unknown] => [feature, {}]),
    ['forms', { action: 'yes' }],
    ['forms', { action: 'accept' }],
    ['forms', { action: 'accept', content: null }],
    ['forms', { action: 'accept', content: { name: 5 } }],
    ['forms', { action: 'accept', content: { name: 'longer than five' } }],
    ['forms', { action: 'accept', content: { name: { toString: 'x' } } }],
    ['pages', { action: 'accepted' }],
    ['sampling', said(null)],
    ['sampling', said('Hello')],
    ['sampling', said({ type: 'video', data: '' })],
    ['sampling', said([hello, null])],
    ['sampling', { content: hello }],
    ['sampling', said(hello, { role: 'system' })],
    ['sampling', said(call('weather'))],
    ['sampling', { task: { taskId: '1', status: 'working' } }],
    ['samplingTools', said(call('delete_all'))],
    ['samplingTools', said([call('weather'), call('delete_all')])],
    ['samplingTools', said(call('weather', 'Paris'))],
    ['samplingTools', said({ type: 'tool_result', toolUseId: '1', content: [] })],
    ['roots', { roots: 'file:///' }],
    ['roots', { roots: [null] }],
    ['roots', { roots: [{ uri: 5 }] }],
    ['roots', { roots: [{ uri: 'https://example.com' }] }],
  ])('passes the question for %s to the tool: %j', async (feature, result) => {
    expect(await outcomeOf(feature, (id) => [{ id, result }])).toBe('invalidResponse');
  });

  it.each<[what: string, answers: (id: unknown) => readonly object[], outcome: string]>([
    ['is an error', (id) => [{ id, error: { code: -1, message: 'x'.repeat(1e6) } }], 'refused'],
    ['never comes', () => [], 'did not finish within 400 ms'],
    ['is for another question', () => [{ id: 'other', result: said(hello) }], 'did not finish'],
    ['is no object', (id) => [{ id, result: null }], 'did not finish'],
    [
      'comes twice',
      (id) => [
        { id, result: said(hello) },
        { id, result: said({ type: 'text', text: 'Bye' }) },
      ],
      '"text":"Hello"',
    ],
    [
      'is a list of blocks',
      (id) => [{ id, result: said([hello, { type: 'text', text: '!' }]) }],
      '"text":"Hello!"',
    ],
  ])('that %s', async (_what, answers, outcome) => {
    expect(await outcomeOf('sampling', answers)).toContain(outcome);
  });
});

describe.each<Way>(ways)('T24: the model of the client over %s', (way) => {
  const agent = tool({
    name: 'agent',
    description: 'Asks the model of the client, with a tool.',
    run: (_input, context) =>
      mcpClient(context)
        .sample$({
          messages: 'How is the weather?',
          maxTokens: 9,
          tools: [weather],
          toolChoice: 'required',
        })
        .pipe(map(({ toolCalls, text, content }) => JSON.stringify([toolCalls, text, content]))),
  });

  it('gets tools, and its calls come back', async () => {
    const asked: unknown[] = [];
    const { client } = await connected(way, [agent], {
      client: { capabilities: { sampling: { tools: {} } } },
      prepare: (it) =>
        it.setRequestHandler('sampling/createMessage', ({ params }) => {
          asked.push([params.tools, params.toolChoice]);
          return {
            role: 'assistant',
            model: 'm',
            stopReason: 'toolUse',
            content: [
              { type: 'text', text: 'I look.' },
              { type: 'tool_use', id: '1', name: 'weather', input: { city: 'Rome' } },
            ],
          };
        }),
    });
    const called = { type: 'tool_use', id: '1', name: 'weather', input: { city: 'Rome' } };
    expect(JSON.parse(textIn(await client.callTool({ name: 'agent' })))).toEqual([
      [called],
      'I look.',
      [{ type: 'text', text: 'I look.' }, called],
    ]);
    expect(asked).toEqual([[[weather], { mode: 'required' }]]);
  });

  it('is not asked with tools if the client does not support that', async () => {
    const { client } = await connected(way, [agent], {
      client: { capabilities: { sampling: {} } },
    });
    const outcome: unknown = await client
      .callTool({ name: 'agent' })
      .catch((error: unknown) => error);
    if (way.endsWith('2026')) {
      const data = { requiredCapabilities: { sampling: { tools: {} } } };
      expect(outcome).toMatchObject({ code: -32021, data });
    } else {
      expect(textIn(isRecord(outcome) ? outcome : {})).toBe(
        'The client does not support requests to its model with tools (sampling).',
      );
    }
  });
});

it('T24: a handler takes the request of an adapter that only looks like one', async () => {
  const use = tool({ name: 'use', description: 'Uses.', run: () => 'used it' });
  const handler = mcpHandler([use], { authorize: (token) => token === 'x' });
  const { body, headers } = modernMessage('tools/call', { name: 'use', arguments: {} });
  const real = new Request('http://localhost/mcp', {
    method: 'POST',
    body,
    headers: { ...headers, authorization: 'Bearer x' },
  });
  // As those of Hono for Node with `overrideGlobalObjects: false`: no fields of its own, and not of the class.
  const likeness = new Proxy(Object.create(null) as Request, {
    get: (_target, key) => {
      const value: unknown = Reflect.get(real, key, real);
      return typeof value === 'function' ? value.bind(real) : value;
    },
  });
  const response = await handler.fetch(likeness);
  expect([response.status, await response.text()]).toEqual([
    200,
    expect.stringContaining('used it'),
  ]);
  handler.close();
});
