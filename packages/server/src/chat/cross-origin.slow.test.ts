import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { of } from 'rxjs';
import { userLimits } from '../limits/index.js';
import { chatServer, type ChatServerOptions } from './index.js';

const serverWith = (options: ChatServerOptions = {}) => {
  const errors: string[] = [];
  const answers = [[text('Hello.')], [text('Hello.')]];
  const agent = createAgent({ name: 'helper', model: scriptedModel(...answers) });
  const server = chatServer(agent, {
    onError: ({ message }) => errors.push(message),
    ...options,
  });
  const get = (url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    server.respond(new Request(url, { method, headers }));
  return { server, errors, get };
};

const own = 'http://localhost:3000/api/chat';
const app = 'https://app.example';

describe('X44: the origin of a page', () => {
  it.each([
    // The browser says what the page is; a proxy may have changed the host.
    [{ origin: 'http://localhost:5173', 'sec-fetch-site': 'same-origin' }, 200],
    [{ origin: 'https://chat.example', 'sec-fetch-site': 'same-origin' }, 200],
    [{ origin: 'http://localhost:5173', 'sec-fetch-site': 'same-site' }, 403],
    [{ origin: 'http://localhost:5173', 'sec-fetch-site': 'cross-site' }, 403],
    [{ origin: 'http://localhost:5173', 'sec-fetch-site': 'none' }, 403],
    [{ origin: 'http://localhost:5173', 'sec-fetch-site': '' }, 403],
    [{ origin: 'http://localhost:5173', 'sec-fetch-site': 'same-origin, cross-site' }, 403],
    [{ origin: 'null', 'sec-fetch-site': 'cross-site' }, 403],
    // A page without TLS of the same name is not of this origin, and the browser knows.
    [{ origin: 'http://localhost:3000', 'sec-fetch-site': 'cross-site' }, 403],
    // Without the browser's word, the hosts are compared.
    [{ origin: 'http://localhost:3000' }, 200],
    [{ origin: 'https://localhost:3000' }, 200],
    [{ origin: 'http://localhost:5173' }, 403],
    [{ origin: 'http://localhost' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'nonsense' }, 403],
    // An address that is opened, a link on another site, and a client that is no browser.
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 200],
    [{}, 200],
  ])('of %j: %d', async (headers, status) => {
    const { get } = serverWith();
    expect((await get(own, headers)).status).toBe(status);
  });

  it('does not admit the host name of another site, even if the browser calls the page same-origin', async () => {
    const { get } = serverWith();
    const headers = { origin: 'http://evil.test:3000', 'sec-fetch-site': 'same-origin' };
    expect((await get('http://evil.test:3000/api/chat', headers)).status).toBe(421);
  });

  it.each([
    // A framework may put the name that it was started with into the URL.
    ['localhost:3000', {}, 200],
    ['LOCALHOST', {}, 200],
    ['[::1]:3000', {}, 200],
    ['evil.test', {}, 421],
    ['evil.test:3000', { origin: 'http://evil.test:3000' }, 421],
    ['', {}, 421],
    ['localhost/evil', {}, 421],
    ['evil.test@localhost', {}, 421],
    ['localhost:x', {}, 421],
    ['127.0.0.1:4000', { origin: 'http://127.0.0.1:4000' }, 200],
    ['127.0.0.1:4000', { origin: 'http://localhost:3000' }, 403],
    ['localhost:443', { origin: 'https://localhost' }, 200],
    ['localhost', { origin: 'https://localhost:443' }, 200],
    ['localhost:80', { origin: 'https://localhost' }, 403],
  ])('is compared with the host that was asked: %s, %j', async (host, headers, status) => {
    const { get } = serverWith();
    expect((await get(own, { host, ...headers })).status).toBe(status);
  });

  it('names itself and the option that admits it, to the client and to the program', async () => {
    const { get, errors } = serverWith();
    const refused = await get(own, { origin: 'http://localhost:5173' });
    const error =
      "Pages of 'http://localhost:5173' may not use this server. To allow them, add this origin to the option 'origins' of the server.";
    expect(await refused.json()).toEqual({ error, code: 'refused' });
    expect(refused.headers.get('access-control-allow-origin')).toBeNull();
    expect(errors).toEqual([error]);
    const { get: other, errors: others } = serverWith();
    const host = await other('http://chat.example/api/chat');
    expect(await host.json()).toEqual({
      error:
        "The host 'chat.example' is not served. Add it to the option 'hosts' of the server, or authenticate users with 'user'.",
      code: 'refused',
    });
    expect(others).toHaveLength(1);
  });

  it.each([
    'null',
    '<b>x</b>',
    `https://${'a'.repeat(10_000)}.example`,
    "https://a'b\u00e9.example",
  ])('is not repeated if it is not valid: %.40s', async (origin) => {
    const { get } = serverWith();
    const refused = await get(own, { origin });
    const { error } = (await refused.json()) as { error: string };
    expect(error).toContain('Pages without an origin');
  });
});

