import { Agent, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { Agent as TlsAgent, createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, jest } from '@jest/globals';
import { bodyReader, type BodyReader, readerOf } from '../body-reader.js';
import { serving } from '../wire.test-support.js';
import { selfSigned } from './certificate.test-support.js';
import { nodeFetch } from './node-fetch.js';

const send = nodeFetch();

/** Resolves when something calls it. */
const signalled = () => {
  let give: () => void = () => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { give, given };
};

/** By its name: that of Node is made in another realm than that of a test. */
const typeError = { name: 'TypeError' };

/** What a server was asked. */
interface Asked extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly body: string;
}

/** Answers with what it was asked. */
const echo: RequestListener = (request, response) => {
  void textOf(request).then((body) => {
    const { method, url, headers } = request;
    response.end(JSON.stringify({ method, url, headers, body } satisfies Asked));
  });
};

const asked = async (...request: Parameters<typeof fetch>): Promise<Asked> =>
  (await (await send(...request)).json()) as Asked;

/** Serves bytes that no server of HTTP would send. */
const servingSockets = async <T>(
  listener: (socket: Socket) => void,
  test: (origin: string) => Promise<T>,
): Promise<T> => {
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    listener(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await test(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => server.close(resolve));
  }
};

describe('nodeFetch', () => {
  it('asks and tells as fetch does', async () => {
    const answer: RequestListener = (request, response) => {
      response.setHeader('Set-Cookie', ['a=1', 'b=2']);
      response.writeHead(201, 'Made', { 'X-Request-Id': 'req_1', 'content-type': 'text/plain' });
      echo(request, response);
    };
    await serving(answer, async (origin) => {
      const init = { method: 'post', body: '{"a":"ä"}', headers: { 'X-Key': 'k' } };
      const [ours, theirs] = await Promise.all([
        send(`${origin}/v1?a=b#c`, init),
        fetch(`${origin}/v1?a=b#c`, init),
      ]);
      for (const name of ['status', 'ok', 'statusText', 'redirected', 'bodyUsed'] as const) {
        expect([name, ours[name]]).toEqual([name, theirs[name]]);
      }
      expect(ours).toBeInstanceOf(Response);
      expect(ours.url).toBe(`${origin}/v1?a=b#c`);
      expect(ours.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
      expect(ours.headers.get('x-request-id')).toBe('req_1');
      const [mine, fetched] = (await Promise.all([ours.json(), theirs.json()])) as [Asked, Asked];
      expect(mine).toMatchObject({ method: 'POST', url: '/v1?a=b', body: init.body });
      for (const name of [
        'content-type',
        'content-length',
        'accept',
        'user-agent',
        'x-key',
        'host',
      ]) {
        expect([name, mine.headers[name]]).toEqual([name, fetched.headers[name]]);
      }
    });
  });

  it.each<[string, () => ConstructorParameters<typeof Response>[0], string, string | undefined]>([
    ['bytes', () => new TextEncoder().encode('bytes'), 'bytes', undefined],
    ['a buffer', () => new TextEncoder().encode('buffer').buffer, 'buffer', undefined],
    [
      'a form',
      () => new URLSearchParams({ a: 'b' }),
      'a=b',
      'application/x-www-form-urlencoded;charset=UTF-8',
    ],
    ['a blob', () => new Blob(['blob'], { type: 'text/x' }), 'blob', 'text/x'],
    ['a stream', () => new Blob(['stream']).stream(), 'stream', undefined],
    ['nothing', () => null, '', undefined],
  ])('sends %s', async (_, body, said, type) => {
    await serving(echo, async (origin) => {
      const got = await asked(origin, { method: 'POST', body: body() ?? null, duplex: 'half' });
      expect(got.body).toBe(said);
      expect(got.headers['content-type']).toBe(type);
      expect(got.headers['content-length']).toBe(`${said.length}`);
    });
  });

  it('takes a Request, and what goes before it', async () => {
    await serving(echo, async (origin) => {
      const request = new Request(`${origin}/a`, {
        method: 'PUT',
        body: 'said',
        headers: { 'x-a': '1' },
      });
      expect(await asked(request)).toMatchObject({
        method: 'PUT',
        url: '/a',
        body: 'said',
        headers: { 'x-a': '1', 'content-type': 'text/plain;charset=UTF-8' },
      });
      expect(await asked(new Request(origin), { headers: { 'x-a': '2' } })).toMatchObject({
        method: 'GET',
        headers: { 'x-a': '2' },
      });
      expect(await asked(new URL('/b', origin))).toMatchObject({ url: '/b' });
    });
  });

  it('sends a large body whole, in the length that it has', async () => {
    const body = 'ä'.repeat(3_000_000);
    const headers = { 'content-length': '3', 'transfer-encoding': 'chunked' };
    await serving(
      (request, response) => {
        void textOf(request).then(({ length }) => {
          response.end(`${length} ${request.headers['content-length']}`);
        });
      },
      async (origin) => {
        const response = await send(origin, { method: 'POST', body, headers });
        expect(await response.text()).toBe('3000000 6000000');
      },
    );
  });

  it('X4: gives an answer that comes before the request is sent whole', async () => {
    await serving(
      (_, response) => response.writeHead(413, { connection: 'close' }).end('too large'),
      async (origin) => {
        const response = await send(origin, { method: 'POST', body: 'x'.repeat(1_000_000) });
        expect(response.status).toBe(413);
      },
    );
  });

  it.each(['a\r\nx-b: 1', 'a\nb', 'a\0b', '“quoted”'])('sends no header %j', async (value) => {
    const listener = jest.fn(echo);
    await serving(listener, async (origin) => {
      await expect(send(origin, { headers: { 'x-a': value } })).rejects.toMatchObject(typeError);
      await expect(send(origin, { headers: { [value]: 'x' } })).rejects.toMatchObject(typeError);
    });
    expect(listener).not.toHaveBeenCalled();
  });

  it.each([
    'ftp://127.0.0.1/',
    'file:///etc/hosts',
    'http://',
    'no address',
    'http://a:b@127.0.0.1/',
  ])('refuses the address %s', (address) => expect(send(address)).rejects.toMatchObject(typeError));

  it('refuses an option that there is not', () => {
    expect(() => nodeFetch({ maxSockets: 1 } as object)).toThrow("no option 'maxSockets'");
    expect(() => nodeFetch({ agent: 1 } as object)).toThrow("'agent' must be an object");
  });

  it('X9: follows no redirect', async () => {
    await serving(
      (_, response) => response.writeHead(307, { location: '/elsewhere' }).end(),
      async (origin) => {
        const response = await send(origin);
        expect([response.status, response.headers.get('location')]).toEqual([307, '/elsewhere']);
      },
    );
  });
});

describe('the response of nodeFetch', () => {
  const answering = <T>(test: (response: Response) => Promise<T>): Promise<T> =>
    serving(
      (_, response) => {
        response.setHeader('content-type', 'application/json');
        response.write('[1,');
        setImmediate(() => response.end('2]'));
      },
      async (origin) => test(await send(origin)),
    );

  it('is read once, in any of the ways', async () => {
    await answering(async (response) => {
      expect(await response.json()).toEqual([1, 2]);
      expect(response.bodyUsed).toBe(true);
      await expect(response.text()).rejects.toMatchObject(typeError);
      expect(() => readerOf(response)).toThrow();
    });
    await answering(async (response) =>
      expect(Buffer.from(await response.arrayBuffer()).toString()).toBe('[1,2]'),
    );
    await answering(async (response) =>
      expect((await response.blob()).type).toBe('application/json'),
    );
  });

  it('is cloned', async () => {
    await answering(async (response) => {
      const { url } = response;
      const copy = response.clone();
      expect([copy.url, copy.status, await copy.text(), await response.text()]).toEqual([
        url,
        200,
        '[1,2]',
        '[1,2]',
      ]);
    });
  });

  it('is a stream of bytes', async () => {
    await answering(async (response) => {
      expect(response.body).toBe(response.body);
      const pieces: string[] = [];
      for await (const piece of response.body ?? [])
        pieces.push(Buffer.from(piece as Uint8Array).toString());
      expect(pieces.join('')).toBe('[1,2]');
    });
    await answering(async ({ body }) => {
      const reader = body?.getReader({ mode: 'byob' });
      const bytes: number[] = [];
      for (;;) {
        const read = await reader?.read(new Uint8Array(2));
        if (read?.done !== false) break;
        bytes.push(...read.value);
      }
      expect(Buffer.from(bytes).toString()).toBe('[1,2]');
    });
  });

  it('is read by its own reader, to whom it is locked', async () => {
    await answering(async (response) => {
      expect(bodyReader in response).toBe(true);
      const reader = readerOf(response);
      const bytes: number[] = [];
      for (;;) {
        const read = await reader?.read();
        if (read?.done !== false) break;
        bytes.push(...read.value);
      }
      expect(Buffer.from(bytes).toString()).toBe('[1,2]');
      await expect(response.text()).rejects.toMatchObject(typeError);
      expect(() => readerOf(response)).toThrow();
    });
  });

  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['gzip, br', (text: string) => brotliCompressSync(gzipSync(text))],
    ['Identity', (text: string) => Buffer.from(text)],
    ['unheard', (text: string) => Buffer.from(text)],
  ])('X5: undoes the coding %s', async (coding, code) => {
    await serving(
      (_, response) =>
        response.setHeader('content-encoding', coding).end(code('hello '.repeat(9_999))),
      async (origin) => expect(await (await send(origin)).text()).toBe('hello '.repeat(9_999)),
    );
  });

  it.each([
    ['cut', gzipSync('hello').subarray(0, -9), 'Z_BUF_ERROR'],
    ['broken', Buffer.from('no gzip at all'), 'Z_DATA_ERROR'],
  ])('X1: ends with an error where what is compressed is %s', async (_, body, code) => {
    await serving(
      (_request, response) => response.setHeader('content-encoding', 'gzip').end(body),
      async (origin) => {
        const reading = (await send(origin)).text();
        await expect(reading).rejects.toMatchObject({ name: 'TypeError', cause: { code } });
      },
    );
  });

  it('I16: holds the server back while nobody reads', async () => {
    const full = signalled();
    let written = 0;
    const flood = (_: IncomingMessage, response: ServerResponse): void => {
      const write = (): void => {
        while (written < 2_000) {
          written += 1;
          if (!response.write('x'.repeat(16_000))) break;
        }
        if (written < 2_000) {
          full.give();
          response.once('drain', write);
        } else response.end();
      };
      write();
    };
    for (const read of [
      (response: Response) => readerOf(response),
      ({ body }: Response): BodyReader | undefined => body?.getReader(),
    ]) {
      written = 0;
      await serving(flood, async (origin) => {
        const reader = read(await send(origin));
        await reader?.read();
        await full.given;
        // What it could write without being read is what the buffers of the system hold.
        for (let turn = 0; turn < 50; turn += 1)
          await new Promise((resolve) => setImmediate(resolve));
        expect(written).toBeLessThan(2_000);
        let length = 0;
        for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
          length += next.value.length;
        }
        expect(written).toBe(2_000);
        expect(length).toBeGreaterThan(31_000_000);
      });
    }
  });
});

