import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, jest } from '@jest/globals';
import { lentContext } from 'millrace/testing';
import { selfSigned } from '@millrace/fault-server';
import { BehaviorSubject, lastValueFrom, Observable, toArray } from 'rxjs';
import type { Exchange } from './exchange.js';
import { exchange$ } from './exchange-stream.js';
import { createTransfer } from './transport.js';
import {
  doneEvent,
  errorOf,
  exchangeWith,
  finishEvent,
  outcomeOf,
  serving,
  signal,
  textEvent,
} from './wire.test-support.js';

const answer = textEvent('Hello') + finishEvent + doneEvent;
const body = '{"prompt":"secret plans"}';

const bodyIn = async (request: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const piece of request) text += String(piece);
  return text;
};

const redirect = (response: ServerResponse, status: number, location: string): void => {
  response.writeHead(status, { location }).end('moved');
};

const gatedDemand = () => {
  const open$ = new BehaviorSubject(true);
  const demand = {
    get isOpen() {
      return open$.value;
    },
    open$,
  };
  return { demand, gate: (isOpen: boolean) => open$.next(isOpen) };
};

const dispatcherKey = Symbol.for('undici.globalDispatcher.1');

it('the tests below use the dispatcher of fetch', async () => {
  const dispatcher = Reflect.get(globalThis, dispatcherKey) as { dispatch: () => boolean };
  const dispatch = jest.spyOn(dispatcher, 'dispatch').mockReturnValue(true);
  const receiver = { head: jest.fn(), bytes: () => true, end: jest.fn(), fail: jest.fn() };
  createTransfer({ url: 'http://127.0.0.1/', headers: {}, body }, receiver, undefined).start();
  expect(dispatch).toHaveBeenCalledTimes(1);
  dispatch.mockRestore();
});