/** All combinations of values, of which some are absent. */
const combined = (
  values: Readonly<Record<string, readonly (string | undefined)[]>>,
): readonly Readonly<Record<string, string>>[] =>
  Object.entries(values).reduce<readonly Readonly<Record<string, string>>[]>(
    (all, [name, ofName]) =>
      all.flatMap((headers) =>
        ofName.map((value) => (value === undefined ? headers : { ...headers, [name]: value })),
      ),
    [{}],
  );

describe('X44: a request triggered by a page of another site', () => {
  const asked = combined({
    origin: [undefined, 'http://localhost:3000', 'http://localhost:5173', app],
    'sec-fetch-site': [undefined, 'none', 'same-origin', 'same-site', 'cross-site', ''],
    'sec-fetch-mode': [undefined, 'navigate', 'no-cors', 'cors', 'same-origin', 'websocket'],
    'sec-fetch-dest': [undefined, 'document', 'image', 'iframe', 'empty'],
  });
  const isAllowed = (method: string, headers: Readonly<Record<string, string>>): boolean => {
    const { origin, 'sec-fetch-site': site } = headers;
    if (origin === app) return true;
    if (origin !== undefined) {
      return site === undefined ? origin === 'http://localhost:3000' : site === 'same-origin';
    }
    if (site === undefined || site === 'none' || site === 'same-origin') return true;
    const { 'sec-fetch-mode': mode, 'sec-fetch-dest': dest = 'document' } = headers;
    return /^(?:GET|HEAD)$/u.test(method) && mode === 'navigate' && dest === 'document';
  };

  it.each(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS'])(
    'has no effect, unless a person opens its address or its origin is allowed: %s',
    async (method) => {
      const done: string[] = [];
      const route = (path: string, ofRoute: string, isPublic: boolean) => ({
        ...{ method: ofRoute, path, isPublic },
        answer$: () => {
          done.push(path);
          return of(new Response('Done.'));
        },
      });
      const routes = ['GET', 'POST', 'DELETE'].flatMap((it) => [
        route('/own', it, false),
        route('/public', it, true),
      ]);
      const { get } = serverWith({ origins: [app], protocols: [() => routes] });
      for (const headers of asked) {
        for (const path of ['/own', '/public']) {
          done.length = 0;
          const isPublic = path === '/public' && method !== 'OPTIONS';
          const isFine = isAllowed(method, headers) || (isPublic && !('origin' in headers));
          const { status } = await get(`http://localhost:3000${path}`, headers, method);
          const ok = method === 'OPTIONS' ? 204 : 200;
          const effects = isFine && method !== 'OPTIONS' ? [path] : [];
          expect([headers, path, status, done]).toEqual([
            headers,
            path,
            isFine ? ok : 403,
            effects,
          ]);
        }
      }
    },
    60_000,
  );

  it('loads a document for frames, and only that, in an `iframe`', async () => {
    const documentAt = (path: string, isFramed: boolean) => ({
      ...{ method: 'GET', path, isFramed },
      answer$: () => of(new Response('Hello.')),
    });
    const routes = [documentAt('/framed', true), documentAt('/alone', false)];
    const { get } = serverWith({ protocols: [() => routes] });
    const sent = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    for (const dest of ['document', 'iframe', 'frame', 'object', 'embed', 'image']) {
      const statuses = ['/framed', '/alone'].map(async (path) => {
        const headers = { ...sent, 'sec-fetch-dest': dest };
        const posted = await get(`http://localhost${path}`, headers, 'POST');
        expect(posted.status).toBe(403);
        return (await get(`http://localhost${path}`, headers)).status;
      });
      const isAlone = dest === 'document';
      const expected = [isAlone || dest === 'iframe' ? 200 : 403, isAlone ? 200 : 403];
      expect([dest, ...(await Promise.all(statuses))]).toEqual([dest, ...expected]);
    }
  });

  it('names the option that admits it', async () => {
    const { get, errors } = serverWith();
    const refused = await get(own, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' });
    expect([refused.status, await refused.json()]).toEqual([
      403,
      { code: 'refused', error: expect.stringContaining("the option 'origins'") },
    ]);
    expect(errors).toHaveLength(1);
  });
});

describe('X44: an allowed origin', () => {
  it.each([app, 'http://localhost:5173', 'capacitor://localhost', 'chrome-extension://abcdef'])(
    'may be %s',
    async (origin) => {
      const { get } = serverWith({ origins: [origin] });
      const read = await get(own, { origin, 'sec-fetch-site': 'cross-site' });
      expect([read.status, read.headers.get('access-control-allow-origin')]).toEqual([200, origin]);
    },
  );

  it.each([
    'https://app.example/',
    'app.example',
    'https://a.example/b',
    'null',
    'data:text/html,',
    '*',
  ])('cannot be %s', (origin) => {
    expect(() => serverWith({ origins: [origin] })).toThrow("'origins' must be");
  });

  it('may send any header by any method of the path, and keeps the permission', async () => {
    const { get } = serverWith({ origins: [app] });
    const asked = {
      origin: app,
      'access-control-request-method': 'DELETE',
      'access-control-request-headers': 'x-trace,traceparent,authorization',
    };
    const { status, headers } = await get(`${own}/a`, asked, 'OPTIONS');
    expect(status).toBe(204);
    expect(Object.fromEntries(headers)).toEqual({
      allow: 'GET, HEAD, PATCH, DELETE',
      'access-control-allow-origin': app,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, HEAD, PATCH, DELETE',
      'access-control-allow-headers': 'x-trace,traceparent,authorization',
      'access-control-max-age': '7200',
      vary: 'origin, access-control-request-headers',
    });
  });

  it('reads each header of its response', async () => {
    const limits = userLimits({ calls: 2, perMinute: 1 });
    const { get, server } = serverWith({
      origins: [app],
      limits,
      user: () => 'ann',
      protocols: [
        () => [
          {
            method: 'GET',
            path: '/own',
            answer$: () => of(new Response('x', { headers: { 'x-own': '1', 'retry-after': '5' } })),
          },
        ],
      ],
    });
    const { headers } = await get('http://localhost:3000/own', { origin: app });
    const exposed = (headers.get('access-control-expose-headers') ?? '').split(', ');
    expect(exposed).toEqual(expect.arrayContaining(['x-own', 'retry-after', 'content-type']));
    const ask = (id: string) =>
      server.respond(
        new Request(own, {
          method: 'POST',
          headers: { origin: app, 'content-type': 'application/json' },
          body: JSON.stringify({
            id,
            messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }],
          }),
        }),
      );
    const answer = await ask('a');
    expect(answer.headers.get('access-control-expose-headers')).toContain(
      'x-vercel-ai-ui-message-stream',
    );
    await answer.text();
    const late = await ask('b');
    expect(late.status).toBe(429);
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(late.headers.get('access-control-expose-headers')).toContain('retry-after');
  });

  it('cannot access anything of other users', async () => {
    const { get } = serverWith({ origins: [app] });
    const refused = await get(own, { origin: 'https://evil.test' }, 'OPTIONS');
    expect(refused.status).toBe(403);
    expect([...refused.headers.keys()].filter((name) => name.startsWith('access-'))).toEqual([]);
  });
});

describe('X43: requests with HEAD', () => {
  it('can be requested with HEAD', async () => {
    const { get } = serverWith();
    const head = await get(own, {}, 'HEAD');
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect(head.headers.get('content-type')).toContain('json');
    const stream = await get(`${own}/a/changes`, {}, 'HEAD');
    expect([stream.status, stream.body]).toEqual([200, null]);
    expect(stream.headers.get('content-type')).toContain('text/event-stream');
    expect((await get('http://localhost:3000/api/approvals', {}, 'HEAD')).status).toBe(404);
  });
});
