import { request } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type MillraceError, textBlock, type Tool, tool, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  firstValueFrom,
  NEVER,
  Observable,
  of,
  range,
  skip,
  Subject,
  throwError,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  clientOf,
  closeAll,
  connected,
  overHttp,
  serving,
  textIn,
} from './clients.test-support.js';
import { createHandler } from './mcp-handler.js';
import { type Access, mcpHandler, type ServingOptions } from './index.js';
import { createShared } from './serving.js';
import { servingOf } from './serve-options.js';

afterEach(closeAll);

const echo = tool({
  name: 'echo',
  description: 'Repeats.',
  input: jsonSchema({ type: 'object', additionalProperties: true }),
  run: (input) => JSON.stringify(input),
});

interface Answered {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

type Headers = Readonly<Record<string, string>>;

const json = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

/** A request whose headers may be any: `fetch` sets some of them itself. */
const send = (
  url: string,
  method: string,
  body: string | readonly string[] = '',
  headers: Headers = {},
): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { ...json, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers }),
      );
    });
    // A server that refuses a body closes the connection while it is sent.
    sent.on('error', (error) => reject(error));
    for (const part of typeof body === 'string' ? [body] : body) sent.write(part);
    sent.end();
  });

const message = (method: string, params: object = {}, id: number | undefined = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), method, params });

const hello = message('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1' },
});

const sessionAt = async (url: string, headers: Headers = {}): Promise<Headers> => {
  const { status, headers: given } = await send(url, 'POST', hello, headers);
  expect(status).toBe(200);
  return { ...headers, 'mcp-session-id': String(given['mcp-session-id']) };
};

describe('T21: a request over HTTP', () => {
  it.each<[what: string, status: number, method: string, body: string, headers: Headers]>([
    ['with the Host of another site', 403, 'POST', hello, { host: 'evil.example' }],
    ['with a Host that is no name', 403, 'POST', hello, { host: '127.0.0.1:80@evil.example' }],
    ['from a page of another site', 403, 'POST', hello, { origin: 'https://evil.example' }],
    ['from an opaque page', 403, 'POST', hello, { origin: 'null' }],
    ['from a page of this machine', 200, 'POST', hello, { origin: 'http://localhost:3000' }],
    ['that is no JSON', 400, 'POST', '{"jsonrpc":', {}],
    ['that is no message', 400, 'POST', '{"jsonrpc":"1.0"}', {}],
    ['that is empty', 400, 'POST', '', {}],
    ['that is a list of 101 messages', 400, 'POST', `[${Array(101).fill(hello).join()}]`, {}],
    ['that nests 100,000 lists', 400, 'POST', '['.repeat(100_000) + ']'.repeat(100_000), {}],
    ['of another media type', 415, 'POST', hello, { 'content-type': 'text/plain' }],
    ['that accepts no events', 406, 'POST', hello, { accept: 'application/json' }],
    ['of a page that asks for permission', 405, 'OPTIONS', '', { origin: 'http://localhost' }],
    ['of another method', 405, 'PUT', hello, {}],
    ['without a session', 400, 'POST', message('tools/list'), {}],
    ['to listen without a session', 400, 'GET', '', {}],
    ['of an unknown session', 404, 'POST', message('tools/list'), { 'mcp-session-id': 'x' }],
    ['to end an unknown session', 404, 'DELETE', '', { 'mcp-session-id': 'x' }],
    ['of an unknown version', 400, 'POST', message('tools/list'), { 'mcp-protocol-version': '9' }],
  ])('%s gets %d', async (_what, status, method, body, headers) => {
    const url = await overHttp([echo]);
    const answered = await send(url, method, body, headers);
    expect(answered.status).toBe(status);
    expect(answered.body).not.toMatch(/\bat .*\.(ts|js|mjs):\d/);
    // The server still answers others.
    expect((await send(url, 'POST', hello)).status).toBe(200);
  });

  it('to another path gets 404', async () => {
    const url = await overHttp([echo]);
    expect((await send(`${url}/more`, 'POST', hello)).status).toBe(404);
    expect((await send(url.replace('/mcp', '/'), 'GET')).status).toBe(404);
  });

  it.each([
    ['declares its length', 'x'.repeat(5_000)],
    ['does not', Array.from({ length: 50 }, () => 'x'.repeat(100))],
  ])('that is too long gets 413, if it %s', async (_how, body) => {
    const url = await overHttp([echo], { limits: { message: 1_000 } });
    const answered = await send(url, 'POST', body).catch((error: NodeJS.ErrnoException) => error);
    if (answered instanceof Error) expect(answered.code).toMatch(/ECONNRESET|EPIPE/);
    else expect(answered.status).toBe(413);
    expect((await send(url, 'POST', hello)).status).toBe(200);
  });

  it('without a valid token gets 401 for every request', async () => {
    const seen: unknown[] = [];
    const url = await overHttp([echo], {
      authorize: (token) => {
        seen.push(token);
        return of(token === 'right');
      },
    });
    const without = await send(url, 'POST', 'no JSON');
    expect(without).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
    expect(await send(url, 'POST', hello, { authorization: 'Bearer wrong' })).toMatchObject({
      status: 401,
    });
    expect(await send(url, 'POST', hello, { authorization: 'bearer right' })).toMatchObject({
      status: 200,
    });
    expect(seen).toEqual([undefined, 'wrong', 'right']);
  });

  it('gets 500 without the reason if its token cannot be checked', async () => {
    const errors: MillraceError[] = [];
    const url = await overHttp([echo], {
      authorize: () => throwError(() => new Error('ldap://admin:secret@host')),
      onError: (error) => void errors.push(error),
    });
    const answered = await send(url, 'POST', hello);
    expect(answered.status).toBe(500);
    expect(answered.body).not.toContain('secret');
    expect(errors.map((error) => error.message)).toEqual(['ldap://admin:secret@host']);
  });
});

