import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { filter, firstValueFrom, map } from 'rxjs';
import { mcp, type McpLayer, type McpOptions } from './index.js';
import { ran } from './servers.test-support.js';
import { answer, at, type Message, results, send, stream, web } from './web.test-support.js';

/** A server with sessions, which counts what runs, and forgets sessions when it is told to. */
const forgetful = async (refuse: (response: ServerResponse, message: Message) => unknown) => {
  const known = new Set<string>();
  const seen = { sessions: 0, runs: 0, requests: 0 };
  const now = { description: 'Uses it.' };
  const kept =
    (act: (message: Message, response: ServerResponse) => void) =>
    (message: Message, request: { headers: NodeJS.Dict<unknown> }, response: ServerResponse) => {
      seen.requests += 1;
      if (known.has(String(request.headers['mcp-session-id']))) act(message, response);
      else refuse(response, message);
    };
  const url = await web({
    initialize: (message, _request, response) => {
      seen.sessions += 1;
      known.add(`s${seen.sessions}`);
      const result = {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {}, resources: {}, prompts: {} },
        serverInfo: { name: 'web', version: '1' },
      };
      send(response, 200, { jsonrpc: '2.0', id: message['id'], result }, `s${seen.sessions}`);
    },
    'tools/list': kept((message, response) =>
      answer(response, message, {
        tools: [{ name: 'use', inputSchema: { type: 'object' }, ...now }],
      }),
    ),
    'tools/call': kept((message, response) => {
      seen.runs += 1;
      answer(response, message, results['tools/call']?.(message));
    }),
    'resources/list': kept((message, response) => answer(response, message, { resources: [] })),
    'resources/read': kept((message, response) =>
      answer(response, message, { contents: [{ uri: 'a:b', text: 'read' }] }),
    ),
    'prompts/list': kept((message, response) => answer(response, message, { prompts: [] })),
    'prompts/get': kept((message, response) =>
      answer(response, message, { messages: [{ role: 'user', content: 'got' }] }),
    ),
  });
  return { url, known, seen, now };
};

const held = (url: string, options: Partial<McpOptions> = {}): McpLayer => {
  const servers = mcp(at(url, {}, { resources: true, prompts: true, ...options }));
  open.push(servers.servers$.subscribe());
  return servers;
};
const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

const use = async (servers: McpLayer, name = 'web_use', input = {}): Promise<string> =>
  (await ran([servers], [[name, input]])).results[name] ?? '';

const statusOf = (servers: McpLayer): Promise<string | undefined> =>
  firstValueFrom(servers.servers$.pipe(map(([server]) => server?.status)));

const rpc = (code: number, message: string, id: unknown = null): object => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

type Refusal = (response: ServerResponse, message: Message) => unknown;

/** Ways to say that a session is not known, and whether it is certain that nothing ran. */
const refusals: readonly (readonly [how: string, refuse: Refusal, isCertain: boolean])[] = [
  ['404 without a body', (response) => send(response, 404), true],
  ['404 with an error', (response) => send(response, 404, rpc(-32001, 'Session not found')), true],
  [
    '404 of a router',
    (response) => {
      response.writeHead(404, { 'content-type': 'text/html' });
      response.end('<h1>Cannot POST /mcp</h1>');
    },
    true,
  ],
  [
    '400 with a text on the session',
    (response) => send(response, 400, rpc(-32000, 'Bad Request: No valid session ID provided')),
    true,
  ],
  [
    '400 with an error that has an id',
    (response, { id }) => send(response, 400, rpc(-32600, 'Invalid Mcp-Session-Id', id)),
    true,
  ],
  [
    '400 as plain text',
    (response) => {
      response.writeHead(400, { 'content-type': 'text/plain' });
      response.end('Unknown session');
    },
    true,
  ],
  ['a plain 400', (response) => send(response, 400), false],
  ['400 in other words', (response) => send(response, 400, rpc(-32000, 'Bad Request')), false],
  ['410', (response) => send(response, 410), true],
  ...[401, 403, 409, 422].flatMap((status): [string, Refusal, boolean][] =>
    ['Unauthorized: Session not found', 'Unexpected message, expect initialize request'].map(
      (words) => [`${status} with "${words}"`, (response) => send(response, status, words), true],
    ),
  ),
  ['500 with words on the session', (response) => send(response, 500, 'Session expired'), false],
  ...[-32_001, -32_000, -32_600, -32_002].flatMap((code): [string, Refusal, boolean][] =>
    ['Session not found', 'The session has expired.', 'Server not initialized'].map((words) => [
      `an error of the protocol ${code} "${words}"`,
      (response, { id }) => send(response, 200, rpc(code, words, id)),
      false,
    ]),
  ),
];

