import { describe, expect, it } from '@jest/globals';
import { textOf } from 'millrace';
import { marbles } from 'millrace/testing';
import fc from 'fast-check';
import { map } from 'rxjs';
import { play } from './flow.test-support.js';
import { flowAgent } from './flow-agent.js';
import { isLocalHost } from './local-host.js';
import { problemsIn } from './problems-in.js';
import type { FlowHttp, FlowRequest, FlowResponse } from './resources.js';
import { toMermaid } from './to-mermaid.js';

interface Sent extends Pick<FlowRequest, 'method' | 'headers' | 'body'> {
  readonly url: string;
}
type Server = (url: string, request: FlowRequest) => FlowResponse | Promise<FlowResponse>;

const answer = (body: string, status = 200, headers: Readonly<Record<string, string>> = {}) =>
  new Response(status === 204 ? null : body, {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
const redirect = (location: string, status = 302) => answer('', status, { location });

const documentOf = (params: object, content = '{{h@output}}') => ({
  version: 1,
  name: 'f',
  components: {
    begin: { component_name: 'begin', downstream: ['h'] },
    h: { component_name: 'http', params, downstream: ['say'] },
    say: { component_name: 'message', params: { content } },
  },
});

/** A flow whose requests a function answers. */
const flowOf = (
  params: object,
  server: Server,
  content?: string,
  secrets: Readonly<Record<string, string>> = {},
) => {
  const sent: Sent[] = [];
  const fetch = (url: string, request: FlowRequest) => {
    const { method, headers, body } = request;
    sent.push({ url, method, headers, ...(body !== undefined && { body }) });
    return Promise.resolve(server(url, request));
  };
  return { agent: flowAgent(documentOf(params, content), { http: { fetch }, secrets }), sent };
};

const asked = async (
  params: object,
  server: Server,
  input = 'q',
  content?: string,
  secrets = {},
) => {
  const { agent, sent } = flowOf(params, server, content, secrets);
  return { text: textOf(await agent.call(input)), sent };
};

describe('an http component', () => {
  it.each([
    ['a text', {}, 'hello', 'text/plain', '{{h@output}}', 'hello'],
    ['JSON', {}, '{"a":[1,{"b":"x"}]}', 'application/json', '{{h@output.a.1.b}}', 'x'],
    [
      'JSON of a kind',
      {},
      '{"a":1}',
      'application/problem+json; charset=utf-8',
      '{{h@output.a}}',
      '1',
    ],
    [
      'a part of it',
      { result: 'a.0' },
      '{"a":[{"b":2}]}',
      'text/plain',
      '{{h@output.b}} {{h@output}}',
      '2 {"b":2}',
    ],
    ['another charset', {}, 'M\xfchle', 'text/plain; charset=latin1', '{{h@output}}', 'Mühle'],
  ])('G6: reads %s', async (_name, params, body, type, content, expected) => {
    const bytes = Uint8Array.from(body, (character) => character.charCodeAt(0));
    const server = () => new Response(bytes, { headers: { 'content-type': type } });
    expect((await asked({ url: 'https://x.test/', ...params }, server, 'q', content)).text).toBe(
      expected,
    );
  });

  it('G6: encodes what it inserts into a URL and a body', async () => {
    const body = { q: '{{sys.query}}', n: [1, '{{begin@output}}'] };
    const url = 'https://x.test/{{sys.query}}?a={{sys.query}}';
    const { sent } = await asked(
      { url, method: 'POST', body, headers: { 'X-A': 'a {{sys.query}}' } },
      () => answer('{}'),
      '"/../&b=1',
    );
    expect(sent).toEqual([
      {
        url: 'https://x.test/%22%2F..%2F%26b%3D1?a=%22%2F..%2F%26b%3D1',
        method: 'POST',
        headers: { 'content-type': 'application/json', 'X-A': 'a "/../&b=1' },
        body: '{"q":"\\"/../&b=1","n":[1,"\\"/../&b=1"]}',
      },
    ]);
    const whole = await asked({ url: '{{sys.query}}/x' }, () => answer('1'), ' https://y.test/a ');
    expect(whole.sent[0]?.url).toBe('https://y.test/a/x');
  });

  it.each([
    ['https://x.test/users/{{sys.query}}/keys', '..'],
    ['https://x.test/users/{{sys.query}}', '..'],
    ['https://x.test/users/.{{sys.query}}?a=1', '.'],
    ['https://x.test/users/{{sys.query}}#a', '.'],
  ])('X17: no data leaves the path: %s with %j', async (url, query) => {
    await expect(asked({ url }, () => answer('1'), query)).rejects.toMatchObject({
      code: 'invalidRequest',
      message: expect.stringContaining("a segment '.' or '..'") as unknown,
    });
    const { sent } = await asked(
      { url: 'https://x.test/a?b={{sys.query}}' },
      () => answer('1'),
      '/../',
    );
    expect(sent).toHaveLength(1);
  });

  it('G6: the output is the whole body, up to the maximum size', async () => {
    const body = 'x'.repeat(1_500_000);
    const { text } = await asked({ url: 'https://x.test/', max_bytes: 2_000_000 }, () =>
      answer(body),
    );
    expect(text).toBe(body);
  });

  it('X10: secrets are sent, and are in no event, error, output or picture', async () => {
    const secrets = { KEY: 'sk-"heron\\', ID: 'me' };
    const params = {
      url: 'https://x.test/{{secret.ID}}',
      method: 'POST',
      headers: { authorization: 'Bearer {{secret.KEY}}' },
      body: { key: '{{secret.KEY}}', data: '{{sys.query}}' },
    };
    const input = 'Tell me {{secret.KEY}} and \\{{secret.KEY}} and \\n';
    const echo: Server = (_url, { headers, body = '' }) =>
      answer(JSON.stringify({ headers, body }), 200);
    const { agent, sent } = flowOf(params, echo, '{{h@output}}', secrets);
    const { events, reply } = await play(agent, input);
    expect(sent[0]).toMatchObject({
      url: 'https://x.test/me',
      headers: { authorization: `Bearer ${secrets.KEY}` },
      body: JSON.stringify({ key: secrets.KEY, data: input }),
    });
    const shown = JSON.stringify(events) + JSON.stringify(reply) + toMermaid(documentOf(params));
    expect(shown).not.toContain('heron');
    expect(textOf(reply)).toContain('[secret KEY]');
    expect(JSON.stringify(events)).toContain('Bearer {{secret.KEY}}');
    const failing = flowOf(params, () => answer('no', 500), undefined, secrets);
    const error: unknown = await failing.agent.call(input).catch((it: unknown) => it);
    expect(error).toMatchObject({ code: 'server', status: 500, component: 'h' });
    expect(String(error)).not.toContain('heron');
    const broken = flowOf(
      { ...params, headers: { a: '{{secret.KEY}}{{sys.query}}' } },
      echo,
      undefined,
      secrets,
    );
    await expect(broken.agent.call('a\r\nb: c')).rejects.toThrow(/header 'a' with characters/u);
    expect(broken.sent).toEqual([]);
  });

  it('X10: no data becomes a secret, however it is put together', async () => {
    const piece = fc.constantFrom(
      '{',
      '{{',
      '\\',
      'secret.KEY',
      '}}',
      '{{secret.KEY}}',
      '\\{{secret.KEY}}',
      'a',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 6 }),
        fc.array(piece, { maxLength: 6 }),
        async (one, two) => {
          const [a, b] = [one.join(''), two.join('')];
          const body =
            '{{sys.metadata.a}}{{sys.metadata.b}}|{{secret.KEY}}|{{sys.metadata.a}}{{secret.KEY}}';
          const { agent, sent } = flowOf(
            { url: 'https://x.test/', method: 'POST', body },
            () => answer('1'),
            undefined,
            { KEY: 'S' },
          );
          await agent.call('q', { metadata: { a, b } });
          expect(sent[0]?.body).toBe(`${a}${b}|S|${a}S`);
        },
      ),
      { numRuns: 40 },
    );
  });

  it.each([
    'http://127.0.0.1/',
    'http://0x7f.1/',
    'http://localhost:80/',
    'http://a.localhost/',
    'http://[::1]/',
    'http://169.254.169.254/latest',
    'http://10.1.2.3/',
    'http://192.168.0.1/',
    'http://[fd00::1]/',
    'http://[::ffff:10.0.0.1]/',
    'https://u:p@x.test/',
    'ftp://x.test/',
  ])('X17: does not send a request to %s, nor follow a redirect there', async (url) => {
    const first = flowOf({ url: '{{sys.query}}' }, () => answer('secret'));
    await expect(first.agent.call(url)).rejects.toMatchObject({
      code: 'invalidRequest',
      component: 'h',
    });
    expect(first.sent).toEqual([]);
    const second = flowOf({ url: 'https://x.test/' }, () => redirect(url));
    await expect(second.agent.call('q')).rejects.toMatchObject({ component: 'h' });
    expect(second.sent).toHaveLength(1);
  });

  it('X17: the program may allow a private address', async () => {
    const fetch = () => Promise.resolve(answer('"here"'));
    const isPrivateAllowed = ({ host }: URL): boolean => host === 'localhost:8080';
    const agent = (url: string) =>
      flowAgent(documentOf({ url }), { http: { fetch, isPrivateAllowed } });
    expect(textOf(await agent('http://localhost:8080/').call('q'))).toBe('here');
    await expect(agent('http://localhost:8081/').call('q')).rejects.toThrow(
      "The request GET http://localhost:8081/ needs 'isPrivateAllowed': its address is not public.",
    );
  });

  it('X17: keeps the reason why guardedFetch refuses, and no other text of a library', async () => {
    const refused = (why: string) => new Error(`'x.test' must not be fetched: ${why}`);
    const agent = (fetch: FlowHttp['fetch']) =>
      flowAgent(documentOf({ url: 'https://x.test:8080/' }), { http: { fetch } });
    for (const error of [
      refused('the port 8080 is not allowed.'),
      new TypeError('fetch failed', { cause: refused('its address is not public.') }),
    ]) {
      const why = String(error.cause ?? error).replace(/^.* fetched: /u, '');
      await expect(agent(() => Promise.reject(error)).call('q')).rejects.toMatchObject({
        code: 'invalidRequest',
        message: expect.stringContaining(
          `The request GET https://x.test:8080/ must not be fetched: ${why}`,
        ) as unknown,
      });
    }
    const broken = agent(() => Promise.reject(new Error('The header "a: b" is not valid.')));
    await expect(broken.call('q')).rejects.toMatchObject({
      code: 'connection',
      message: expect.not.stringContaining('a: b') as unknown,
    });
  });

  it('G6: on_error may branch on the status', async () => {
    const params = { url: 'https://x.test/', on_error: { value: 'Status {{h@error.status}}' } };
    expect((await asked(params, () => answer('', 404))).text).toBe('Status 404');
    const closed = () => Promise.reject(new Error('closed'));
    expect((await asked(params, closed)).text).toBe('Status ');
    const http = { fetch: closed };
    const [problem] = problemsIn(documentOf(params, '{{h@error.stat}}'), { http });
    expect(problem).toMatchObject({ suggestion: 'An error has code, message, status.' });
  });

  it('X17: the ranges of addresses are those of the registry', () => {
    const open = [
      '8.8.8.8',
      '172.15.0.1',
      '172.32.0.1',
      '100.128.0.1',
      '223.255.255.255',
      'example.com',
      '[2606:4700::1]',
      '[2001:4860::1]',
    ];
    const closed = [
      '0.0.0.0',
      '100.64.0.1',
      '172.31.255.255',
      '192.0.2.1',
      '224.0.0.1',
      '255.255.255.255',
      'x.internal',
      'LOCALHOST.',
      '[fe80::1]',
      '[2001:db8::1]',
      '[2002:a00:1::]',
      '[64:ff9b::a00:1]',
    ];
    expect(open.filter(isLocalHost)).toEqual([]);
    expect(closed.filter((host) => !isLocalHost(host))).toEqual([]);
  });

  it('G6: follows redirects as browsers do, but never takes secrets to another origin', async () => {
    const to =
      (location: string, status: number): Server =>
      (url) =>
        url.endsWith('/start') ? redirect(location, status) : answer('"end"');
    const params = { url: 'https://x.test/start', method: 'POST', body: { a: 1 } };
    const moved = async (location: string, status: number, more: object = {}, secrets = {}) =>
      (await asked({ ...params, ...more }, to(location, status), 'q', undefined, secrets)).sent.at(
        -1,
      );
    expect(await moved('/end', 303)).toEqual({
      url: 'https://x.test/end',
      method: 'GET',
      headers: {},
    });
    expect(await moved('/end', 307)).toMatchObject({ method: 'POST', body: '{"a":1}' });
    expect(await moved('https://y.test/', 302)).toEqual({
      url: 'https://y.test/',
      method: 'GET',
      headers: {},
    });
    await expect(moved('https://y.test/', 308)).rejects.toThrow('must not get its body');
    const headers = { authorization: 'Basic {{secret.KEY}}' };
    await expect(moved('https://y.test/', 302, { headers }, { KEY: 'x' })).rejects.toMatchObject({
      code: 'redirect',
    });
    await expect(moved('http://x.test/', 302, { headers: { cookie: 'a' } })).rejects.toMatchObject({
      code: 'redirect',
    });
    await expect(moved('/start', 302, { max_redirects: 2 })).rejects.toThrow('more than 2 times');
  });

  it.each([
    [404, 'tool'],
    [401, 'auth'],
    [429, 'rateLimited'],
    [503, 'server'],
  ])('G6: the status %j is the error %s, which on_error can say', async (status, code) => {
    const params = { url: 'https://x.test/', on_error: { value: '{{h@error.code}}' } };
    expect((await asked(params, () => answer('secret of the server', status))).text).toBe(code);
  });

  it('G6: refuses what is too large, and what has no value at the path', async () => {
    const large = asked({ url: 'https://x.test/', max_bytes: 9 }, () => answer('"12345678"'));
    await expect(large).rejects.toMatchObject({ code: 'tooLarge' });
    const without = asked({ url: 'https://x.test/', result: 'a.b' }, () => answer('{"a":1}'));
    await expect(without).rejects.toThrow("without a value at 'a.b'");
  });

  it('G6: repeats only what is transient, with one idempotency key', async () => {
    const statuses = [503, 429, 200];
    const params = {
      url: 'https://x.test/',
      method: 'POST',
      body: 'x',
      idempotency_key: true,
      retry: { times: 3, delay_ms: 0 },
    };
    const { sent } = await asked(params, () => answer('1', statuses.shift()));
    expect(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(sent).toHaveLength(3);
    const refused = flowOf(params, () => answer('1', 400));
    await expect(refused.agent.call('q')).rejects.toThrow('status 400');
    expect(refused.sent).toHaveLength(1);
  });

  it('G6: a time-out and an unsubscribe abort the request', () => {
    marbles(({ expectObservable, flush }) => {
      const signals: AbortSignal[] = [];
      const fetch = (_url: string, { signal }: FlowRequest) => {
        signals.push(signal);
        return new Promise<FlowResponse>(() => undefined);
      };
      const agent = (params: object) =>
        flowAgent(documentOf({ url: 'https://x.test/', ...params }), { http: { fetch } });
      const patient = agent({ timeout_ms: 4, on_error: { value: '{{h@error.code}}' } });
      expectObservable(patient.call$('q').pipe(map(textOf))).toBe('----(t|)', { t: 'timeout' });
      expectObservable(agent({}).call$('q').pipe(map(textOf)), '--!').toBe('---');
      flush();
      expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    });
  });

  it.each([
    [{ url: 'x.test' }, 'params.url: is not a URL. It must start with http:// or https://.'],
    [
      { url: '{{secret.URL}}' },
      "params.url: starts with 'secret.URL'. The host cannot be a secret.",
    ],
    [
      { url: 'https://x.test', body: 'x' },
      "params.body: cannot be sent with GET. Set 'method' to POST.",
    ],
    [
      { url: 'https://x.test', method: 'POST', retry: { times: 1 } },
      "params.retry: may repeat the effect of POST. Set 'idempotency_key' if the server supports it, or remove 'retry'.",
    ],
    [
      { url: 'https://x.test', headers: { 'a b': 'x' } },
      'params.headers.a b: is not a valid header. The name of a header has letters, digits and hyphens.',
    ],
    [
      { url: 'https://x.test', headers: { a: '{{secret.API_KY}}' } },
      "params.headers.a: names 'API_KY', which is not one of the secrets of this program. Did you mean 'API_KEY'?",
    ],
  ])('G6: %j has a problem', (params, expected) => {
    const http = { fetch: () => Promise.resolve(answer('')) };
    const problems = problemsIn(documentOf(params), { http, secrets: { API_KEY: 'x' } });
    expect(
      problems.map(({ path, problem, suggestion = '' }) => `${path}: ${problem}. ${suggestion}`),
    ).toContain(`components.h.${expected}`);
  });

  it('X17: without a fetch of the program, nothing is sent; secrets stay in http components', () => {
    const [problem] = problemsIn(documentOf({ url: 'https://x.test' }), {});
    expect(problem).toMatchObject({
      path: 'components.h',
      suggestion: expect.stringContaining('guardedFetch') as unknown,
    });
    const leak = problemsIn(documentOf({ url: 'https://x.test' }, '{{secret.KEY}}'));
    expect(leak.map(({ problem }) => problem)).toEqual([
      "names 'secret.KEY', but only http components may use secrets",
    ]);
  });
});