describe.each<[string, Exchange['fetch']]>([
  ['the dispatcher of fetch', undefined],
  ['fetch', (input, init) => fetch(input, init)],
])('a request over %s', (transport, given) => {
  const at = (url: string, more: Partial<Exchange> = {}): Exchange => ({
    ...exchangeWith(() => Promise.reject(new Error('unused'))),
    request: () => ({ url, headers: { 'x-api-key': 'k', accept: 'application/json' }, body }),
    fetch: given,
    ...more,
  });
  const chunksAt = (url: string, more?: Partial<Exchange>) =>
    lastValueFrom(exchange$(at(url, more), lentContext()).pipe(toArray()));

  it('X9: follows a redirect within the origin, with method, body and headers', async () => {
    const seen: unknown[] = [];
    await serving(
      (request, response) => {
        void bodyIn(request).then((text) => {
          if (request.url === '/v1') redirect(response, 308, '/v2?a=b');
          else {
            seen.push(request.method, request.url, request.headers['x-api-key'], text);
            response.end(answer);
          }
        });
      },
      async (origin) => expect(await chunksAt(`${origin}/v1`)).toHaveLength(2),
    );
    expect(seen).toEqual(['POST', '/v2?a=b', 'k', body]);
  });

  it('X9: sends nothing to another origin', async () => {
    const stranger = jest.fn<RequestListener>((_, response) => response.end());
    await serving(stranger, async (elsewhere) => {
      await serving(
        (_, response) => redirect(response, 307, `${elsewhere}/v1`),
        async (origin) => {
          const error = await errorOf(at(origin));
          expect(error).toMatchObject({ code: 'redirect', status: 307 });
          expect(error.message).toContain(`to ${elsewhere}`);
        },
      );
    });
    expect(stranger).not.toHaveBeenCalled();
  });

  it.each([301, 302, 303])('X9: does not follow %i, which would drop the body', async (status) => {
    let requests = 0;
    await serving(
      (_, response) => {
        requests += 1;
        redirect(response, status, '/v2');
      },
      async (origin) => expect(await errorOf(at(origin))).toMatchObject({ status }),
    );
    expect(requests).toBe(1);
  });

  it('X9: gives up a loop after 5 redirects', async () => {
    let requests = 0;
    await serving(
      (_, response) => {
        requests += 1;
        redirect(response, 307, '/again');
      },
      async (origin) => expect(await errorOf(at(origin))).toMatchObject({ status: 307 }),
    );
    expect(requests).toBe(6);
  });

  it.each(['http://[', '', 'javascript:alert(1)'])('X9: does not follow %j', async (location) => {
    let requests = 0;
    await serving(
      (_, response) => {
        requests += 1;
        redirect(response, 307, location);
      },
      async (origin) => expect(await errorOf(at(origin))).toMatchObject({ code: 'redirect' }),
    );
    expect(requests).toBe(1);
  });

  it('X6: gives up an event over its cap that comes while demand is closed', async () => {
    const { demand, gate } = gatedDemand();
    let send: (piece: string) => void = () => undefined;
    await serving(
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(textEvent('a'));
        send = (piece) => void response.write(piece);
      },
      async (origin) => {
        const heard = signal();
        const failed = new Promise<unknown>((resolve) => {
          const { caps } = at(origin);
          const exchange = at(origin, { caps: { ...caps, eventLength: 1_000 } });
          exchange$(exchange, lentContext({ demand })).subscribe({
            next: heard.give,
            error: resolve,
          });
        });
        await heard.given;
        gate(false);
        send(`data: ${'x'.repeat(2_000)}`);
        await new Promise((resolve) => setImmediate(resolve));
        send('x'.repeat(100));
        await new Promise((resolve) => setImmediate(resolve));
        gate(true);
        send('x'.repeat(100));
        expect(await failed).toMatchObject({ code: 'tooLarge' });
      },
    );
  });

  it('X6: reads no more of an error than its cap, and closes the socket', async () => {
    const closed = signal();
    await serving(
      (_, response) => {
        response.writeHead(500);
        response.on('close', closed.give);
        const write = (): void => {
          while (response.write('x'.repeat(10_000)));
          response.once('drain', write);
        };
        write();
      },
      async (origin) => {
        const { caps } = at(origin);
        const error = await errorOf(at(origin, { caps: { ...caps, errorBytes: 1_000 } }));
        expect(error).toMatchObject({ code: 'server', status: 500 });
        await closed.given;
      },
    );
  });

  it('X4: reports the error that arrived before its connection broke', async () => {
    await serving(
      (_, response) => {
        response.writeHead(429, { 'retry-after': '3' });
        response.write('{"error":{"message":"slow down"}}', () => response.socket?.destroy());
      },
      async (origin) => {
        const error = await errorOf(at(origin));
        expect(error).toMatchObject({ code: 'rateLimited', retryAfterMs: 3_000 });
        expect(error.message).toContain('slow down');
      },
    );
  });

  it('X1: reads an error with a status that no Response can have', async () => {
    await serving(
      (_, response) => response.writeHead(999).end('{"error":"denied"}'),
      async (origin) => {
        const { message, status } = await errorOf(at(origin));
        expect(status).toBe(999);
        expect(message).toContain('denied');
      },
    );
  });

  it('X1: ignores interim responses', async () => {
    await serving(
      (_, response) => {
        response.writeEarlyHints({ link: '</style.css>; rel=preload' });
        response.writeProcessing();
        response.end(answer);
      },
      async (origin) => expect(await chunksAt(origin)).toHaveLength(2),
    );
  });

  it('X1: an empty response is invalid', async () => {
    await serving(
      (_, response) => response.writeHead(204).end(),
      async (origin) => expect((await errorOf(at(origin))).code).toBe('invalidResponse'),
    );
  });

  it('sends the headers of fetch, and asks for no compression unless the request does', async () => {
    const seen: IncomingMessage['headers'][] = [];
    const headers = { 'content-type': 'application/json', 'accept-encoding': 'gzip' };
    await serving(
      (request, response) => {
        seen.push(request.headers);
        response.end(answer);
      },
      async (origin) => {
        await chunksAt(origin);
        await chunksAt(origin, { request: () => ({ url: origin, headers, body }) });
        await fetch(origin, { method: 'POST', headers, body });
      },
    );
    const [first, second, ofFetch] = seen;
    expect(first).toMatchObject({
      accept: 'application/json',
      'accept-encoding': 'identity',
      'accept-language': '*',
      'content-length': '25',
      'user-agent': 'node',
      'x-api-key': 'k',
    });
    expect(second).toEqual(ofFetch);
  });

  it('X16: sends no half character', async () => {
    const seen: string[] = [];
    await serving(
      (request, response) => {
        void bodyIn(request).then((text) => {
          seen.push(text);
          response.end(answer);
        });
      },
      async (origin) => {
        const cut = JSON.stringify({ prompt: 'cut \ud83d' });
        await chunksAt(origin, { request: () => ({ url: origin, headers: {}, body: cut }) });
      },
    );
    expect(seen).toEqual(['{"prompt":"cut \\ufffd"}']);
  });

  it('X5: reads an answer that was compressed twice, in small pieces', async () => {
    const zipped = gzipSync(gzipSync(answer));
    await serving(
      (_, response) => {
        response.setHeader('content-encoding', 'GZIP, x-gzip');
        for (const byte of zipped) response.write(Uint8Array.of(byte));
        response.end();
      },
      async (origin) => expect(await chunksAt(origin)).toHaveLength(2),
    );
  });

  it('X6: closes the socket of data after the end of the compressed data', async () => {
    const closed = signal();
    await serving(
      (_, response) => {
        response.on('close', closed.give);
        response.setHeader('content-encoding', 'gzip');
        response.write(gzipSync(answer));
        const more = (): void => {
          while (response.write(Buffer.alloc(10_000)));
          response.once('drain', more);
        };
        more();
      },
      async (origin) => {
        expect(await chunksAt(origin)).toHaveLength(2);
        await closed.given;
      },
    );
  });

  it('X6: undoes no more than 5 codings', async () => {
    await serving(
      (_, response) => {
        response.setHeader('content-encoding', Array<string>(6).fill('gzip').join(', '));
        response.end('x'.repeat(100));
      },
      async (origin) => {
        const error = await errorOf(at(origin));
        expect(['invalidResponse', 'connection']).toContain(error.code);
      },
    );
  });

  it('I16: holds back a server that compresses', async () => {
    const [full, closed] = [signal(), signal()];
    const turns = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn += 1) await new Promise((give) => setImmediate(give));
    };
    const piece = gzipSync(textEvent('x'.repeat(40_000)), { level: 0 });
    let written = 0;
    await serving(
      (_, response) => {
        response.on('close', closed.give);
        response.setHeader('content-encoding', 'gzip');
        const write = (): void => {
          do written += 1;
          while (response.write(piece));
          response.once('drain', write);
        };
        write();
      },
      async (origin) => {
        const { demand, gate } = gatedDemand();
        const more = signal();
        let seen = 0;
        const subscription = exchange$(at(origin), lentContext({ demand })).subscribe(() => {
          seen += 1;
          if (seen === 5) {
            gate(false);
            full.give();
          }
          if (seen === 10) more.give();
        });
        await full.given;
        // Until the buffers of the system are full.
        for (let before = 0; before < written && written < 2_000; await turns(50)) before = written;
        expect(written).toBeLessThan(2_000);
        expect(seen).toBe(5);
        gate(true);
        await more.given;
        subscription.unsubscribe();
        await closed.given;
      },
    );
  });

  it.each(['identity', 'gzip'])('I5: closes the socket of %s that is left', async (coding) => {
    const [closed, arrived] = [signal(), signal()];
    await serving(
      (_, response) => {
        response.on('close', closed.give);
        response.setHeader('content-encoding', coding);
        response.flushHeaders();
        response.write(coding === 'gzip' ? gzipSync('half').subarray(0, 12) : ': half\n\n');
        arrived.give();
      },
      async (origin) => {
        const subscription = exchange$(at(origin), lentContext()).subscribe();
        await arrived.given;
        for (let turn = 0; turn < 5; turn += 1) await new Promise((give) => setImmediate(give));
        subscription.unsubscribe();
        await closed.given;
      },
    );
  });

  it('I5: closes the socket while it waits for an answer', async () => {
    const [closed, arrived] = [signal(), signal()];
    await serving(
      (request) => {
        request.socket.on('close', closed.give);
        arrived.give();
      },
      async (origin) => {
        const subscription = exchange$(at(origin), lentContext()).subscribe();
        await arrived.given;
        subscription.unsubscribe();
        await closed.given;
      },
    );
  });

  it('I5: sends nothing when it is left immediately', async () => {
    const listener = jest.fn<RequestListener>((_, response) => response.end(answer));
    await serving(listener, async (origin) => {
      exchange$(at(`${origin}/left`), lentContext())
        .subscribe()
        .unsubscribe();
      await chunksAt(`${origin}/kept`);
      expect(listener.mock.calls.map(([{ url }]) => url)).toEqual(['/kept']);
    });
  });

  it.each<[string, (socket: Socket) => void]>([
    ['ends', (socket) => socket.end()],
    ['is reset', (socket) => socket.resetAndDestroy()],
    ['breaks within its answer', (socket) => socket.end('HTTP/1.1 ')],
  ])('X4: sends each request once, also if a kept connection %s under it', async (_, end) => {
    const seen: string[] = [];
    const sockets: Socket[] = [];
    const listener = (socket: Socket): void => {
      sockets.push(socket);
      let count = 0;
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        const [line = ''] = String(bytes).split('\r\n', 1);
        if (line.startsWith('POST')) seen.push(line);
        count += line.startsWith('POST') ? 1 : 0;
        const head = `HTTP/1.1 200 OK\r\ncontent-length: ${answer.length}\r\n\r\n`;
        if (line.startsWith('POST') && count === 1) socket.write(head + answer);
        else if (line.startsWith('POST')) end(socket);
      });
    };
    const server = createTcpServer(listener);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await chunksAt(`${origin}/1`)).toHaveLength(2);
    // `fetch` keeps a socket back for a turn of the event loop.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((give) => setImmediate(give));
    expect(['connection', 'invalidResponse']).toContain((await errorOf(at(`${origin}/2`))).code);
    expect(await chunksAt(`${origin}/3`)).toHaveLength(2);
    expect(seen).toEqual(['POST /1 HTTP/1.1', 'POST /2 HTTP/1.1', 'POST /3 HTTP/1.1']);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  it('X1: an untrusted certificate is an error that names it', async () => {
    const server = createTlsServer(selfSigned(), (_, response) => response.end(answer));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const error = await errorOf(at(url));
    expect(error).toMatchObject({ code: 'connection', retryable: false });
    expect(error.message).toContain('over TLS (DEPTH_ZERO_SELF_SIGNED_CERT)');
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('calls back in the async context of its subscriber', async () => {
    const storage = new AsyncLocalStorage<string>();
    await serving(
      (_, response) => {
        response.write(textEvent('a'));
        setImmediate(() => response.end(textEvent('b') + finishEvent));
      },
      async (origin) => {
        const contextsOf = async (name: string): Promise<unknown[]> => {
          const seen: unknown[] = [];
          await storage.run(name, () =>
            lastValueFrom(
              new Observable<never>((subscriber) =>
                exchange$(at(origin), lentContext()).subscribe({
                  next: () => seen.push(storage.getStore()),
                  complete: () => {
                    seen.push(storage.getStore());
                    subscriber.complete();
                  },
                }),
              ),
              { defaultValue: undefined },
            ),
          );
          return seen;
        };
        // The second one gets the connection of the first.
        expect(await contextsOf('first')).toEqual(['first', 'first', 'first', 'first']);
        for (let turn = 0; turn < 3; turn += 1) await new Promise((give) => setImmediate(give));
        expect(await contextsOf('second')).toEqual(['second', 'second', 'second', 'second']);
      },
    );
  });

  it('X1: errors with `config` for a URL and a header that cannot be sent', async () => {
    for (const request of [
      { url: 'no url', headers: {}, body },
      { url: 'http://127.0.0.1:1/', headers: { 'x-key': 'a\nb' }, body },
    ]) {
      for (const later of [false, true]) {
        const built = () => (later ? Promise.resolve(request) : request);
        const { code } = await errorOf(at('', { request: built }));
        expect(['config', 'unknown']).toContain(code);
      }
    }
  });

  it(`is a promise nowhere if it is over ${transport} and left while it fails`, async () => {
    const unheard = jest.fn();
    process.on('unhandledRejection', unheard);
    const gone = await serving(
      (_, response) => response.end(),
      (origin) => Promise.resolve(origin),
    );
    exchange$(at(gone), lentContext()).subscribe().unsubscribe();
    const { error } = await outcomeOf(at(gone));
    expect(error?.code).toBe('connection');
    process.off('unhandledRejection', unheard);
    expect(unheard).not.toHaveBeenCalled();
  });
});