describe('T20: a session that the server has lost', () => {
  it.each(refusals)(
    '%s: is replaced, and a request is repeated if it is certain that nothing ran',
    async (_how, refuse, isCertain) => {
      const { url, known, seen } = await forgetful(refuse);
      const servers = held(url);
      expect(await use(servers)).toBe('use ran');
      known.clear();
      const first = await use(servers);
      expect(first === 'use ran').toBe(isCertain);
      expect(await use(servers)).toBe('use ran');
      expect(seen.sessions).toBe(2);
      expect(seen.runs).toBe(isCertain ? 3 : 2);
      expect(await statusOf(servers)).toBe('connected');
    },
  );

  it.each([
    ['web_list_resources', {}, ''],
    ['web_read_resource', { uri: 'a:b' }, '<a:b>\nread'],
    ['web_list_prompts', {}, ''],
    ['web_get_prompt', { name: 'a' }, '[user]got'],
  ])('%s is repeated as well', async (name, input, expected) => {
    const { url, known, seen } = await forgetful((response) => send(response, 404));
    const servers = held(url);
    await use(servers);
    known.clear();
    expect(await use(servers, name, input)).toBe(expected);
    expect(seen.sessions).toBe(2);
  });

  it('is not repeated if the server has changed the tool meanwhile', async () => {
    const { url, known, seen, now } = await forgetful((response) => send(response, 404));
    const servers = held(url, { onChanged: () => true });
    expect(await use(servers)).toBe('use ran');
    known.clear();
    now.description = 'Deletes it.';
    expect(await use(servers)).toMatch(/^Not run: the server has changed the tool 'use'/);
    expect(await use(servers)).toBe('use ran');
    expect(seen).toMatchObject({ sessions: 2, runs: 2 });
  });

  it('is replaced once for many tool calls', async () => {
    const { url, known, seen } = await forgetful((response) => send(response, 404));
    const servers = held(url);
    await use(servers);
    known.clear();
    const { reply } = await ran(
      [servers],
      Array.from({ length: 5 }, () => ['web_use']),
    );
    expect(reply.toolCalls.map(({ output }) => output)).toEqual(Array(5).fill('use ran'));
    expect(seen).toMatchObject({ sessions: 2, runs: 6 });
  });

  it('does not disturb a tool call that still runs', async () => {
    let calls = 0;
    let finish = (): void => undefined;
    const url = await web({
      'tools/call': (message, _request, response) => {
        calls += 1;
        const done = (): void => answer(response, message, results['tools/call']?.(message));
        if (calls === 1) finish = done;
        else if (calls === 2) {
          send(response, 404);
          setTimeout(() => finish(), 100);
        } else done();
      },
    });
    const { reply } = await ran([held(url)], [['web_use'], ['web_use']]);
    expect(reply.toolCalls.map(({ output }) => output)).toEqual(['use ran', 'use ran']);
    expect(calls).toBe(3);
  });

  it('twice in a row is a failure of the server, and waits before it connects again', async () => {
    let forever = false;
    const { url, known, seen } = await forgetful((response) => send(response, 404));
    const servers = held(url, { reconnect: { backoffMs: 60_000 } });
    await use(servers);
    forever = true;
    const clear = setInterval(() => forever && known.clear());
    const failed = firstValueFrom(
      servers.servers$.pipe(
        map(([server]) => server),
        filter((server) => server?.status === 'failed'),
      ),
    );
    expect(await use(servers)).toContain('HTTP 404');
    expect(await failed).toMatchObject({ error: { code: 'connection' } });
    clearInterval(clear);
    expect(seen.sessions).toBeLessThanOrEqual(3);
    expect(seen.runs).toBe(1);
  });

  it('X6: that lived for a while does not count for the next one', async () => {
    const { url, known, seen } = await forgetful((response) => send(response, 404));
    const servers = held(url);
    const now = Date.now.bind(Date);
    let hours = 0;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + hours * 3_600_000);
    await use(servers);
    for (let restarts = 1; restarts < 6; restarts += 1) {
      known.clear();
      hours += 1;
      expect(await use(servers)).toBe('use ran');
      expect([seen.sessions, seen.runs]).toEqual([restarts + 1, restarts + 1]);
    }
    clock.mockRestore();
  });

  it.each([-32_602, -32_603])(
    'is not what an error %d of a request means, in any words',
    async (code) => {
      const { url, seen } = await forgetful((response, { id }) =>
        send(response, 200, rpc(code, 'The session of the user is not found', id)),
      );
      const servers = held(url);
      await use(servers);
      await use(servers);
      expect(seen.sessions).toBe(1);
    },
  );

  it('of a server that answers 404 to everything is a failure, without a storm', async () => {
    let requests = 0;
    const none = (_message: Message, _request: unknown, response: ServerResponse): void => {
      requests += 1;
      send(response, 404);
    };
    const url = await web({ initialize: none, 'server/discover': none });
    const servers = held(url, { reconnect: { backoffMs: 200 } });
    const { warnings } = await ran([servers]);
    expect(warnings).toEqual([expect.stringContaining("'web' failed to connect: HTTP 404")]);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(requests).toBeLessThan(10);
  });

  it.each([
    [500, /HTTP 500/],
    [503, /HTTP 503/],
    [403, /HTTP 403/],
    [405, /HTTP 405/],
    [409, /HTTP 409/],
    [429, /HTTP 429/],
    [502, /HTTP 502/],
    [404, /HTTP 404. Method not found/, { error: { code: -32_601, message: 'Method not found' } }],
  ])('is not what %d means: the tool call fails once, the session stays', async (...row) => {
    const [status, text, body] = row as [number, RegExp, object?];
    let calls = 0;
    const url = await web({
      'tools/call': (message, _request, response) => {
        calls += 1;
        if (calls === 1) send(response, status, body && { id: message['id'], ...body });
        else answer(response, message, results['tools/call']?.(message));
      },
    });
    const servers = held(url);
    expect(await use(servers)).toMatch(text);
    expect(calls).toBe(1);
    expect(await use(servers)).toBe('use ran');
  });

  it('is not what 400 with another error for the request means, which the model reads', async () => {
    const { url, seen } = await forgetful((response) => send(response, 404));
    const answers = await web({
      'tools/call': ({ id }, _request, response) =>
        send(response, 400, rpc(-32602, 'The date is not valid.', id)),
    });
    expect(url).not.toBe(answers);
    expect(await use(held(answers))).toContain('HTTP 400. The date is not valid.');
    expect(seen.sessions).toBe(0);
  });

  it('is noticed when its stream cannot be opened again', async () => {
    let streams = 0;
    let sessions = 0;
    const url = await web({
      initialize: (message, _request, response) => {
        sessions += 1;
        const result = results['initialize']?.(message);
        send(response, 200, { jsonrpc: '2.0', id: message['id'], result }, `s${sessions}`);
      },
      GET: (_message, request, response) => {
        streams += 1;
        if (request.headers['mcp-session-id'] !== `s${sessions}` || streams === 2) {
          send(response, 404);
          return;
        }
        stream(response);
        if (streams === 1) response.end();
      },
    });
    const servers = held(url);
    await use(servers);
    while (sessions < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await use(servers)).toBe('use ran');
    expect(streams).toBeLessThan(5);
  });

  it('X6: that asks for its stream without a wait is not asked in a loop', async () => {
    let streams = 0;
    const url = await web({
      GET: (_message, _request, response) => {
        streams += 1;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end('retry: 0\nid: 1\ndata: \n\n');
      },
    });
    await use(held(url));
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(streams).toBeLessThan(10);
  });

  it('ended by another client (DELETE) is replaced', async () => {
    const { url, known } = await forgetful((response) => send(response, 404));
    const servers = held(url);
    await use(servers);
    known.delete('s1');
    expect(await use(servers)).toBe('use ran');
  });

  it('is kept when a token is renewed during a tool call, which runs once', async () => {
    let runs = 0;
    let token = 'old';
    const url = await web({
      'tools/call': (message, request, response) => {
        if (request.headers.authorization !== 'Bearer new') {
          send(response, 401);
          return;
        }
        runs += 1;
        answer(response, message, results['tools/call']?.(message));
      },
    });
    const authProvider = {
      token: () => Promise.resolve(token),
      onUnauthorized: () => {
        token = 'new';
        return Promise.resolve();
      },
    };
    const servers = mcp(at(url, { authProvider }));
    expect(await use(servers)).toBe('use ran');
    expect(runs).toBe(1);
  });

  it('is kept when the server redirects on its own origin', async () => {
    const url = await web({
      'tools/call': (message, request, response) => {
        if (request.url === '/mcp') {
          response.writeHead(307, { location: '/mcp/' });
          response.end();
        } else answer(response, message, results['tools/call']?.(message));
      },
    });
    expect(await use(held(url))).toBe('use ran');
  });
});
