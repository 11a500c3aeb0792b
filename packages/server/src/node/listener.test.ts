import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk } from 'millrace';
import { type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import express, { type Express, type RequestHandler } from 'express';
import { once } from 'node:events';
import {
  Agent,
  createServer,
  request as requestOf,
  type RequestListener,
  type Server,
} from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { firstValueFrom, NEVER, Observable, ReplaySubject } from 'rxjs';
import { agUi } from '../ag-ui/index.js';
import { approvalQueue, approvalsHandler } from '../approvals/index.js';
import { chatServer, type ChatServerOptions } from '../chat/index.js';
import { openAi } from '../openai/index.js';
import { toNodeListener } from './index.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const portOf = (server: Server): number => {
  const address = server.address();
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
};

/** Listens while the test lasts, and returns the URL. */
const listening = async (listener: Express | RequestListener): Promise<string> => {
  const server = createServer(listener).listen(0, '127.0.0.1');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${portOf(server)}`;
};

const hello = (): readonly ScriptedAnswer[] => Array.from({ length: 5 }, () => [text('Hello.')]);

const chatWith = (options: ChatServerOptions = {}, answers = hello()) => {
  const errors: string[] = [];
  const agent = createAgent({ name: 'helper', model: scriptedModel(...answers) });
  const server = chatServer(agent, {
    protocols: [agUi(), openAi()],
    onError: ({ message }) => errors.push(message),
    ...options,
  });
  closing.push(() => server.close({ timeoutMs: 0 }));
  return { server, errors, listener: toNodeListener(server) };
};

/** An application of Express with these handlers before the chat server, and one after it. */
const appWith = (before: readonly RequestHandler[], options: ChatServerOptions = {}) => {
  const chat = chatWith(options);
  const app = express();
  before.forEach((handler) => app.use(handler));
  app.use(chat.listener);
  app.use((request, response) => {
    response.status(404).send(`next: ${request.method} ${request.originalUrl}`);
  });
  return { ...chat, app };
};

const question = (id: string, words = 'Hi', more: object = {}) => ({
  id,
  messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: words }] }],
  ...more,
});

const posting = (body: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
});

/** Reads a body as applications do that need its bytes, too. */
const keepingBytes: RequestHandler = express.json({
  limit: '10mb',
  verify: (request, _response, bytes) => Object.assign(request, { rawBody: bytes }),
});

const parsers: readonly (readonly [string, RequestHandler])[] = [
  ['express.json()', express.json({ limit: '10mb' })],
  ['express.json() for every type', express.json({ type: () => true, limit: '10mb' })],
  ['express.text() for JSON', express.text({ type: 'application/json', limit: '10mb' })],
  ['express.raw() for JSON', express.raw({ type: 'application/json', limit: '10mb' })],
  ['express.urlencoded()', express.urlencoded()],
  ['a parser that keeps the bytes', keepingBytes],
];

describe('X43: a server after a body parser', () => {
  const routes: readonly (readonly [string, string, object])[] = [
    ['the AI SDK', '/api/chat', question('a')],
    [
      'AG-UI',
      '/api/ag-ui',
      { threadId: 'a', runId: 'r', messages: [{ id: 'q', role: 'user', content: 'Hi' }] },
    ],
    [
      'chat completions',
      '/v1/chat/completions',
      { model: 'helper', messages: [{ role: 'user', content: 'Hi' }] },
    ],
    ['responses', '/v1/responses', { model: 'helper', input: 'Hi' }],
  ];

  it.each(parsers)('answers each protocol after %s', async (_, parser) => {
    const { app } = appWith([parser]);
    const url = await listening(app);
    for (const [, path, body] of routes) {
      const answer = await fetch(`${url}${path}`, posting(body));
      expect([answer.status, await answer.text()]).toEqual([
        200,
        expect.stringContaining('Hello.'),
      ]);
    }
    expect((await fetch(`${url}/api/chat/a/stop`, posting('{}'))).status).toBe(200);
    const renamed = await fetch(`${url}/api/chat/a`, {
      ...posting({ title: 'T' }),
      method: 'PATCH',
    });
    expect(await renamed.json()).toEqual({ id: 'a', title: 'T' });
  });

  it.each(parsers)('holds the limit of bytes after %s', async (name, parser) => {
    const { app } = appWith([parser], { maxBytes: 1_000 });
    const url = await listening(app);
    const long = JSON.stringify(question('a', 'x'.repeat(1_000)));
    // Blanks, which a parsed body no longer has.
    const padded = `${JSON.stringify(question('a'))}${' '.repeat(1_000)}`;
    for (const body of [long, padded]) {
      expect((await fetch(`${url}/api/chat`, posting(body))).status).toBe(413);
    }
    // It leaves JSON as it is, and nothing here reads compressed JSON.
    if (name === 'express.urlencoded()') return;
    const zipped = posting(gzipSync(long), { 'content-encoding': 'gzip' });
    expect((await fetch(`${url}/api/chat`, zipped)).status).toBe(413);
  });

  it('reads a body that was compressed for the parser', async () => {
    const { app } = appWith([express.json()]);
    const body = gzipSync(JSON.stringify(question('a')));
    const answer = await fetch(
      `${await listening(app)}/api/chat`,
      posting(body, { 'content-encoding': 'gzip' }),
    );
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('Hello.')]);
  });

  it('does not say that a body is compressed which the parser has decoded', async () => {
    const respond = ({ headers }: Request) =>
      Promise.resolve(
        Response.json([...headers.keys()].filter((name) => name.startsWith('content-'))),
      );
    const app = express().use(express.json()).use(toNodeListener({ respond }));
    const asked = posting(gzipSync('{"a":1}'), { 'content-encoding': 'gzip' });
    const answer = await fetch(await listening(app), asked);
    expect(await answer.json()).toEqual(['content-type']);
  });

  it('does not treat a form or plain text as JSON, even if a parser has parsed it', async () => {
    const { app } = appWith([
      express.urlencoded(),
      express.json({ type: () => true }),
      express.text({ type: () => true }),
    ]);
    const url = await listening(app);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx']) {
      const asked = posting(question('a'), { 'content-type': type });
      expect((await fetch(`${url}/api/chat`, asked)).status).toBe(415);
    }
  });

  it('refuses a body that is not an object, as without a parser', async () => {
    for (const before of [[], [express.json({ strict: false })]]) {
      const url = await listening(appWith(before).app);
      for (const body of ['null', '"text"', '5', '[]', 'true', '']) {
        expect((await fetch(`${url}/api/chat`, posting(body))).status).toBe(400);
      }
    }
  });

  it.each([
    // How a middleware leaves the body, and what the server reads of '{ "a": 1,  "b": [2] }'.
    ['as it is', (body: unknown) => body, '{ "a": 1,  "b": [2] }'],
    ['copied', (body: object) => ({ ...body }), '{ "a": 1,  "b": [2] }'],
    ['without a field', () => ({ a: 1 }), '{"a":1}'],
    ['with another value', (body: object) => ({ ...body, b: [3] }), '{"a":1,"b":[3]}'],
    ['empty', () => ({}), '{}'],
    ['null', () => null, 'null'],
    ['as text', () => '{"c":3}', '{"c":3}'],
    ['as bytes', () => Buffer.from('{"d":4}'), '{"d":4}'],
    ['removed', () => undefined, '{ "a": 1,  "b": [2] }'],
  ] as const)('reads a body as the last middleware has left it: %s', async (_, change, read) => {
    const respond = async (request: Request) => new Response(await request.text());
    const changing: RequestHandler = (request, _response, next) => {
      request.body = change(request.body as object);
      next();
    };
    const app = express().use(keepingBytes, changing, toNodeListener({ respond }));
    const answer = await fetch(await listening(app), posting('{ "a": 1,  "b": [2] }'));
    expect(await answer.text()).toBe(read);
  });

  it('reads the bytes of a form that a parser has kept', async () => {
    const respond = async (request: Request) => new Response(await request.text());
    const keeping = express.urlencoded({
      verify: (request, _response, bytes) => Object.assign(request, { rawBody: bytes }),
    });
    const app = express().use(keeping, toNodeListener({ respond }));
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await fetch(await listening(app), posting('a=1&b=2', type));
    expect(await answer.text()).toBe('a=1&b=2');
  });

  it('says what is wrong if the body is lost', async () => {
    const drop: RequestHandler = (request, _response, next) => {
      request.resume().once('end', () => {
        next();
      });
    };
    const { app, errors } = appWith([drop]);
    const answer = await fetch(`${await listening(app)}/api/chat`, posting(question('a')));
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({
      code: 'config',
      error: expect.stringContaining('was read before it reached this server'),
    });
    expect(errors).toHaveLength(1);
  });

  it('decides on an approval', async () => {
    const app = express().use(express.json());
    const decide = approvalsHandler(approvalQueue({ key: new Uint8Array(32) }));
    app.use('/approvals', toNodeListener({ respond: decide }));
    const url = await listening(app);
    const asked = posting({ token: 'none', approved: true });
    expect((await fetch(`${url}/approvals`, asked)).status).toBe(401);
  });
});

describe('X43: a mounted server', () => {
  it.each([
    ['GET', '/', true],
    ['GET', '/api', true],
    ['GET', '/api/chats', true],
    ['GET', '//api/chat', true],
    ['GET', '/api//chat', true],
    ['GET', '/%61pi/chat', true],
    ['GET', '/api/chat/a/b/c', true],
    ['PUT', '/api/chat', true],
    ['DELETE', '/api/chat', true],
    ['OPTIONS', '/other', true],
    ['POST', '/api/approvals', true],
    ['GET', '/api/chat', false],
    ['HEAD', '/api/chat', false],
    ['GET', '/api/chat/', false],
    ['GET', '/api/chat/?limit=1', false],
    ['OPTIONS', '/api/chat', false],
    ['GET', '/v1/responses/resp_none', false],
    ['POST', '/api/chat/none/stop', false],
  ] as const)('%s %s: calls the next handler: %s', async (method, path, isNext) => {
    const url = await listening(appWith([]).app);
    const { hostname, port } = new URL(url);
    // `fetch` would change the path.
    const asked = requestOf({ hostname, port, path, method }).end();
    const [answer] = (await once(asked, 'response')) as [NodeJS.ReadableStream];
    let body = '';
    for await (const part of answer) body += String(part);
    if (method === 'HEAD') expect(body).toBe('');
    expect(body.startsWith('next: ')).toBe(isNext);
  });

  it('answers its own 404, and one of every path if there is no next handler', async () => {
    const url = await listening(appWith([]).app);
    const unknown = await fetch(`${url}/api/chat/none/stream`);
    expect(unknown.status).toBe(204);
    const none = await fetch(`${url}/v1/responses/resp_none`);
    expect([none.status, await none.text()]).toEqual([404, expect.not.stringContaining('next')]);
    const alone = await listening(chatWith().listener);
    const missing = await fetch(`${alone}/none`);
    expect([missing.status, await missing.json()]).toMatchObject([404, { error: 'Not found.' }]);
    expect((await fetch(`${alone}/api/chat`, { method: 'PUT' })).status).toBe(405);
  });

  it('leaves requests without a route to others, even with other hosts and origins', async () => {
    const { server } = chatWith();
    const app = express();
    app.use(toNodeListener(server));
    app.use((_request, response) => {
      response.send('next');
    });
    const url = await listening(app);
    const headers = { origin: 'https://app.example' };
    expect(await (await fetch(`${url}/other`, { headers })).text()).toBe('next');
    expect((await fetch(`${url}/api/chat`, { headers })).status).toBe(403);
  });

  it.each([
    // Where it is mounted, its `path`, and the path of a request.
    ['/ai', '/api', '/ai/api/chat'],
    ['/ai', '/', '/ai/chat'],
    ['/ai', '/ai/api', '/ai/api/chat'],
    ['/api', '/api', '/api/chat'],
    ['/api/chat', '/api', '/api/chat'],
    ['/x/:tenant', '/api', '/x/one/api/chat'],
  ])('mounted at %s with the path %s, answers %s', async (mount, path, asked) => {
    const { listener } = chatWith({ path });
    for (const before of [[], [express.json()]]) {
      const app = express();
      before.forEach((handler) => app.use(handler));
      app.use(mount, listener);
      const url = await listening(app);
      const answer = await fetch(`${url}${asked}`, posting(question(crypto.randomUUID())));
      expect(await answer.text()).toContain('Hello.');
      expect((await fetch(`${url}${asked}?limit=1`)).status).toBe(200);
      expect((await fetch(`${url}${asked}s`)).status).toBe(404);
    }
  });

  it('gives its errors to the handlers of errors, and 500 without any', async () => {
    const listener = toNodeListener({
      respond: () => Promise.reject(new Error('It is broken.')),
    });
    const app = express().use(listener);
    const handler: express.ErrorRequestHandler = (error: Error, _request, response, _next) => {
      response.status(503).send(error.message);
    };
    app.use(handler);
    const answer = await fetch(await listening(app));
    expect([answer.status, await answer.text()]).toEqual([503, 'It is broken.']);
    expect((await fetch(await listening(listener))).status).toBe(500);
  });

  it('keeps what middlewares have set in the headers', async () => {
    const before: RequestHandler = (_request, response, next) => {
      response.set({ 'x-own': '1', vary: 'Accept-Encoding' });
      response.set('access-control-allow-origin', '*');
      next();
    };
    const origin = 'https://app.example';
    const url = await listening(appWith([before], { origins: [origin] }).app);
    const { headers } = await fetch(`${url}/api/chat`, { headers: { origin } });
    expect(headers.get('x-own')).toBe('1');
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(headers.get('vary')).toMatch(/^accept-encoding, origin/iu);
  });

  it('sends each event immediately, even over HTTP/2', async () => {
    const piece$ = new ReplaySubject<ModelChunk>(Infinity);
    piece$.next({ type: 'text', text: 'One' });
    const { listener } = chatWith({}, [() => piece$]);
    const server = createHttp2Server(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const client = connectHttp2(`http://127.0.0.1:${port}`);
    closing.push(() => {
      client.destroy();
      server.close();
    });
    const stream = client.request({
      ':method': 'POST',
      ':path': '/api/chat',
      'content-type': 'application/json',
    });
    stream.end(JSON.stringify(question('a')));
    let all = '';
    for await (const part of stream) {
      all += String(part);
      if (all.includes('One')) break;
    }
    expect(all).toContain('One');
  });
});

