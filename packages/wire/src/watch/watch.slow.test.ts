import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, jest } from '@jest/globals';
import { lentContext } from 'millrace/testing';
import fc from 'fast-check';
import {
  lastValueFrom,
  type Observable,
  type SchedulerLike,
  take,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import { exchange$ } from '../exchange-stream.js';
import { exchangeWith, finishEvent, respond, textEvent } from '../wire.test-support.js';
import { type WatchedExchange, watchExchanges, type WatchedResponse } from './index.js';

const secret = 'of-no-known-form-zq';

const request = (body = `{"prompt":"${secret}"}`) => ({
  url: `https://acme.example/v1?key=${secret}`,
  headers: { authorization: `Bearer ${secret}` },
  body,
});

const answer = [textEvent('Hi.'), finishEvent];

const all = <T>(source$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(source$.pipe(toArray()));

/** A watcher of requests, on a clock that stands still unless it is given. */
const watcher = (scheduler: SchedulerLike = new VirtualTimeScheduler()) => {
  const seen: (readonly [number, WatchedExchange])[] = [];
  const context = watchExchanges({ ...lentContext(), scheduler }, (exchange, index) =>
    seen.push([index, exchange]),
  );
  return { seen, context };
};

describe('watchExchanges', () => {
  it('shows a request as it is sent, and its response, without keys', async () => {
    const { seen, context } = watcher();
    const exchange = exchangeWith(respond([...answer, `: ${secret}`]), {
      secrets: [secret],
      request: () => request(),
    });
    // A wrapper of the model copies the context.
    await all(exchange$(exchange, { ...context }));
    await all(exchange$(exchange, context));
    const sent = {
      at: 0,
      url: 'https://acme.example/v1?key=[redacted]',
      headers: { authorization: 'Bearer [redacted]' },
      ...{ body: '{"prompt":"[redacted]"}', omitted: 0 },
    };
    const response = { at: 0, status: 200, body: `${answer.join('')}: [redacted]`, omitted: 0 };
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
      { at: 0, status: 200, body: answer[0], omitted: 0 },
      { at: 0, body: '', omitted: 0 },
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
    expect(response?.body.length).toBe(1_000_000);
    expect(response?.omitted).toBe(200_006 + answer.join('').length);
  });

  it('does not fail the request if the watcher throws', async () => {
    const context = watchExchanges(lentContext(), () => {
      throw new Error('No.');
    });
    expect(await all(exchange$(exchangeWith(respond(answer)), context))).toHaveLength(2);
  });

  it('finds a key however the response is cut into pieces', async () => {
    const text = `${answer.join('')}: é ${secret}, sk-of-another-vendor-12345678\n`;
    const bytes = new TextEncoder().encode(text);
    for (let at = answer.join('').length; at < bytes.length; at += 1) {
      const { body } = await responseOf([bytes.slice(0, at), bytes.slice(at)]);
      expect(body).toBe(`${answer.join('')}: é [redacted], [redacted]\n`);
    }
  });

  it('shows no part of a key at the cut', async () => {
    const mark = '"[redacted]"';
    for (const key of [secret, 'sk-of-another-vendor-12345678', `ya29.${'a'.repeat(3_000)}`]) {
      for (const cut of [1_000_000, 1_032_768]) {
        for (const part of [1, 12, key.length - 1]) {
          const before = '\n'.repeat(cut - part - 1);
          const text = `${before}"${key}"${'\n'.repeat(40_000)}`;
          const { body, omitted } = await responseOf([text, ...answer]);
          expect(body.length).toBeLessThanOrEqual(1_000_000);
          expect(omitted).toBeGreaterThan(0);
          expect(mark.startsWith(body.trim())).toBe(true);
        }
      }
    }
  });

  it('shows no part of a key of a response that is left or lost', async () => {
    for (const part of [8, 16, secret.length - 1]) {
      const start = `${answer[0] ?? ''}: "${secret.slice(0, part)}`;
      const { body, omitted } = await responseOf([start, new Error('Lost.')]);
      expect([body, omitted]).toEqual([`${answer[0] ?? ''}: "`, part]);
    }
    const long = await responseOf(['x'.repeat(500_000), new Error('Lost.')]);
    expect(long.body.length + long.omitted).toBe(500_000);
  });

  const keys = [secret, 'sk-of-another-vendor-12345678'];

  /** The pieces of a string between places. */
  const piecesOf = <T extends string | Uint8Array>(whole: T, places: readonly number[]): T[] => {
    const cuts = [...new Set([0, ...places, whole.length])].sort((one, other) => one - other);
    return cuts.slice(1).map((to, index) => whole.slice(cuts[index], to) as T);
  };

  it('finds a key that is streamed over events, however both are cut', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...keys),
        fc.array(fc.nat(60)),
        fc.array(fc.nat(2_000)),
        fc.boolean(),
        async (key, places, cuts, isWhole) => {
          const text = `It is "${key}" é.`;
          const events = piecesOf(
            text,
            places.filter((place) => place < text.length),
          ).map(textEvent);
          const bytes = new TextEncoder().encode(`${events.join('')}${finishEvent}`);
          const { body } = await responseOf([
            ...piecesOf(
              bytes,
              cuts.filter((cut) => cut < bytes.length),
            ),
            ...(isWhole ? [] : [new Error('Lost.')]),
          ]);
          const shown = [...body.matchAll(/^data: (.*)$/gmu)].map(([, json = '']) => {
            const { text: piece = '' } = JSON.parse(json) as { text?: string };
            return piece;
          });
          expect(shown.join('')).toBe('It is "[redacted]" é.');
        },
      ),
    ));

  it('finds keys of parallel tool calls, and writes other events as they came', async () => {
    const delta = (index: number, args: string) =>
      `data: {"calls": [{"index":${index}, "arguments":${JSON.stringify(args)}}]}\n\n`;
    const [one = '', other = ''] = keys;
    const events = [
      ...[delta(0, 'Say '), delta(0, one.slice(0, 9)), delta(1, other.slice(0, 9))],
      ...[delta(0, one.slice(9)), delta(1, `${other.slice(9)}.`), delta(1, ' It is.')],
    ];
    const { body } = await responseOf([...events, ...answer]);
    const lines = body.split('\n\n');
    expect([lines[0], lines[5]]).toEqual([events[0], events[5]].map((event) => event?.trim()));
    const shown = (index: number) =>
      lines.flatMap((line) => {
        const { calls = [] } = JSON.parse(line.slice(6) || '{}') as {
          calls?: { index: number; arguments: string }[];
        };
        return calls.flatMap((it) => (it.index === index ? it.arguments : []));
      });
    expect([0, 1].map((index) => shown(index).join(''))).toEqual([
      'Say [redacted]',
      '[redacted]. It is.',
    ]);
  });

  it('shows no part of a key that was being streamed when the response was lost', async () => {
    for (const part of [8, 16, secret.length - 1]) {
      const text = `It is "${secret.slice(0, part)}`;
      const { body } = await responseOf([...[...text].map(textEvent), new Error('Lost.')]);
      const shown = [...body.matchAll(/"text":"((?:[^"\\]|\\.)*)"/gu)].map(([, it]) => it).join('');
      expect(shown).toBe(String.raw`It is \"`);
    }
  });

  it('finds a streamed key in every form of server-sent events', async () => {
    const [, key = ''] = keys;
    const part = (text: string, index: number) => `{"text":"${text}","chunk_index":${index}}`;
    const parts = [part(key.slice(0, 11), 0), part(key.slice(11), 1)];
    const forms: readonly ((json: string) => string)[] = [
      (json) => `data:  ${json}\n\n`,
      (json) => `data: ${json} \n\n`,
      (json) => `event: x\rdata: ${json}\r\r`,
      (json) => `data: ${json}\r\n\r\n`,
      (json) => `data: ${json.replaceAll(',', '\ndata:,\ndata: ')}\n\n`,
      (json) => `${json}\n`,
    ];
    for (const form of forms) {
      const { body } = await responseOf([`\n ${parts.map(form).join('')}`]);
      expect(body).toBe(`\n ${[part('[redacted]', 0), part('', 1)].map(form).join('')}`);
    }
  });

  it('keeps what is no part of a key as it came', async () => {
    const event = (text: string) =>
      `data: { "id" : 12345678901234567890, "text":"${text}" ,"a\\u00e9":1.0e2 }\n\n`;
    const { body } = await responseOf([event(secret.slice(0, 9)), event(secret.slice(9))]);
    expect(body).toBe(event('[redacted]') + event(''));
  });

  it('keeps complete texts of a lost response, and counts what it leaves out of others', async () => {
    const delta = (index: number, text: string) =>
      `data: {"type":"delta","index":${index},"delta":{"text":"${text}"}}\n\n`;
    const stop = 'data: {"type":"content_block_stop","index":0}\n\n';
    const whole = delta(0, 'It is a complete-text') + stop;
    const { body, omitted } = await responseOf([
      whole,
      delta(1, 'One half-of-a-key'),
      new Error('Lost.'),
    ]);
    expect([body, omitted]).toEqual([whole + delta(1, 'One '), 'half-of-a-key'.length]);
  });

  it('does work that grows with the length of a response, with any names and numbers', async () => {
    const numbers = (count: number) =>
      Array.from({ length: count }, (_, at) => `"${at}index":1,"s${at}":"x"`).join();
    const nested = (count: number) =>
      `"${'n'.repeat(count)}":{${Array.from({ length: count }, (_, at) => `"${at}":"y"`).join()}}`;
    const hostile = (count: number) =>
      `data: {${numbers(count)},${nested(count)},"index":${'1'.repeat(count)}}\n\n`;
    // Each string of an event has a part of a key.
    const changed = (count: number) =>
      [secret.slice(0, 9), secret.slice(9)]
        .map((part) => Array.from({ length: count }, (_, at) => `"k${at}":"${part}"`).join())
        .map((fields) => `data: {${fields}}\n\n`)
        .join('');
    const work = async (body: string): Promise<number> => {
      const [get, json] = [jest.spyOn(Map.prototype, 'get'), jest.spyOn(JSON, 'stringify')];
      const shown = await responseOf([body]);
      const lengths = get.mock.calls.map(([name]) => String(name).length);
      const texts = json.mock.results.map(({ value }) => String(value).length);
      get.mockRestore();
      json.mockRestore();
      expect(shown.body).not.toContain(secret.slice(9));
      return [...lengths, ...texts].reduce((sum, length) => sum + length, 0);
    };
    for (const of of [hostile, changed])
      expect(await work(of(400))).toBeLessThan(5 * (await work(of(100))));
  });

  it('reads events of any depth', async () => {
    const deep = `data: ${'{"a":'.repeat(9_000)}"x"${'}'.repeat(9_000)}\n\n`;
    const { body } = await responseOf([deep, ...answer]);
    expect(body).toBe(deep + answer.join(''));
  });

  it('has the time of each request and of its end', async () => {
    const scheduler = new VirtualTimeScheduler();
    const { seen, context } = watcher(scheduler);
    const send = (startsAt: number, lasts: number) => {
      scheduler.frame = startsAt;
      return all(
        exchange$(
          exchangeWith(() => {
            scheduler.frame += lasts;
            return respond(answer)();
          }),
          context,
        ),
      );
    };
    await send(10, 5);
    await send(40, 2);
    const times = seen.map(([, { at, response }]) => [at, response?.at]);
    expect(times).toEqual([
      [10, undefined],
      [10, 15],
      [40, undefined],
      [40, 42],
    ]);
  });

  it('shows each hop of redirects, and goes to no other origin', async () => {
    const { seen, context } = watcher();
    const asked: string[] = [];
    const targets: Readonly<Record<string, string>> = {
      '/a': `/b?key=${secret}`,
      '/b': 'https://acme.example/c',
      '/c': `https://other.example/d?key=${secret}`,
    };
    const exchange = exchangeWith(respond([]), {
      secrets: [secret],
      request: () => ({ ...request(), url: 'https://acme.example/a' }),
      fetch: (input) => {
        const url = input instanceof Request ? input.url : String(input);
        asked.push(url);
        const location = targets[new URL(url).pathname] ?? '/';
        return Promise.resolve(
          new Response(`Moved to ${location}`, { status: 308, headers: { location } }),
        );
      },
    });
    await expect(all(exchange$(exchange, context))).rejects.toThrow();
    expect(asked).toEqual([
      'https://acme.example/a',
      `https://acme.example/b?key=${secret}`,
      'https://acme.example/c',
    ]);
    expect(JSON.stringify(seen)).not.toContain(secret);
    const ended = seen.flatMap(([index, { url, headers, response }]) =>
      response === undefined ? [] : [[index, url, headers['authorization'], response.status]],
    );
    expect(ended).toEqual([
      [0, 'https://acme.example/a', 'Bearer [redacted]', 308],
      [1, 'https://acme.example/b?key=[redacted]', 'Bearer [redacted]', 308],
      [2, 'https://acme.example/c', 'Bearer [redacted]', 308],
    ]);
  });

  it('hides secrets of known forms, and values of headers by their names', async () => {
    const { seen, context } = watcher();
    const headers = {
      ...{ 'x-api-key': 'letters-only-here', authorization: 'Bearer abcdefgh1', accept: '*/*' },
      'x-tag': 'sk-of-another-vendor-12345678',
    };
    const url = 'https://ann:a-password@acme.example/v1?key=abcdefgh';
    const body = '{"prompt":"sk-of-another-vendor-12345678"}';
    const exchange = exchangeWith(respond(answer), { request: () => ({ url, headers, body }) });
    await all(exchange$(exchange, context));
    expect(seen[0]?.[1]).toEqual({
      at: 0,
      url: 'https://ann:[redacted]@acme.example/v1?key=[redacted]',
      headers: {
        ...{ 'x-api-key': '[redacted]', authorization: 'Bearer [redacted]', accept: '*/*' },
        'x-tag': '[redacted]',
      },
      ...{ body: '{"prompt":"[redacted]"}', omitted: 0 },
    });
  });

  it('calls each watcher of a context, with its own count', async () => {
    const calls: (readonly [string, number, boolean])[] = [];
    const noting =
      (name: string) =>
      ({ response }: WatchedExchange, index: number): void => {
        calls.push([name, index, response !== undefined]);
      };
    const once = watchExchanges(lentContext(), noting('a'));
    await all(exchange$(exchangeWith(respond(answer)), once));
    const twice = watchExchanges({ ...once }, noting('b'));
    await all(exchange$(exchangeWith(respond(answer)), twice));
    const failing = watchExchanges(twice, () => {
      throw new Error('No.');
    });
    await all(exchange$(exchangeWith(respond(answer)), failing));
    const of = (name: string) => calls.flatMap(([by, ...rest]) => (by === name ? [rest] : []));
    const counted = (count: number) =>
      Array.from({ length: count }, (_, index) => [
        [index, false],
        [index, true],
      ]).flat();
    expect(of('a')).toEqual(counted(3));
    expect(of('b')).toEqual(counted(2));
  });

  it('does not hold more of bodies than it shows', async () => {
    setFlagsFromString('--expose-gc');
    const heap = async (): Promise<number> => {
      // What is looked at stays until the end of the task.
      await new Promise(setImmediate);
      runInNewContext('gc()');
      return process.memoryUsage().heapUsed;
    };
    const { seen, context } = watcher();
    const send = (index: number) =>
      all(
        exchange$(
          exchangeWith(respond([`: ${'y'.repeat(4_000_000)}\n`, ...answer]), {
            request: () => request(`${index}${'x'.repeat(10_000_000)}`),
          }),
          context,
        ),
      );
    await send(0);
    const before = await heap();
    for (let index = 1; index <= 4; index += 1) await send(index);
    const kept = seen.slice(2).filter(({ length }) => length > 0);
    const grown = (await heap()) - before;
    expect(kept).toHaveLength(8);
    // Four bodies and four responses of a million characters each.
    expect(grown).toBeLessThan(12_000_000);
  });

  it('looks for secrets only in what it may show', async () => {
    const spy = jest.spyOn(String.prototype, 'replaceAll');
    const { context } = watcher();
    const exchange = exchangeWith(respond([`: ${'y'.repeat(3_000_000)}\n`, ...answer]), {
      request: () => request('x'.repeat(3_000_000)),
    });
    await all(exchange$(exchange, context));
    const lengths = spy.mock.contexts.map((text) => String(text).length);
    spy.mockRestore();
    expect(lengths.length).toBeGreaterThan(0);
    expect(Math.max(...lengths)).toBeLessThan(1_100_000);
  });
});

/** What a watcher sees of a response in pieces. */
const responseOf = async (
  pieces: readonly (string | Uint8Array | Error)[],
): Promise<WatchedResponse> => {
  const { seen, context } = watcher();
  const exchange = exchangeWith(respond(pieces), { secrets: [secret] });
  await all(exchange$(exchange, context)).catch(() => undefined);
  const response = seen.at(-1)?.[1].response;
  if (response === undefined) throw new Error('There was no response.');
  return response;
};
