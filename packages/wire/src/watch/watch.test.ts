import { describe, expect, it } from '@jest/globals';
import { lentContext } from 'millrace/testing';
import { lastValueFrom, type Observable, take, toArray } from 'rxjs';
import { exchange$ } from '../exchange-stream.js';
import { exchangeWith, finishEvent, respond, textEvent } from '../wire.test-support.js';
import { type WatchedExchange, watchExchanges } from './index.js';

const secret = 'sk-a-secret-of-this-test-1';

const request = (body = `{"prompt":"${secret}"}`) => ({
  url: `https://acme.example/v1?key=${secret}`,
  headers: { authorization: `Bearer ${secret}` },
  body,
});

const answer = [textEvent('Hi.'), finishEvent];

const all = <T>(source$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(source$.pipe(toArray()));

const watcher = () => {
  const seen: (readonly [number, WatchedExchange])[] = [];
  const context = watchExchanges(lentContext(), (exchange, index) => seen.push([index, exchange]));
  return { seen, context };
};

describe('watchExchanges', () => {
  it('shows a request as it is sent, and its response in pieces, without keys', async () => {
    const { seen, context } = watcher();
    const exchange = exchangeWith(respond([...answer, `: ${secret}`]), {
      secrets: [secret],
      request: () => request(),
    });
    // A wrapper of the model copies the context.
    await all(exchange$(exchange, { ...context }));
    await all(exchange$(exchange, context));
    const sent = {
      url: 'https://acme.example/v1?key=[redacted]',
      headers: { authorization: 'Bearer [redacted]' },
      ...{ body: '{"prompt":"[redacted]"}', omitted: 0 },
    };
    const response = { status: 200, pieces: [...answer, ': [redacted]'], omitted: 0 };
    expect(seen).toEqual([
      [0, sent],
      [0, { ...sent, response }],
      [1, sent],
      [1, { ...sent, response }],
    ]);
  });

  it('shows what had arrived of a response that is left, and of one that fails', async () => {
    const { seen, context } = watcher();
    await all(exchange$(exchangeWith(respond(answer)), context).pipe(take(1)));
    const lost = exchangeWith(() => Promise.reject(new Error('Lost.')));
    await expect(all(exchange$(lost, context))).rejects.toThrow('Lost');
    const responses = seen.flatMap(([, { response }]) => response ?? []);
    expect(responses).toEqual([
      { status: 200, pieces: [answer[0]], omitted: 0 },
      { pieces: [], omitted: 0 },
    ]);
  });

  it('keeps the start of large bodies, and counts the rest', async () => {
    const { seen, context } = watcher();
    const large = 'x'.repeat(600_000);
    const exchange = exchangeWith(respond([`: ${large}\n`, `: ${large}\n`, ...answer]), {
      request: () => request('y'.repeat(1_000_010)),
    });
    await all(exchange$(exchange, context));
    const [, [, exchanged] = []] = seen;
    const { body, omitted, response } = exchanged ?? {};
    expect([body?.length, omitted]).toEqual([1_000_000, 10]);
    expect(response?.pieces.join('').length).toBe(1_000_000);
    expect(response?.omitted).toBe(200_006 + answer.join('').length);
  });

  it('does not fail the request if the watcher throws', async () => {
    const context = watchExchanges(lentContext(), () => {
      throw new Error('No.');
    });
    expect(await all(exchange$(exchangeWith(respond(answer)), context))).toHaveLength(2);
  });
});