describe('T21: a handler', () => {
  const asked = (body: string, headers: Headers = {}): Request =>
    new Request('http://localhost/mcp', { method: 'POST', headers: { ...json, ...headers }, body });

  it.each<unknown>([
    0,
    '',
    Number.NaN,
    undefined,
    null,
    { id: 5 },
    { user: undefined },
    { user: '' },
  ])('refuses a client for which authorize emits %j', async (access) => {
    const { fetch, close } = mcpHandler([echo], { authorize: () => of(access as Access) });
    expect((await fetch(asked(hello))).status).toBe(401);
    close();
  });

  it('admits no client that it was still checking when it was closed', async () => {
    const access$ = new Subject<boolean>();
    const { fetch, close } = mcpHandler([echo], { authorize: () => access$ });
    const answered = fetch(asked(hello));
    while (!access$.observed) await new Promise(setImmediate);
    close();
    access$.next(true);
    expect((await answered).status).toBe(503);
  });

  it('hides errors that annotations throw', async () => {
    const { fetch, close } = mcpHandler([echo], {
      annotations: () => {
        throw new Error('postgres://me:secret@host');
      },
    });
    const begun = await fetch(asked(hello));
    const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
    const listed = await fetch(asked(message('tools/list'), session));
    const text = await listed.text();
    expect(text).toContain('-32603');
    expect(text).not.toContain('secret');
    close();
  });
});

