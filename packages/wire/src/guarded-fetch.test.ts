import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it, jest } from '@jest/globals';
import { guardedFetch } from './guarded-fetch.js';
import { nodeFetch } from './node/node-fetch.js';
import { bodyOf, serving } from './wire.test-support.js';

const post = { method: 'POST', body: '{"prompt":"secret plans"}', headers: { 'x-api-key': 'k' } };

const redirect = (response: ServerResponse, status: number, location: string): void => {
  response.writeHead(status, { location }).end('moved');
};

const bodyIn = async (request: IncomingMessage): Promise<string> => {
  let body = '';
  for await (const piece of request) body += String(piece);
  return body;
};

describe.each([
  ['fetch', undefined],
  ['nodeFetch', nodeFetch()],
])('guardedFetch over %s', (_transport, transport) => {
  const guarded = guardedFetch({ fetch: transport, caps: { errorBytes: 1_000 } });

  it('X9: follows a redirect within the origin, with method, body and headers', async () => {
    const echo = jest.fn<(said: unknown) => void>();
    await serving(
      (request, response) => {
        void bodyIn(request).then((body) => {
          if (request.url === '/v1') redirect(response, 308, '/v2?a=b');
          else {
            echo([request.method, request.url, request.headers['x-api-key'], body]);
            response.end('answer');
          }
        });
      },
      async (origin) => {
        expect(await (await guarded(`${origin}/v1`, post)).text()).toBe('answer');
      },
    );
    expect(echo).toHaveBeenCalledWith(['POST', '/v2?a=b', 'k', post.body]);
  });

  it('X9: sends nothing to another origin', async () => {
    const stranger = jest.fn<() => void>();
    await serving(
      (_, response) => {
        stranger();
        response.end();
      },
      async (elsewhere) => {
        await serving(
          (_, response) => redirect(response, 307, `${elsewhere}/v1`),
          async (origin) => {
            const response = await guarded(origin, post);
            expect(response.status).toBe(307);
            expect(response.headers.get('location')).toBe(`${elsewhere}/v1`);
          },
        );
      },
    );
    expect(stranger).not.toHaveBeenCalled();
  });

  it.each([301, 302, 303])('X9: does not follow %i, which would drop the body', async (status) => {
    let requests = 0;
    await serving(
      (_, response) => {
        requests += 1;
        redirect(response, status, '/v2');
      },
      async (origin) => expect((await guarded(origin, post)).status).toBe(status),
    );
    expect(requests).toBe(1);
  });

  it('X9: gives a loop up after 5', async () => {
    let requests = 0;
    await serving(
      (_, response) => {
        requests += 1;
        redirect(response, 307, '/again');
      },
      async (origin) => expect((await guarded(origin, post)).status).toBe(307),
    );
    expect(requests).toBe(6);
  });

  it.each(['http://[', '', 'javascript:alert(1)'])('X9: follows no %j', async (location) => {
    const base = jest.fn<typeof fetch>(() =>
      Promise.resolve(new Response('', { status: 307, headers: { location } })),
    );
    const response = await guardedFetch({ fetch: base, caps: { errorBytes: 9 } })(
      'http://127.0.0.1/',
      post,
    );
    expect(response.status).toBe(307);
    expect(base).toHaveBeenCalledTimes(1);
  });

  it('does not send a stream twice', async () => {
    const base = jest.fn<typeof fetch>(() =>
      Promise.resolve(new Response('', { status: 307, headers: { location: '/' } })),
    );
    const body = bodyOf(['x']);
    await guardedFetch({ fetch: base, caps: { errorBytes: 9 } })('http://127.0.0.1/', {
      ...post,
      body,
    });
    await guardedFetch({ fetch: base, caps: { errorBytes: 9 } })(
      new Request('http://127.0.0.1/', post),
    );
    expect(base).toHaveBeenCalledTimes(2);
  });

  it('X6: reads no more of an error than its cap, and closes the socket', async () => {
    let closed: () => void = () => undefined;
    const isClosed = new Promise<void>((resolve) => (closed = resolve));
    await serving(
      (_, response) => {
        response.writeHead(500);
        response.on('close', closed);
        const write = (): void => {
          while (response.write('x'.repeat(10_000)));
          response.once('drain', write);
        };
        write();
      },
      async (origin) => {
        expect(await (await guarded(origin, post)).text()).toHaveLength(1_000);
        await isClosed;
      },
    );
  });

  it.each([
    ['{"detail":"no"}', '{"error":{"message":"no"}}'],
    ['{"object":"error","message":"no","code":3}', '{"error":{"message":"no","code":3}}'],
    ['[{"error":{"message":"no","details":[]}}]', '{"error":{"message":"no","details":[]}}'],
    ['{"error":{"message":"no"},"id":1}', '{"error":{"message":"no"},"id":1}'],
    ['<html>', '<html>'],
    ['', ''],
  ])('C7: hands the error %s on in a shape that SDKs understand', async (sent, got) => {
    const base = () => Promise.resolve(new Response(sent, { status: 400, headers: { a: 'b' } }));
    const response = await guardedFetch({ fetch: base, caps: { errorBytes: 1_000 } })(
      'http://127.0.0.1/',
    );
    expect(await response.text()).toBe(got);
    expect(response.status).toBe(400);
    expect(response.headers.get('a')).toBe('b');
  });

  it('X1: keeps a status that no Response can have', async () => {
    await serving(
      (_, response) => response.writeHead(999).end('{"error":"denied"}'),
      async (origin) => {
        const response = await guarded(origin, post);
        expect(response).toMatchObject({ status: 999, ok: false });
        expect(await response.json()).toEqual({ error: { message: 'denied' } });
      },
    );
  });

  it('X1: asks for no compression, unless somebody does', async () => {
    const seen: unknown[] = [];
    await serving(
      (request, response) => {
        seen.push(request.headers['accept-encoding'], request.headers['x-api-key']);
        response.end();
      },
      async (origin) => {
        await guarded(origin, post);
        await guarded(origin, { headers: new Headers({ 'Accept-Encoding': 'br' }) });
        await guarded(new Request(origin, { headers: { 'x-api-key': 'k' } }));
      },
    );
    expect(seen).toEqual(['identity', 'k', 'br', undefined, 'identity', 'k']);
  });

  it('X16: sends no half character', async () => {
    const base = jest.fn<typeof fetch>(() => Promise.resolve(new Response('')));
    const body = JSON.stringify({ prompt: 'cut \ud83d' });
    await guardedFetch({ fetch: base })('http://127.0.0.1/', { method: 'POST', body });
    expect(base.mock.calls[0]?.[1]?.body).toBe('{"prompt":"cut \\ufffd"}');
  });

  it('leaves a good response, and one that may have no body, as it is', async () => {
    for (const status of [200, 304]) {
      const response = new Response(null, { status });
      const base = () => Promise.resolve(response);
      expect(
        await guardedFetch({ fetch: base, caps: { errorBytes: 9 } })('http://127.0.0.1/'),
      ).toBe(response);
    }
  });

  it('looks the global fetch up for each request', async () => {
    const replaced = jest
      .spyOn(globalThis, 'fetch')
      .mockResolvedValue(new Response('from elsewhere'));
    expect(await (await guardedFetch({})('http://127.0.0.1/')).text()).toBe('from elsewhere');
    replaced.mockRestore();
  });
});
