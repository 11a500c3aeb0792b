import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type Model, textOf, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { concatMap, defer, filter, firstValueFrom, interval, NEVER, of, repeat } from 'rxjs';
import { agUi } from '../ag-ui/index.js';
import { openAi } from '../openai/index.js';
import { chatServer, type ChatServer, type ChatServerOptions } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

const protocols = [agUi(), openAi()];
const echo = () =>
  scriptedModel(
    ...[1, 2, 3].map((): ScriptedAnswer => ({ messages }) => [
      text(messages.map(textOf).at(-1) ?? ''),
    ]),
  );

const serving = (options: ChatServerOptions = {}, model: Model = echo()) => {
  const heard: string[] = [];
  const onError = ({ message }: Error): void => void heard.push(message);
  const agent = createAgent({ name: 'helper', model });
  const server = chatServer(agent, { protocols, onError, ...options });
  servers.push(server);
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await server.respond(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    );
    return { status: response.status, body: await response.text() };
  };
  return { heard, server, post };
};

/** The requests of each protocol, with these parts in their only message. */
const requests: Readonly<
  Record<string, readonly [path: string, body: (parts: unknown[]) => unknown]>
> = {
  'the AI SDK': [
    '/api/chat',
    (parts) => ({ id: 'c', messages: [{ id: 'q', role: 'user', parts }] }),
  ],
  'AG-UI': [
    '/api/ag-ui',
    (content) => ({
      ...{ threadId: 't', runId: 'r', tools: [], context: [], state: {}, forwardedProps: {} },
      messages: [{ id: 'q', role: 'user', content }],
    }),
  ],
  'chat completions': [
    '/v1/chat/completions',
    (content) => ({ model: 'helper', messages: [{ role: 'user', content }] }),
  ],
  responses: [
    '/v1/responses',
    (content) => ({ model: 'helper', input: [{ role: 'user', content }] }),
  ],
};
const words = { type: 'text', text: 'Sum it up.' };
const foreign = [
  { type: 'data-page', data: { url: '/prices' } },
  { type: 'source-url', sourceId: '1', url: 'https://example.org' },
  { type: 'x y\nz' },
];

describe('a message part other than text and files', () => {
  for (const [protocol, [path, bodyOf]] of Object.entries(requests)) {
    const isStrict = path.startsWith('/v1');

    it.each(foreign)(`of ${protocol} is never dropped in silence: $type`, async (part) => {
      const { heard, post } = serving();
      const { status, body } = await post(path, bodyOf([words, part]));
      expect(status).toBe(isStrict ? 400 : 200);
      expect(heard).toHaveLength(1);
      if (isStrict) expect(body).toContain('content');
      else expect(body).toContain('Sum it up.');
      expect(/^[\w-]+$/.test(part.type) && !isStrict).toBe(heard[0]?.includes(`'${part.type}'`));
    });

    it(`of ${protocol} is what the application converts it to`, async () => {
      const asked: string[] = [];
      const { heard, post } = serving({
        convertPart: ({ type, data }) => {
          asked.push(type);
          return type === 'data-page' ? `The page: ${JSON.stringify(data)}` : undefined;
        },
      });
      const { status, body } = await post(path, bodyOf([words, ...foreign]));
      expect([status, heard, asked]).toEqual([200, [], foreign.map(({ type }) => type)]);
      expect(body).toContain(String.raw`Sum it up.\n\nThe page: {\"url\":\"/prices\"}`);
    });
  }

  it.each([
    [[{ type: 'text' }], "the 'text' of part 1 of the last message is not a string"],
    [[words, {}], "part 2 of the last message has no 'type'"],
    [[words, null], "part 2 of the last message has no 'type'"],
    [
      [{ type: 'file', url: 'https://a.b/c', mediaType: 'image/png' }],
      "part 1 of the last message, a 'file', may only have base64 data",
    ],
    [[foreign[0]], 'the last message has no text'],
    ['text', 'the last message must have a list of parts'],
  ])('that is malformed is named, to the client and to onError: %j', async (parts, problem) => {
    const { heard, post } = serving();
    const { status, body } = await post('/api/chat', {
      id: 'c',
      messages: [{ id: 'q', role: 'user', parts }],
    });
    const error = `The request is malformed: ${problem}.`;
    expect([status, JSON.parse(body)]).toEqual([400, { error, code: 'invalidRequest' }]);
    expect(heard.at(-1)).toBe(error);
  });
});