describe('T21: sessions', () => {
  it('belong to their user, who is in the metadata of calls', async () => {
    const who = tool({
      name: 'who',
      description: 'Says who asks.',
      run: (_input, { metadata }) => `${metadata['user']} ${typeof metadata['session']}`,
    });
    const url = await overHttp([who], {
      authorize: (token) => token !== undefined && { user: token },
    });
    const ann = await sessionAt(url, { authorization: 'Bearer ann' });
    const call = message('tools/call', { name: 'who' });
    expect((await send(url, 'POST', call, ann)).body).toContain('ann string');
    const bob = { ...ann, authorization: 'Bearer bob' };
    expect((await send(url, 'POST', call, bob)).status).toBe(404);
    expect((await send(url, 'DELETE', '', bob)).status).toBe(404);
    expect((await send(url, 'DELETE', '', ann)).status).toBe(200);
    expect((await send(url, 'POST', call, ann)).status).toBe(404);
  });

  it('are limited in number, and requests that start none do not count', async () => {
    const url = await overHttp([echo], { limits: { sessions: 2 } });
    for (let count = 0; count < 5; count += 1) await send(url, 'POST', message('tools/list'));
    const first = await sessionAt(url);
    const flood = await Promise.all(Array.from({ length: 9 }, () => send(url, 'POST', hello)));
    expect(flood.map(({ status }) => status).sort()).toEqual([200, ...Array(8).fill(503)]);
    expect((await send(url, 'DELETE', '', first)).status).toBe(200);
    await sessionAt(url);
  });

  it('are limited when their first messages arrive at the same time', async () => {
    const { fetch, close } = mcpHandler([echo], { limits: { sessions: 2 } });
    const first = { method: 'POST', headers: json, body: hello };
    const answered = await Promise.all(
      Array.from({ length: 5 }, () => fetch(new Request('http://localhost/mcp', first))),
    );
    expect(answered.map(({ status }) => status).sort()).toEqual([200, 200, 503, 503, 503]);
    close();
  });

  it.each<[one: string, other: string, access: (token?: string) => Access]>([
    ['a user', 'another user', (token) => token !== undefined && { user: token.slice(0, 3) }],
    ['a token', 'another token', (token) => token !== undefined],
    ['clients without a token', 'a user', (token) => token === undefined || { user: token }],
    ['a user', 'clients without a token', (token) => token === undefined || { user: token }],
  ])('cannot all be taken by %s: %s gets one', async (one, other, authorize) => {
    // A user has as many tokens as he likes.
    const headersOf = (who: string, at: number): Headers =>
      who.startsWith('clients')
        ? {}
        : { authorization: `Bearer ${who === 'a user' ? `eve${at}` : who.replace(/ /g, '')}` };
    const url = await overHttp([echo], { authorize, limits: { sessions: 10 } });
    const isOneUser = one === 'a user' && other === 'another user';
    const taking = (at: number): Headers => headersOf(one, isOneUser ? at : 0);
    const first = await sessionAt(url, taking(0));
    await sessionAt(url, taking(1));
    const further = await Promise.all(
      Array.from({ length: 9 }, (_, at) => send(url, 'POST', hello, taking(at + 2))),
    );
    expect(further.map(({ status }) => status)).toEqual(Array(9).fill(429));
    expect(further[0]?.body).toContain('You have 2 sessions already.');
    await sessionAt(
      url,
      other === 'a user' ? { authorization: 'Bearer ann' } : headersOf(other, 0),
    );
    // What ends makes room.
    expect((await send(url, 'DELETE', '', first)).status).toBe(200);
    await sessionAt(url, taking(3));
    expect((await send(url, 'POST', hello, taking(4))).status).toBe(429);
  });

  it('of one client are limited by their number, and again after they were idle', async () => {
    const scheduler = new VirtualTimeScheduler();
    const authorize = () => ({ user: 'eve' });
    const limits = { sessions: 5, sessionsPerClient: 3 };
    const options = servingOf('test', [echo], { authorize, limits });
    const { fetch, close } = createHandler(options, createShared(options), scheduler);
    const ask = async (body: string): Promise<number> => {
      const asked = new Request('http://localhost/mcp', { method: 'POST', headers: json, body });
      const response = await fetch(asked);
      await response.text();
      return response.status;
    };
    // A message that starts no session takes none.
    for (let at = 0; at < 5; at += 1) expect(await ask(message('tools/list'))).toBe(400);
    const hellos = async (): Promise<readonly number[]> => {
      const statuses: number[] = [];
      for (let at = 0; at < 5; at += 1) statuses.push(await ask(hello));
      return statuses;
    };
    expect(await hellos()).toEqual([200, 200, 200, 429, 429]);
    scheduler.flush();
    expect(await hellos()).toEqual([200, 200, 200, 429, 429]);
    close();
  });

  it('end when they are idle, and not while a request is open', async () => {
    const scheduler = new VirtualTimeScheduler();
    const options = servingOf('test', [echo], { timeouts: { idleMs: 1_000 } });
    const { fetch, close } = createHandler(options, createShared(options), scheduler);
    const ask = (method: string, headers: Headers, body?: string): Promise<Response> =>
      fetch(
        new Request('http://localhost/mcp', {
          method,
          headers: { ...json, ...headers },
          ...(body !== undefined && { body }),
        }),
      );
    const begun = await ask('POST', {}, hello);
    const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
    await begun.text();
    const listening = await ask('GET', session);
    expect(listening.status).toBe(200);
    scheduler.flush();
    const listed = await ask('POST', session, message('tools/list'));
    expect(listed.status).toBe(200);
    await listed.text();
    await listening.body?.cancel();
    scheduler.flush();
    expect((await ask('POST', session, message('tools/list'))).status).toBe(404);
    close();
    expect((await ask('POST', {}, hello)).status).toBe(503);
  });
});

