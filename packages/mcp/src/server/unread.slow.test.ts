import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type Tool, tool } from 'millrace';
import { BehaviorSubject, NEVER, Subject } from 'rxjs';
import {
  closeAll,
  connected,
  modernMessage,
  type ModernMessage,
  serving,
} from './clients.test-support.js';
import { mcpClient, mcpHandler, type McpHandler, type ServingOptions } from './index.js';

afterEach(closeAll);

const url = 'http://localhost/mcp';

const sent = (handler: McpHandler, { body, headers }: ModernMessage, token = 'a') =>
  handler.fetch(
    new Request(url, {
      method: 'POST',
      body,
      headers: { ...headers, authorization: `Bearer ${token}` },
    }),
  );

const listen = (notifications: object) => modernMessage('subscriptions/listen', { notifications });

/** A stream of notifications of either version, which nobody reads yet. */
const streams: Readonly<Record<string, (handler: McpHandler, uri: string) => Promise<Response>>> = {
  '2026': (handler, uri) => sent(handler, listen({ resourceSubscriptions: [uri] })),
  '2025': async (handler, uri) => {
    const message = (id: number, method: string, params: object) => ({
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
    });
    const clientInfo = { name: 'raw', version: '1' };
    const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const opened = await sent(handler, message(0, 'initialize', hello));
    await opened.text();
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    const subscribe = message(1, 'resources/subscribe', { uri });
    const headers = { ...subscribe.headers, ...session };
    await (await sent(handler, { ...subscribe, headers })).text();
    return handler.fetch(
      new Request(url, { headers: { accept: 'text/event-stream', ...session } }),
    );
  },
};

const served = (uris$: Subject<string>, options: ServingOptions = {}) =>
  mcpHandler([], {
    ...options,
    resources: [{ uriTemplate: 'test:///{n}', name: 'n', read: () => '' }],
    resourceUpdates$: uris$,
  });

/** Emits a URI, which is announced at once: another one each time would be, too. */
const announce = async (uris$: Subject<string>, uri: string, times: number): Promise<void> => {
  for (let i = 0; i < times; i++) {
    uris$.next(uri);
    await new Promise((resolve) => setTimeout(resolve, 101));
  }
};

const textOf = (response: Response): Promise<string> =>
  response.text().catch((error: unknown) => `ended: ${String(error)}`);

describe.each(Object.keys(streams))(
  'T21: notifications that a client of %s leaves unread',
  (way) => {
    const uri = `test:///${'n'.repeat(500)}`;
    const open = streams[way] ?? (() => Promise.reject(new Error(way)));

    it('end its stream when they are too many, and reach the others', async () => {
      const uris$ = new Subject<string>();
      const handler = served(uris$, { limits: { unread: 2_000 } });
      const unread = await open(handler, uri);
      const other = await open(handler, uri);
      const reader = other.body?.pipeThrough(new TextDecoderStream()).getReader();
      let read = '';
      const reading = (async () => {
        for (;;) {
          const part = await reader?.read();
          if (part?.done !== false) return;
          read += part.value;
        }
      })();
      await announce(uris$, uri, 8);
      expect(await textOf(unread)).toMatch(/^ended: .*more than 2000 bytes unread/);
      expect(read.split('notifications/resources/updated').length - 1).toBe(8);
      handler.close();
      await reading;
    });

    it('wait for it while they are few', async () => {
      const uris$ = new Subject<string>();
      const handler = served(uris$, { limits: { unread: 8_000 } });
      const unread = await open(handler, uri);
      await announce(uris$, uri, 3);
      handler.close();
      const parts = (await textOf(unread)).split('notifications/resources/updated');
      expect(parts.length - 1).toBe(3);
    });
  },
);

describe('T21: streams of 2026 that listen for changes', () => {
  const notifications = { resourceSubscriptions: ['test:///a'] };

  it('are limited as sessions are, for all and for each client, and until they end', async () => {
    const handler = served(new Subject(), {
      limits: { sessions: 3, sessionsPerClient: 2 },
      ...{ authorize: () => true },
    });
    const open: Response[] = [];
    const statusFor = async (token: string): Promise<number> => {
      const response = await sent(handler, listen(notifications), token);
      open.push(response);
      return response.status;
    };
    expect([await statusFor('a'), await statusFor('a'), await statusFor('a')]).toEqual([
      200, 200, 429,
    ]);
    expect([await statusFor('b'), await statusFor('c')]).toEqual([200, 503]);
    await open[0]?.body?.cancel();
    expect([await statusFor('a'), await statusFor('a')]).toEqual([200, 429]);
    handler.close();
  });

  it('are refused for more resources than the limit', async () => {
    const handler = served(new Subject(), { limits: { subscriptions: 2 } });
    const many = listen({ resourceSubscriptions: ['test:///a', 'test:///b', 'test:///c'] });
    const { status } = await sent(handler, many);
    expect(status).toBe(400);
    const few = await sent(handler, listen({ resourceSubscriptions: ['test:///a', 'test:///b'] }));
    expect(few.status).toBe(200);
    handler.close();
  });
});

it('T21: the log messages of a call are limited to a million characters', async () => {
  const loud = tool({
    name: 'loud',
    description: 'Logs.',
    run: (_input, context) => {
      const { log } = mcpClient(context);
      for (let i = 0; i < 900; i++)
        log('info', i % 2 === 0 ? 'x'.repeat(9_000) : ['x'.repeat(9_000)]);
      return 'Done.';
    },
  });
  let characters = 0;
  const { client } = await connected('http 2025', [loud], {
    prepare: (it) =>
      it.setNotificationHandler('notifications/message', ({ params }) => {
        characters += JSON.stringify(params.data).length;
      }),
  });
  await client.setLoggingLevel('debug');
  await client.callTool({ name: 'loud' });
  expect(characters).toBeGreaterThan(900_000);
  expect(characters).toBeLessThan(1_010_000);
});

it('T21: changes wait once while a client over stdio does not read', async () => {
  const tools$ = new BehaviorSubject<readonly Tool[]>([]);
  const [input, output] = [new PassThrough(), new PassThrough()];
  await serving(tools$, { stdio: { input, output } });
  const send = (message: object): void =>
    void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const clientInfo = { name: 'raw', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  send({ id: 0, method: 'initialize', params });
  send({ method: 'notifications/initialized' });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < 2_000; i++) {
    tools$.next([tool({ name: `tool${i}`, description: 'Changes.', run: () => '' })]);
    await turn();
  }
  expect(output.writableLength + output.readableLength).toBeLessThan(50_000);
  let read = '';
  output.setEncoding('utf8').on('data', (text: string) => (read += text));
  await turn();
  const before = read.split('list_changed').length;
  tools$.next([]);
  await turn();
  expect(read.split('list_changed').length).toBeGreaterThan(before);
  send({ id: 1, method: 'tools/list' });
  await turn();
  expect(read).toContain('"id":1');
});

// `npm test` fails if a process warns.
it('T21: a client may have more than ten requests without a warning of Node', async () => {
  const slow = tool({ name: 'slow', description: 'Waits.', run: () => NEVER });
  const { client, serving: served$ } = await connected('http 2025', [slow]);
  const calls = Array.from({ length: 15 }, () =>
    client.callTool({ name: 'slow' }).catch(() => 'ended'),
  );
  await new Promise((resolve) => setTimeout(resolve, 300));
  served$.unsubscribe();
  await client.close();
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['ended']));
});