describe('X43: the request for a server of your own', () => {
  it.each(['GET', 'POST', 'DELETE', 'OPTIONS'])('can be copied: %s', async (method) => {
    const respond = async (request: Request) => {
      const copy = new Request(request, { headers: { ...Object.fromEntries(request.headers) } });
      const text = await copy.clone().text();
      return Response.json([
        copy.method,
        new URL(copy.url).pathname,
        text,
        copy.headers.get('x-a'),
      ]);
    };
    for (const mount of ['/', '/ai']) {
      const url = await listening(express().use(mount, toNodeListener({ respond })));
      const body = method === 'GET' ? '' : 'text';
      const asked = { method, headers: { 'x-a': '1' }, ...(body && { body }) };
      const answer = await fetch(`${url}${mount === '/' ? '' : mount}/path`, asked);
      expect(await answer.json()).toEqual([method, '/path', body, '1']);
    }
  });

  it('answers a method that no request can have', async () => {
    const { listener } = chatWith();
    const url = await listening(listener);
    const { hostname, port } = new URL(url);
    const asked = requestOf({ hostname, port, path: '/api/chat', method: 'TRACE' }).end();
    const [answer] = (await once(asked, 'response')) as [{ statusCode: number }];
    expect(answer.statusCode).toBe(405);
  });
});