describe('T21: a call', () => {
  it('cannot pollute prototypes', async () => {
    const url = await overHttp([echo]);
    const session = await sessionAt(url);
    const body = message('tools/call', { name: 'echo', arguments: {} }).replace(
      '"arguments":{}',
      '"arguments":{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"yes"}}}',
    );
    expect((await send(url, 'POST', body, session)).status).toBe(200);
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const call = message('tools/call', { name });
      expect((await send(url, 'POST', call, session)).body).toContain('There is no tool');
    }
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it.each(['http 2025', 'http 2026'] as const)(
    'over %s is cancelled when its client disconnects',
    async (way) => {
      const started$ = new Subject<void>();
      const cancelled$ = new Subject<void>();
      const { url } = await connected(way, [waiting(started$, cancelled$)]);
      const is2026 = way.endsWith('2026');
      const headers: Headers = is2026
        ? {
            'mcp-protocol-version': '2026-07-28',
            'mcp-method': 'tools/call',
            'mcp-name': 'wait',
          }
        : await sessionAt(url);
      const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const sent = request(url, { method: 'POST', headers: { ...json, ...headers } });
      sent.on('error', () => undefined);
      const started = firstValueFrom(started$);
      const cancelled = firstValueFrom(cancelled$);
      sent.end(message('tools/call', { name: 'wait', ...(is2026 && { _meta: meta }) }));
      await started;
      sent.destroy();
      await cancelled;
    },
  );

  it('of a fetch handler is cancelled when its response is not read', async () => {
    const started$ = new Subject<void>();
    const cancelled$ = new Subject<void>();
    const { fetch, close } = mcpHandler([waiting(started$, cancelled$)]);
    const ask = (body: string, headers: Headers = {}): Promise<Response> =>
      fetch(
        new Request('http://localhost/mcp', {
          method: 'POST',
          headers: { ...json, ...headers },
          body,
        }),
      );
    const begun = await ask(hello);
    const id = begun.headers.get('mcp-session-id') ?? '';
    const started = firstValueFrom(started$);
    const cancelled = firstValueFrom(cancelled$);
    const response = await ask(message('tools/call', { name: 'wait' }), { 'mcp-session-id': id });
    await started;
    await response.body?.cancel();
    await cancelled;
    close();
  });

  it('is refused while too many run', async () => {
    const started$ = new Subject<void>();
    const { client } = await connected('stdio 2025', [waiting(started$, new Subject()), echo], {
      limits: { calls: 1 },
    });
    const abort = new AbortController();
    const started = firstValueFrom(started$);
    const first = client.callTool({ name: 'wait' }, { signal: abort.signal });
    first.catch(() => undefined);
    await started;
    const refused = await client.callTool({ name: 'echo' });
    expect(refused.isError).toBe(true);
    expect(textIn(refused)).toBe('1 tool calls are running already. Try again later.');
    abort.abort();
    await first.catch(() => undefined);
    expect((await client.callTool({ name: 'echo' })).isError).toBe(false);
  });

  it.each(['http 2025', 'http 2026'] as const)(
    'of one client over %s does not take the place of another',
    async (way) => {
      const started$ = new Subject<void>();
      const url = await overHttp([waiting(started$, new Subject()), echo], {
        authorize: (token) => token !== undefined && { user: token },
        limits: { calls: 10 },
      });
      const clientFor = async (user: string) => {
        const client = clientOf(way);
        const requestInit = { headers: { authorization: `Bearer ${user}` } };
        await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
        return client;
      };
      const [eve, ann] = [await clientFor('eve'), await clientFor('ann')];
      const begun = firstValueFrom(started$.pipe(skip(1)));
      const waits = [1, 2].map(() => eve.callTool({ name: 'wait' }).catch(() => undefined));
      await begun;
      const refused = await eve.callTool({ name: 'echo' });
      expect(textIn(refused)).toBe('2 tool calls of yours are running. Try again later.');
      expect((await ann.callTool({ name: 'echo' })).isError).toBe(false);
      await eve.close();
      await ann.close();
      await Promise.all(waits);
    },
  );

  it.each<[what: string, run: () => unknown, options: ServingOptions, text: RegExp]>([
    [
      'returns much',
      () => toolOutput({ content: ['a', 'b', 'c'].map((it) => textBlock(it.repeat(60))) }),
      { limits: { result: 100 } },
      /^a{60}\nb{40}\n\[… 80 of 180 characters omitted\]$/,
    ],
    ['returns an empty text', () => '', { limits: { result: 1 } }, /^$/],
    ['takes long', () => NEVER, { timeouts: { toolMs: 20 } }, /did not finish within 20 ms/],
    ['returns what is no JSON', () => [1n, () => 1], {}, /1/],
    ['returns a cycle', cycle, {}, /cannot be converted to JSON/],
  ])('of a tool that %s gets a short result', async (_what, run, options, expected) => {
    const one = tool({ name: 'one', description: 'Is one.', run });
    const { client } = await connected('stdio 2025', [one], options);
    expect(textIn(await client.callTool({ name: 'one' }))).toMatch(expected);
  });

  it('gets no more progress than the limit', async () => {
    const many = tool({ name: 'many', description: 'Is many.', run: () => range(0, 5_000) });
    const { client } = await connected('stdio 2025', [many], { limits: { progress: 10 } });
    let seen = 0;
    await client.callTool({ name: 'many' }, { onprogress: () => (seen += 1) });
    expect(seen).toBe(10);
  });
});

describe('T21: over stdio', () => {
  const streams = () => ({ input: new PassThrough(), output: new PassThrough() });

  it('lines that are not messages are ignored', async () => {
    const stdio = streams();
    const errors: MillraceError[] = [];
    await serving([echo], { stdio, onError: (error) => void errors.push(error) });
    const answer = firstValueFrom(
      new Observable<string>((seen) => {
        stdio.output.on('data', (chunk) => seen.next(String(chunk)));
      }),
    );
    stdio.input.write('garbage\n{"jsonrpc":"2.0"}\n[]\n{"id":{}}\n');
    stdio.input.write(`${hello}\n`);
    expect(JSON.parse(await answer)).toMatchObject({ id: 1, result: { serverInfo: {} } });
    expect(errors.length).toBeGreaterThan(0);
  });

  it('a line that is too long ends the connection', async () => {
    const stdio = streams();
    const { end$ } = await serving([echo], { stdio, limits: { message: 1_000 } });
    stdio.input.write('x'.repeat(2_000));
    expect(await firstValueFrom(end$)).toBe('complete');
  });

  it('the end of the input cancels calls with the same id as well', async () => {
    const started$ = new Subject<void>();
    const cancelled$ = new Subject<void>();
    const stdio = streams();
    await serving([waiting(started$, cancelled$)], { stdio });
    const started = firstValueFrom(started$.pipe(skip(1)));
    const cancelled = firstValueFrom(cancelled$.pipe(skip(1)));
    const call = message('tools/call', { name: 'wait' }, 2);
    stdio.input.write(`${hello}\n${call}\n${call}\n`);
    await started;
    stdio.input.end();
    await cancelled;
  });

  it('the end of the input cancels what runs, and completes', async () => {
    const started$ = new Subject<void>();
    const cancelled$ = new Subject<void>();
    const stdio = streams();
    const { end$ } = await serving([waiting(started$, cancelled$)], { stdio });
    const started = firstValueFrom(started$);
    const cancelled = firstValueFrom(cancelled$);
    stdio.input.write(`${hello}\n${message('tools/call', { name: 'wait' }, 2)}\n`);
    await started;
    stdio.input.end();
    await cancelled;
    expect(await firstValueFrom(end$)).toBe('complete');
  });
});

const waiting = (started$: Subject<void>, cancelled$: Subject<void>): Tool =>
  tool({
    name: 'wait',
    description: 'Waits.',
    // Only a client that leaves ends it.
    timeoutMs: 2_000_000_000,
    run: () =>
      new Observable(() => {
        started$.next();
        return () => cancelled$.next();
      }),
  });

function cycle(): unknown {
  const it: Record<string, unknown> = {};
  it['self'] = it;
  return it;
}
