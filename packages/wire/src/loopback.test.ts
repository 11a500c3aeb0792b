import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { createDemand } from 'millrace';
import { lentContext } from 'millrace/testing';
import { lastValueFrom, VirtualTimeScheduler } from 'rxjs';
import type { Exchange } from './exchange.js';
import { exchange$ } from './exchange-stream.js';
import {
  chunksOf,
  doneEvent,
  errorOf,
  exchangeWith,
  finishEvent,
  outcomeOf,
  serving,
  signal,
  textEvent,
} from './wire.test-support.js';

describe.each<[string, Exchange['fetch']]>([
  ['the dispatcher of fetch', undefined],
  ['fetch', (input, init) => fetch(input, init)],
])('exchange$ on a real connection of %s', (_transport, transport) => {
  const at = (url: string, more: Parameters<typeof exchangeWith>[1] = {}): Exchange => ({
    ...exchangeWith(() => Promise.reject(new Error('unused')), { ...more }),
    request: () => ({ url, headers: { 'x-api-key': 'k' }, body: '{"prompt":"secret plans"}' }),
    fetch: transport,
  });

  it('I5: closes the socket of an answer that is left', async () => {
    const closed = signal();
    await serving(
      (_, response) => {
        response.on('close', closed.give);
        response.write(textEvent('Hello'));
      },
      async (origin) => {
        const subscription = exchange$(at(origin), lentContext()).subscribe(() =>
          subscription.unsubscribe(),
        );
        await closed.given;
      },
    );
  });

  it('X6: closes the socket of an endless answer', async () => {
    const closed = signal();
    await serving(
      (_, response) => {
        response.on('close', closed.give);
        const write = (): void => {
          while (response.write(textEvent('x'.repeat(1_000))));
          response.once('drain', write);
        };
        write();
      },
      async (origin) => {
        const error = await errorOf(at(origin, { caps: { textLength: 50_000 } }));
        expect(error.code).toBe('tooLarge');
        await closed.given;
      },
    );
  });

  it('I16: a closed demand holds the server back', async () => {
    const demand = createDemand(4);
    const full = signal();
    let written = 0;
    await serving(
      (_, response) => {
        const write = (): void => {
          while (written < 1_500) {
            written += 1;
            if (!response.write(textEvent('x'.repeat(16_000)))) break;
          }
          if (written < 1_500) {
            full.give();
            response.once('drain', write);
          } else response.end(finishEvent);
        };
        write();
      },
      async (origin) => {
        demand.backlog(4);
        let seen = 0;
        const ended = new Promise<void>((complete, error) =>
          exchange$(
            at(origin, { caps: { textLength: Infinity } }),
            lentContext({ demand }),
          ).subscribe({
            next: () => {
              seen += 1;
              if (seen === 10) demand.backlog(4);
            },
            complete,
            error,
          }),
        );
        demand.backlog(0);
        await full.given;
        expect(written).toBeLessThan(1_500);
        demand.release();
        await ended;
        expect(seen).toBe(1_501);
      },
    );
  });

  it('keeps the socket of an answer that ends just after its [DONE]', async () => {
    const ports = new Set<number | undefined>();
    // The wait for the end is in virtual time: a slow machine must not look like a slow server.
    const lent = lentContext({ scheduler: new VirtualTimeScheduler() });
    await serving(
      (request, response) => {
        ports.add(request.socket.remotePort);
        request.resume();
        response.write(textEvent('Hello') + finishEvent + doneEvent);
        setImmediate(() => response.end());
      },
      async (origin) => {
        for (const _ of [1, 2, 3, 4, 5]) {
          await lastValueFrom(exchange$(at(origin), lent));
          // `fetch` keeps a socket back for a turn of the event loop.
          for (const _turn of [1, 2, 3]) await new Promise((resolve) => setImmediate(resolve));
        }
      },
    );
    expect(ports.size).toBeLessThan(3);
  });

  it.each([
    ['before its headers', ''],
    ['before its first event', ': hi\n\n'],
    ['behind some text', textEvent('Hello')],
    ['within an event', textEvent('Hello').slice(0, 9)],
  ])('X1: an answer whose connection is reset %s is a connection error', async (_, sent) => {
    await serving(
      (_request, response) => {
        if (sent === '') response.socket?.resetAndDestroy();
        else response.write(sent, () => response.socket?.resetAndDestroy());
      },
      async (origin) => {
        const error = await errorOf(at(origin));
        expect(error).toMatchObject({ code: 'connection', retryable: true });
        expect(error.message).toContain(`Acme at ${new URL(origin).host} closed the connection`);
      },
    );
  });

  it('X1: a server that is not there is a connection error that names its address', async () => {
    const gone = await serving(
      (_, response) => response.end(),
      (origin) => Promise.resolve(origin),
    );
    const error = await errorOf(at(gone));
    expect(error).toMatchObject({ code: 'connection', retryable: true });
    expect(error.message).toContain(`Acme at ${new URL(gone).host} does not answer (ECONNREFUSED)`);
  });

  it('X1: what speaks no HTTP is an invalid response', async () => {
    await serving(
      (request) => request.socket.end('SSH-2.0-OpenSSH_9\r\n'),
      async (origin) => expect((await errorOf(at(origin))).code).toBe('invalidResponse'),
    );
  });

  it('X5: reads a compressed answer', async () => {
    await serving(
      (_, response) => {
        response.setHeader('content-encoding', 'gzip');
        response.end(gzipSync(textEvent('Hello') + finishEvent));
      },
      async (origin) => expect(await chunksOf(at(origin))).toHaveLength(2),
    );
  });

  it('X1: a compressed answer that is cut or broken is no answer', async () => {
    const zipped = gzipSync(textEvent('Hello') + finishEvent);
    for (const body of [zipped.subarray(0, -20), Buffer.from('no gzip at all')]) {
      await serving(
        (_, response) => {
          response.setHeader('content-encoding', 'gzip');
          response.end(body);
        },
        async (origin) => expect((await errorOf(at(origin))).code).toBe('invalidResponse'),
      );
    }
  });

  it('C7: a wrong path is named', async () => {
    await serving(
      (_, response) => response.writeHead(404).end('{"detail":"Not Found"}'),
      async (origin) => {
        const { message } = await errorOf(at(`${origin}/v1/v1/messages?key=1`));
        expect(message).toContain('(404): Not Found. The path was /v1/v1/messages. Check');
      },
    );
  });

  it('X9: a redirect to another origin is an error that names it', async () => {
    await serving(
      (_, response) => response.writeHead(307, { location: 'http://acme.invalid/x' }).end(),
      async (origin) => {
        const { error } = await outcomeOf(at(origin));
        expect(error).toMatchObject({ code: 'redirect', retryable: false, status: 307 });
        expect(error?.message).toContain('to http://acme.invalid (');
      },
    );
  });
});
