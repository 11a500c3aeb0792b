import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { lentToolContext } from 'millrace/testing';
import { asyncScheduler, firstValueFrom, VirtualTimeScheduler } from 'rxjs';
import { openVendor } from './vendor.test-support.js';
import {
  createService,
  json$,
  oneLine,
  requiredKey,
  type ServiceOptions,
  type ServiceRequest,
  withoutTags,
} from './service.js';
import { stockQuote } from './stock-quote.js';

const key = 'TOP/SECRET+key';
const vendor = await openVendor();
const serviceWith = (options: ServiceOptions = {}) =>
  createService('Mill', 'https://mill.invalid', { baseURL: vendor.url, ...options }, key);
const ask = (request: Partial<ServiceRequest> = {}, options: ServiceOptions = {}) =>
  firstValueFrom(
    json$(serviceWith(options), { path: '/wheel', query: { key }, ...request }, asyncScheduler),
  );
const answer =
  (status: number, body: string | Uint8Array, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body);

const containing = (message: string | RegExp): unknown =>
  typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message);

describe('the client of services', () => {
  it('asks with GET, or with POST if there is a body, and emits JSON', async () => {
    vendor.answers = { '/wheel': { turns: 1 }, '/base/wheel': 'null' };
    expect(await ask({ query: { a: 'ä&b', b: 1, c: undefined } })).toEqual({ turns: 1 });
    expect(await ask({ body: { a: 1 }, headers: { 'x-key': 'k' }, query: {} })).toEqual({
      turns: 1,
    });
    expect(await ask({}, { baseURL: `${vendor.url}/base//` })).toBe(null);
    expect(vendor.asked).toMatchObject([
      { method: 'GET', query: { a: 'ä&b', b: '1' }, headers: { 'user-agent': 'Millrace' } },
      {
        method: 'POST',
        query: {},
        body: { a: 1 },
        headers: { 'x-key': 'k', 'content-type': 'application/json' },
      },
      { path: '/base/wheel' },
    ]);
    expect(vendor.asked[0]?.query).toEqual({ a: 'ä&b', b: '1' });
  });

  it.each([
    [
      answer(401, '{"error":{"message":"The key TOP/SECRET+key is wrong."}}'),
      'auth',
      'Mill answered with the status 401 Unauthorized: The key *** is wrong.',
    ],
    [
      answer(400, `{"message":"${'m'.repeat(190)} TOP/SECRET+key"}`),
      'invalidRequest',
      /m{190} \*\*\*\.$/u,
    ],
    [
      answer(400, `{"message":"${'m'.repeat(195)}TOP/SECRET+key"}`),
      'invalidRequest',
      /m{195}\*\*\*\.$/u,
    ],
    [answer(403, '{"detail":{"error":"no"}}'), 'auth', 'status 403 Forbidden: no.'],
    [
      answer(400, '{"error":true,"reason":"x\\ny"}'),
      'invalidRequest',
      'status 400 Bad Request: x y.',
    ],
    [answer(422, `{"message":"${'m'.repeat(500)}"}`), 'invalidRequest', /m{199}….$/u],
    [answer(404, '<h1>TOP/SECRET+key</h1>'), 'invalidRequest', 'status 404 Not Found.'],
    [answer(456, '{}'), 'rateLimited', 'status 456.'],
    [answer(500, ''), 'server', 'status 500 Internal Server Error.'],
    [
      answer(302, '', { location: 'https://elsewhere.invalid/?key=TOP/SECRET+key' }),
      'redirect',
      'status 302 Found.',
    ],
    [answer(200, '<html>'), 'invalidResponse', 'Mill answered with something other than JSON.'],
    [answer(200, ''), 'invalidResponse', 'other than JSON'],
    [answer(200, 'x'.repeat(2_000_001)), 'tooLarge', 'more than 2000000 bytes'],
    [
      answer(200, gzipSync(new Uint8Array(30_000_000)), { 'content-encoding': 'gzip' }),
      'tooLarge',
      'more than 2000000 bytes',
    ],
    [
      answer(200, 'x'.repeat(100), { 'content-encoding': 'gzip' }),
      'connection',
      'Mill cannot be reached.',
    ],
    [
      (response: ServerResponse) => void response.destroy(),
      'connection',
      'Mill cannot be reached.',
    ],
  ])('converts the answer %# to an error without the key', async (given, code, message) => {
    vendor.answers = { '/wheel': given };
    const error: unknown = await ask().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, message: containing(message) });
    const { message: shown, cause } = error as Error;
    for (const secret of [key, encodeURIComponent(key), '127.0.0.1', 'elsewhere']) {
      expect(`${shown} ${String(cause)} ${JSON.stringify(error)}`).not.toContain(secret);
    }
  });

  it.each([
    ['30', 30_000, 'Try again in 30 s.'],
    ['0', 0, 'Try again in 0 s.'],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0, 'Try again in 0 s.'],
    ['Fri, 31 Dec 9999 00:00:00 GMT', 2_147_483_647, 'Try again in 2147483.647 s.'],
    ['soon', undefined, /429 Too Many Requests\.$/u],
  ])('reads Retry-After: %s', async (header, retryAfterMs, message) => {
    vendor.answers = { '/wheel': answer(429, '', { 'retry-after': header }) };
    const error: unknown = await ask().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'rateLimited',
      retryable: true,
      status: 429,
      message: containing(message),
    });
    expect((error as { retryAfterMs?: number }).retryAfterMs).toBe(retryAfterMs);
  });

  it('reports a server that cannot be reached', async () => {
    const failed = ask({}, { baseURL: 'http://127.0.0.1:1' });
    await expect(failed).rejects.toMatchObject({ code: 'connection', retryable: true });
  });

  it('I5: unsubscribing, and a time-out, close the connection', async () => {
    const silent = await openVendor();
    silent.answers = { '/query': (response) => void response.write('{') };
    const started = (scheduler: VirtualTimeScheduler) =>
      stockQuote({ baseURL: silent.url, apiKey: key })
        .run$({ symbol: 'IBM' }, lentToolContext({ scheduler }))
        .subscribe({ error: (error: unknown) => errors.push(error) });
    const errors: unknown[] = [];
    const subscription = started(new VirtualTimeScheduler());
    while (silent.asked.length === 0) await new Promise(setImmediate);
    subscription.unsubscribe();
    await silent.closed;
    expect(errors).toEqual([]);
    const scheduler = new VirtualTimeScheduler();
    started(scheduler);
    scheduler.flush();
    expect(errors).toMatchObject([
      { code: 'timeout', message: 'Alpha Vantage took longer than 15000 ms.' },
    ]);
  });

  it('takes a key from the option or the environment, and throws without one', () => {
    expect(requiredKey('tool()', ' given ', 'MILLRACE_TEST_KEY')).toBe('given');
    process.env['MILLRACE_TEST_KEY'] = 'set';
    expect(requiredKey('tool()', undefined, 'MILLRACE_TEST_KEY')).toBe('set');
    delete process.env['MILLRACE_TEST_KEY'];
    for (const [invalid, message] of [
      [undefined, 'needs a key: '],
      ['', 'needs a key: '],
      [' ', 'needs a key: '],
      ['a\nb', 'has a key with a space or a non-ASCII letter: '],
      ['schlüssel', 'has a key with a space or a non-ASCII letter: '],
    ] as const) {
      expect(() => requiredKey('tool()', invalid, 'MILLRACE_TEST_KEY')).toThrow(
        `tool() ${message}pass 'apiKey', or set the environment variable MILLRACE_TEST_KEY.`,
      );
    }
  });

  it.each(['ftp://x', 'x', 'http://user:pass@x/', 'https://x/?a=1', 'https://x/#a'])(
    'refuses the base URL %s',
    (baseURL) => {
      expect(() => stockQuote({ apiKey: key, baseURL })).toThrow(
        /^(?!.*pass@).*'baseURL' must be a URL/u,
      );
    },
  );
});

describe('text of services', () => {
  it.each([
    ['a <strong>b</strong> &amp; c &#39;d&#x27; &quot;', `a b & c 'd' "`],
    ['1 < 2 and 3 > 2', '1 < 2 and 3 > 2'],
    ['&#0; &#99999999; &unknown;', '&#0; &#99999999; &unknown;'],
    ['<script>x</script>', 'x'],
  ])('%j without tags', (text, expected) => {
    expect(withoutTags(text)).toBe(expected);
  });

  it('becomes one line', () => {
    expect(oneLine(' a\n\tb\u0000\u001b[0m ', 20)).toBe('a b [0m');
    expect(oneLine('x'.repeat(30), 20)).toBe(`${'x'.repeat(19)}…`);
  });
});