describe('custom fields of a request', () => {
  const fast = () => scriptedModel([text('From the fast one.')]);
  const callOptions: NonNullable<ChatServerOptions['callOptions']> = ({ speed, locale }) => ({
    ...(speed === 'fast' && { model: fast() }),
    ...(locale !== undefined && { instructions: `Answer in ${locale}.` }),
  });
  const metadata: NonNullable<ChatServerOptions['metadata']> = ({ request, body }) => {
    const speed = typeof body === 'object' && body !== null && 'speed' in body ? body.speed : '';
    const locale = request.headers.get('accept-language');
    return of({
      ...(speed === 'fast' && { speed }),
      ...(locale !== null && { locale }),
      userId: 'forged',
    });
  };

  it.each(Object.entries(requests))(
    'of %s choose the model and instructions',
    async (_, [path, bodyOf]) => {
      const model = echo();
      const { post } = serving({ metadata, callOptions }, model);
      const plain = await post(path, bodyOf([words]), { 'accept-language': 'nb' });
      expect(plain.body).toContain('Sum it up.');
      expect(model.requests[0]?.messages.map(textOf).join()).toContain('Sum it up.');
      expect(JSON.stringify(model.requests[0])).toContain('Answer in nb.');
      const quick = Object(bodyOf([words]));
      const body = {
        ...quick,
        speed: 'fast',
        ...('runId' in quick && { runId: 'r2', threadId: 't2' }),
        ...('id' in quick && { id: 'c2' }),
      };
      expect((await post(path, body)).body).toContain('From the fast one.');
      expect(model.requests).toHaveLength(1);
    },
  );

  it('reach tools, under the id of the user, and cannot forge it', async () => {
    const seen: unknown[] = [];
    const look = tool({
      name: 'look',
      description: 'Looks.',
      run: (_, context) => {
        seen.push(context.metadata);
        return 'ok';
      },
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('look', {}, 'l')], [text('Done.')]),
      tools: [look],
    });
    const server = chatServer(agent, { metadata, user: () => 'ann' });
    servers.push(server);
    await server
      .respond(
        new Request('http://localhost/api/chat', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(
            Object.assign(Object(requests['the AI SDK']?.[1]([words])), { speed: 'fast' }),
          ),
        }),
      )
      .then((response) => response.text());
    expect(seen).toEqual([{ speed: 'fast', userId: 'ann' }]);
  });

  it('are restored when the next server resumes the call', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const chosen: string[] = [];
    const next = (model: Model) =>
      serving({
        store,
        metadata: () => ({ speed: 'fast' }),
        callOptions: ({ speed = '' }) => {
          chosen.push(speed);
          return { model };
        },
      });
    const first = next(scriptedModel(() => NEVER));
    void first.post('/api/chat', requests['the AI SDK']?.[1]([words]));
    await firstValueFrom(interval(5).pipe(filter(() => chosen.length === 1)));
    await first.server.close({ timeoutMs: 0 });
    const { server } = next(scriptedModel([text('Fast.')]));
    const read$ = defer(() => server.respond(new Request('http://localhost/api/chat/c'))).pipe(
      concatMap((response) => response.text()),
      repeat({ delay: 20 }),
      filter((body) => body.includes('Fast.')),
    );
    expect(await firstValueFrom(read$)).toContain('Sum it up.');
    expect(chosen).toEqual(['fast', 'fast']);
  });

  it('other than strings are an error of the application, which names the option', async () => {
    const { heard, post } = serving({ metadata: () => Object({ a: 1 }) });
    const { status } = await post('/api/chat', requests['the AI SDK']?.[1]([words]));
    expect([status, heard]).toEqual([500, ["'metadata' must return strings by their names."]]);
  });
});
