import { afterEach, describe, expect, it } from '@jest/globals';
import { type MillraceError, type Tool, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { catchError, EMPTY, map, type Observable, of, throwError } from 'rxjs';
import {
  closeAll,
  connected,
  modernMessage,
  overHttp,
  posted,
  textIn,
  type Way,
  ways,
} from './clients.test-support.js';
import { type McpClient, mcpClient, type McpPrompt, type McpResource } from './index.js';

afterEach(closeAll);

const form = jsonSchema({ type: 'object', properties: { name: { type: 'string' } } });

const questions: Readonly<Record<string, (client: McpClient) => Observable<unknown>>> = {
  forms: (client) => client.elicit$({ message: 'Name?', schema: form }),
  pages: (client) => client.elicitUrl$({ message: 'Pay', url: 'https://example.com/pay' }),
  sampling: (client) => client.sample$({ messages: 'Hello', maxTokens: 5 }),
  roots: ({ roots$ }) => roots$,
};

const capabilities: Readonly<Record<string, object>> = {
  forms: { elicitation: { form: {} } },
  pages: { elicitation: { url: {} } },
  sampling: { sampling: {} },
  roots: { roots: {} },
};

const features = Object.keys(questions);
const asking = (feature: string, run = questions[feature] ?? (() => EMPTY)): Tool =>
  tool({
    name: feature,
    description: 'Asks.',
    run: (_input, context) => run(mcpClient(context)).pipe(map(() => 'asked')),
  });

const outcome = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: unknown) => error);

describe.each(features)('T24: a request that needs %s of a client without it', (feature) => {
  const ask = questions[feature] ?? (() => EMPTY);
  const prompt: McpPrompt = {
    name: 'asks',
    get: (_given, { client }) => ask(client).pipe(map(() => ['asked'])),
  };
  const resource: McpResource = {
    uri: 'asks:///it',
    name: 'asks',
    read: ({ client }) => ask(client).pipe(map(() => 'asked')),
  };

  it.each<Way>(['stdio 2026', 'http 2026'])(
    'fails with the capability over %s, and is reported',
    async (way) => {
      const errors: MillraceError[] = [];
      const onError = (error: MillraceError): void => void errors.push(error);
      const { client } = await connected(way, [asking(feature)], {
        onError,
        prompts: [prompt],
        resources: [resource],
      });
      const missing = { code: -32021, data: { requiredCapabilities: capabilities[feature] } };
      expect(await outcome(client.callTool({ name: feature }))).toMatchObject(missing);
      expect(await outcome(client.getPrompt({ name: 'asks' }))).toMatchObject(missing);
      expect(await outcome(client.readResource({ uri: 'asks:///it' }))).toMatchObject(missing);
      expect(errors.map(({ code }) => code)).toEqual(['refused', 'refused', 'refused']);
    },
  );

  it('gets the status 400 over HTTP', async () => {
    const url = await overHttp([asking(feature)]);
    const { status, body } = await posted(url, modernMessage('tools/call', { name: feature }));
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ id: 1, error: { code: -32021 } });
  });

  it.each<Way>(ways)('is answered over %s if the tool copes', async (way) => {
    const copes = asking(feature, (client) => ask(client).pipe(catchError(() => of('none'))));
    const { client } = await connected(way, [copes]);
    expect(textIn(await client.callTool({ name: feature }))).toBe('asked');
  });

  it.each<Way>(['stdio 2025', 'http 2025'])(
    'is a failed tool over %s, with the reason',
    async (way) => {
      const { client } = await connected(way, [asking(feature)]);
      const result = await client.callTool({ name: feature });
      expect(result.isError).toBe(true);
      expect(textIn(result)).toMatch(/^The client does not support /);
    },
  );
});

it('T24: an error of a tool never looks like a capability that is missing', async () => {
  const forged = Object.assign(new Error('forged'), { code: -32021, data: {} });
  const failing = tool({
    name: 'forged',
    description: 'Fails.',
    run: () => throwError(() => forged),
  });
  const { client } = await connected('http 2026', [failing]);
  expect(await client.callTool({ name: 'forged' })).toMatchObject({ isError: true });
});

describe('T21: an argument that clients repeat in a header', () => {
  const region = tool({
    name: 'region',
    description: 'Has an argument that a proxy may read.',
    input: jsonSchema({
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    }),
    run: ({ region: it }) => `ran in ${it}`,
  });

  it.each<[what: string, status: number, input: object, header: string | undefined]>([
    ['is the same', 200, { region: 'eu' }, 'eu'],
    ['is missing in both', 200, {}, undefined],
    ['is another', 400, { region: 'eu' }, 'us'],
    ['is only in the body', 400, { region: 'eu' }, undefined],
    ['is encoded, and the same', 200, { region: 'zürich' }, '=?base64?esO8cmljaA==?='],
    ['is encoded, and another', 400, { region: 'eu' }, '=?base64?esO8cmljaA==?='],
  ])('%s: %d', async (_what, status, input, header) => {
    const url = await overHttp(of([region]));
    const message = modernMessage('tools/call', { name: 'region', arguments: input });
    const answered = await posted(url, message, header && { 'mcp-param-region': header });
    expect(answered.status).toBe(status);
    expect(answered.body.includes('ran in')).toBe(status === 200);
    if (status === 400)
      expect(JSON.parse(answered.body)).toMatchObject({ error: { code: -32020 } });
  });

  it('does not hide the error of the list from a call', async () => {
    const url = await overHttp([region]);
    const unknown = modernMessage('tools/call', { name: 'unknown', arguments: {} });
    expect((await posted(url, unknown)).body).toMatch(/There is no tool 'unknown'/);
  });
});