describe('X43: a client of a mounted server', () => {
  const left = () => {
    const asked$ = new ReplaySubject<void>(1);
    const cut$ = new ReplaySubject<void>(1);
    const endless = () =>
      new Observable<ModelChunk>((subscriber) => {
        asked$.next();
        subscriber.add(() => {
          cut$.next();
        });
        return NEVER.subscribe(subscriber);
      });
    return { asked$, cut$, endless };
  };

  it.each(parsers)('ends its call by leaving, after %s', async (_, parser) => {
    const { asked$, cut$, endless } = left();
    const { listener } = chatWith({ onDisconnect: 'abort' }, [endless]);
    const url = await listening(express().use(parser).use('/ai', listener));
    const leaving = new AbortController();
    const { signal } = leaving;
    const answer = fetch(`${url}/ai/api/chat`, { ...posting(question('a')), signal });
    answer.then(({ body }) => body?.getReader().read()).catch(() => undefined);
    await firstValueFrom(asked$);
    leaving.abort();
    await firstValueFrom(cut$);
  });

  it('ends its call also if it left before the server was reached', async () => {
    const { asked$, cut$, endless } = left();
    const { listener } = chatWith({ onDisconnect: 'abort' }, [endless]);
    const leaving = new AbortController();
    const slow: RequestHandler = (_request, response, next) => {
      response.once('close', () => {
        next();
      });
      leaving.abort();
    };
    const url = await listening(express().use(express.json()).use(slow).use(listener));
    const asked = fetch(`${url}/api/chat`, { ...posting(question('a')), signal: leaving.signal });
    await expect(asked).rejects.toThrow('abort');
    await firstValueFrom(asked$);
    await firstValueFrom(cut$);
  });

  it('asks several times over one connection', async () => {
    const { app } = appWith([express.json()]);
    const server = createServer(app).listen(0, '127.0.0.1');
    closing.push(() => {
      server.close();
      server.closeAllConnections();
    });
    await once(server, 'listening');
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const headers = { 'content-type': 'application/json' };
    for (const id of ['a', 'b', 'c']) {
      const options = { port: portOf(server), path: '/api/chat', method: 'POST', headers, agent };
      const asked = requestOf(options).end(JSON.stringify(question(id)));
      const [answer] = (await once(asked, 'response')) as [NodeJS.ReadableStream];
      let body = '';
      for await (const part of answer) body += String(part);
      expect(body).toContain('Hello.');
    }
    agent.destroy();
    expect(connections).toBe(1);
  });
});
