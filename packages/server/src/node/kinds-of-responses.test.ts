import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { toNodeListener } from './index.js';

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Waits for something, but not for ever: a test that fails ends. */
const until = async (isTrue: () => boolean): Promise<void> => {
  for (let turn = 0; turn < 400 && !isTrue(); turn += 1) await wait(10);
  expect(isTrue()).toBe(true);
};

const listening = async (listener: RequestListener): Promise<number> => {
  const server = createServer(listener).listen(0, '127.0.0.1');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
};

/** Asks without `fetch`, which would follow redirects and decode. */
const asking = async (port: number, method = 'GET') => {
  const asked = request({ port, host: '127.0.0.1', method }).end();
  const [answer] = (await once(asked, 'response')) as [
    AsyncIterable<Buffer> & { statusCode: number; headers: IncomingHttpHeaders },
  ];
  let body = '';
  for await (const piece of answer) body += String(piece);
  return { status: answer.statusCode, headers: answer.headers, body };
};

const long = 'x'.repeat(100_000);

/** A server that others pass on. */
const upstream: RequestListener = ({ url }, response) => {
  switch (url) {
    case '/stream':
      response.writeHead(200, { 'content-type': 'text/event-stream', vary: 'accept' });
      response.write('data: 1\n\n');
      response.end('data: 2\n\n');
      return;
    case '/gzip':
      response.writeHead(200, { 'content-encoding': 'gzip', vary: 'accept' });
      response.end(gzipSync(long));
      return;
    case '/moved':
      response.writeHead(302, { location: '/there', vary: 'accept' }).end();
      return;
    default:
      response.writeHead(Number(url?.slice(1)), { vary: 'accept', etag: '"1"' }).end();
  }
};

const kept = new Response(null, { status: 404, headers: { vary: 'accept' } });
const varied = { headers: { vary: 'accept' } };

/** How a response comes about, its status, its body and its further headers. */
const kinds: readonly (readonly [
  string,
  (base: string) => Response | Promise<Response>,
  number,
  string,
  object?,
])[] = [
  ['of fetch, a stream', (base) => fetch(`${base}/stream`), 200, 'data: 1\n\ndata: 2\n\n'],
  ['of fetch, compressed', (base) => fetch(`${base}/gzip`), 200, long],
  [
    'of fetch, a redirect',
    (base) => fetch(`${base}/moved`, { redirect: 'manual' }),
    302,
    '',
    { location: '/there' },
  ],
  ['of fetch, 204', (base) => fetch(`${base}/204`), 204, '', { etag: '"1"' }],
  ['of fetch, 304', (base) => fetch(`${base}/304`), 304, '', { etag: '"1"' }],
  ['of fetch, 500', (base) => fetch(`${base}/500`), 500, '', { etag: '"1"' }],
  [
    'Response.redirect()',
    () => Response.redirect('http://localhost/there', 302),
    302,
    '',
    { location: 'http://localhost/there' },
  ],
  ['Response.json()', () => Response.json({ a: 1 }, varied), 200, '{"a":1}'],
  ['a text', () => new Response('text', varied), 200, 'text'],
  ['bytes', () => new Response(new Uint8Array([65]), varied), 200, 'A'],
  ['a blob', () => new Response(new Blob(['blob']), varied), 200, 'blob'],
  ['a stream', () => new Response(new Blob([long]).stream(), varied), 200, long],
  ['an empty text', () => new Response('', varied), 200, ''],
  ['no body', () => new Response(null, varied), 200, ''],
  ['204', () => new Response(null, { status: 204, ...varied }), 204, ''],
  ['304', () => new Response(null, { status: 304, ...varied }), 304, ''],
  ['a clone', () => new Response('text', varied).clone(), 200, 'text'],
  ['one that is kept', () => kept, 404, ''],
];

describe('X43: a response', () => {
  it.each(kinds)('may be of any kind: %s', async (kind, respond, status, body, more = {}) => {
    const base = `http://127.0.0.1:${await listening(upstream)}`;
    const listener = toNodeListener({ respond: () => Promise.resolve(respond(base)) });
    const plain = await listening(listener);
    const behind = await listening((asked, response) => {
      response.setHeader('vary', ['cookie', 'accept-encoding']);
      response.setHeader('x-before', '1');
      listener(asked, response);
    });
    const own = kind === 'Response.redirect()' ? [] : ['accept'];
    // Each twice: nothing of the first answer may be in the second one.
    for (const port of [plain, plain, behind, behind]) {
      const answer = await asking(port);
      expect([answer.status, answer.body]).toEqual([status, body]);
      expect(answer.headers).toMatchObject(more);
      const before = port === behind ? ['cookie', 'accept-encoding'] : [];
      expect((answer.headers.vary ?? '').split(', ').filter(Boolean)).toEqual([...before, ...own]);
      expect(answer.headers['content-encoding']).toBeUndefined();
      if (port === behind) expect(answer.headers['x-before']).toBe('1');
    }
  });

  it('that is an error, or that was read before, is an error of the server', async () => {
    const read = new Response('text');
    await read.text();
    for (const response of [Response.error(), read]) {
      const listener = toNodeListener({ respond: () => Promise.resolve(response) });
      expect((await asking(await listening(listener))).status).toBe(500);
      const errors: unknown[] = [];
      const port = await listening((asked, reply) => {
        listener(asked, reply, (error) => {
          errors.push(error);
          reply.writeHead(503).end();
        });
      });
      expect((await asking(port)).status).toBe(503);
      expect(errors.map(String)).toEqual([expect.stringMatching(/^TypeError: /u)]);
    }
  });

  it('reaches its client before the end of the request, also if it is one of fetch', async () => {
    const base = `http://127.0.0.1:${await listening(upstream)}`;
    const listener = toNodeListener({ respond: () => fetch(`${base}/gzip`) });
    const socket = connect(await listening(listener), '127.0.0.1');
    let all = '';
    socket.on('data', (piece) => (all += String(piece)));
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345');
    await until(() => all.includes(long.slice(0, 1_000)));
    socket.write('67890');
    await until(() => all.endsWith('0\r\n\r\n'));
    expect(all).toMatch(/^HTTP\/1.1 200 /u);
    socket.destroy();
  });

  it('keeps the lists and cookies of middlewares besides its own', async () => {
    const headers = new Headers({ 'access-control-expose-headers': 'etag' });
    headers.append('set-cookie', 'c=3; Expires=Wed, 21 Oct 2026 07:28:00 GMT');
    headers.append('set-cookie', 'd=4');
    const listener = toNodeListener({
      respond: () => Promise.resolve(new Response('', { headers })),
    });
    const port = await listening((asked, response) => {
      response.setHeader('set-cookie', ['a=1; Path=/', 'b=2']);
      response.setHeader('access-control-expose-headers', 'X-Trace,x-total');
      listener(asked, response);
    });
    const answer = await asking(port);
    expect(answer.headers['set-cookie']).toEqual([
      'a=1; Path=/',
      'b=2',
      'c=3; Expires=Wed, 21 Oct 2026 07:28:00 GMT',
      'd=4',
    ]);
    expect(answer.headers['access-control-expose-headers']).toBe('X-Trace,x-total, etag');
  });
});