describe('the connections of nodeFetch', () => {
  const ports =
    (seen: unknown[], answer: RequestListener): RequestListener =>
    (request, response) => {
      seen.push(request.socket.remotePort);
      answer(request, response);
    };

  it.each<[string, RequestInit, RequestListener, (response: Response) => unknown]>([
    ['is read', {}, (_, response) => response.end('x'), (response) => response.text()],
    [
      'is read by its reader',
      {},
      (_, response) => response.end(),
      (response) => readerOf(response)?.read(),
    ],
    ['has no body', {}, (_, response) => response.writeHead(204).end(), () => undefined],
    [
      'is only a head',
      { method: 'HEAD' },
      (_, response) => response.setHeader('content-length', 9).end(),
      () => undefined,
    ],
  ])('are used again behind a response that %s', async (_, init, answer, read) => {
    const seen: unknown[] = [];
    await serving(ports(seen, answer), async (origin) => {
      for (let count = 0; count < 4; count += 1) {
        await read(await send(origin, init));
        for (let turn = 0; turn < 3; turn += 1)
          await new Promise((resolve) => setImmediate(resolve));
      }
    });
    expect(new Set(seen).size).toBe(1);
  });

  it('are as many as the agent lets', async () => {
    const seen: unknown[] = [];
    await serving(
      ports(seen, (_, response) => response.end('x')),
      async (origin) => {
        const bounded = nodeFetch({ agent: new Agent({ keepAlive: true, maxSockets: 1 }) });
        const all = await Promise.all(
          ['a', 'b', 'c'].map((path) => bounded(`${origin}/${path}`).then((it) => it.text())),
        );
        expect(all).toEqual(['x', 'x', 'x']);
      },
    );
    expect(new Set(seen).size).toBe(1);
  });

  const answered = 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx';

  /** Answers the first request of a connection, and ends it at the second. */
  const endingAtSecond = (seen: string[], end: (socket: Socket) => void) => (socket: Socket) => {
    let count = 0;
    socket.on('data', (bytes) => {
      seen.push(String(bytes).split('\r\n', 1)[0] ?? '');
      count += 1;
      if (count === 1) socket.write(answered);
      else end(socket);
    });
  };

  it.each<[string, (socket: Socket) => void]>([
    ['ends', (socket) => socket.end()],
    ['is reset', (socket) => socket.resetAndDestroy()],
    ['breaks within its answer', (socket) => socket.end('HTTP/1.1 ')],
  ])('X4: carry each request once, also where a kept one %s under it', async (_, end) => {
    const seen: string[] = [];
    await servingSockets(endingAtSecond(seen, end), async (origin) => {
      const over = nodeFetch();
      expect(await (await over(`${origin}/1`)).text()).toBe('x');
      await expect(over(`${origin}/2`)).rejects.toMatchObject({
        message: 'fetch failed',
        cause: { code: expect.stringMatching(/^(ECONNRESET|HPE_INVALID_EOF_STATE)$/) },
      });
      expect(await (await over(`${origin}/3`)).text()).toBe('x');
    });
    expect(seen).toEqual(['GET /1 HTTP/1.1', 'GET /2 HTTP/1.1', 'GET /3 HTTP/1.1']);
  });

  it('X1: fail as those of fetch do', async () => {
    const gone = await serving(echo, (origin) => Promise.resolve(origin));
    await expect(send(gone)).rejects.toMatchObject({
      name: 'TypeError',
      message: 'fetch failed',
      cause: { code: 'ECONNREFUSED' },
    });
    await servingSockets(
      (socket) => socket.end('SSH-2.0-OpenSSH_9\r\n'),
      (origin) =>
        expect(send(origin)).rejects.toMatchObject({
          message: 'fetch failed',
          cause: { code: 'HPE_INVALID_CONSTANT' },
        }),
    );
    await servingSockets(
      (socket) =>
        socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx')),
      async (origin) =>
        expect((await send(origin)).text()).rejects.toMatchObject({
          message: 'terminated',
          cause: { code: 'ECONNRESET' },
        }),
    );
    await servingSockets(
      (socket) =>
        socket.on('data', () =>
          socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno length\r\n'),
        ),
      async (origin) => {
        const reading = send(origin).then((response) => response.text());
        await expect(reading).rejects.toMatchObject({
          cause: { code: expect.stringContaining('HPE_') },
        });
      },
    );
  });

  it('go over TLS to whom the agent trusts', async () => {
    const { key, cert } = selfSigned();
    const server = createTlsServer({ key, cert }, echo);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const agent = new TlsAgent({ ca: cert, keepAlive: true });
    const trusting = nodeFetch({ agent });
    expect(await (await trusting(address, { method: 'POST', body: 'said' })).json()).toMatchObject({
      body: 'said',
    });
    await expect(send(address)).rejects.toMatchObject({
      message: 'fetch failed',
      cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    });
    await expect(trusting(address.replace('https', 'http'))).rejects.toThrow('Protocol');
    agent.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('a request of nodeFetch that is aborted', () => {
  const reason = new Error('enough');

  it('I5: is not sent when it was aborted before', async () => {
    const listener = jest.fn(echo);
    await serving(listener, async (origin) => {
      await expect(send(origin, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });
    expect(listener).not.toHaveBeenCalled();
  });

  it('I5: ends while it connects', async () => {
    const looking = signalled();
    const agent = new Agent({ lookup: () => looking.give() });
    const abort = new AbortController();
    const sent = nodeFetch({ agent })('http://acme.invalid/', { signal: abort.signal });
    await looking.given;
    await new Promise((resolve) => setImmediate(resolve));
    abort.abort(reason);
    await expect(sent).rejects.toBe(reason);
    const sockets = Object.values(agent.sockets).flat();
    expect(sockets.map((socket) => socket?.destroyed)).toEqual([true]);
  });

  it('I5: ends while it waits for a connection', async () => {
    const arrived = signalled();
    const listener = jest.fn(() => arrived.give());
    await serving(listener, async (origin) => {
      const bounded = nodeFetch({ agent: new Agent({ keepAlive: true, maxSockets: 1 }) });
      const first = bounded(origin);
      await arrived.given;
      const abort = new AbortController();
      const second = bounded(origin, { signal: abort.signal });
      setImmediate(() => abort.abort(reason));
      await expect(second).rejects.toBe(reason);
      first.catch(() => undefined);
    });
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it('I5: ends while it waits for an answer, and closes its connection', async () => {
    const closed = signalled();
    const abort = new AbortController();
    await serving(
      (_, response) => {
        response.on('close', closed.give);
        abort.abort(reason);
      },
      async (origin) => {
        await expect(send(origin, { signal: abort.signal })).rejects.toBe(reason);
        await closed.given;
      },
    );
  });

  it.each<[string, (response: Response) => Promise<unknown>]>([
    ['its text', (response) => response.text()],
    [
      'its stream',
      async ({ body }) => {
        const reader = body?.getReader();
        while ((await reader?.read())?.done === false);
      },
    ],
    [
      'its reader',
      async (response) => {
        const reader = readerOf(response);
        while ((await reader?.read())?.done === false);
      },
    ],
  ])('I5: ends while %s is read, and closes its connection', async (_, read) => {
    for (const coding of ['identity', 'gzip']) {
      const closed = signalled();
      await serving(
        (_request, response) => {
          response.on('close', closed.give);
          response.setHeader('content-encoding', coding);
          response.flushHeaders();
          response.write(coding === 'gzip' ? gzipSync('half').subarray(0, 12) : 'half');
        },
        async (origin) => {
          const abort = new AbortController();
          const reading = read(await send(origin, { signal: abort.signal }));
          setImmediate(() => abort.abort(reason));
          await expect(reading).rejects.toBe(reason);
          await closed.given;
        },
      );
    }
  });

  it('I5: closes the connection of a body that is left', async () => {
    for (const leave of [
      ({ body }: Response) => body?.cancel(),
      (response: Response) => readerOf(response)?.cancel(),
    ]) {
      const closed = signalled();
      await serving(
        (_, response) => {
          response.on('close', closed.give);
          response.write('half');
        },
        async (origin) => {
          await leave(await send(origin));
          await closed.given;
        },
      );
    }
  });

  it('I18: leaves no listener at its signal', async () => {
    const { signal } = new AbortController();
    const added = jest.spyOn(signal, 'addEventListener');
    const removed = jest.spyOn(signal, 'removeEventListener');
    const gone = await serving(echo, async (origin) => {
      await (await send(origin, { signal })).text();
      await (await send(origin, { method: 'HEAD', signal })).text();
      await readerOf(await send(origin, { signal }))?.cancel();
      return origin;
    });
    await expect(send(gone, { signal })).rejects.toThrow('fetch failed');
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(added).toHaveBeenCalledTimes(4);
    expect(removed).toHaveBeenCalledTimes(4);
  });
});
