import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel } from 'millrace/testing';
import { chatServer, type ChatServerOptions } from '@millrace/server/chat';
import { chatPage, type ChatPageOptions } from './index.js';

const pageOf = (options: ChatPageOptions = {}, server: ChatServerOptions = {}) => {
  const agent = createAgent({ name: 'helper', model: scriptedModel() });
  const { respond } = chatServer(agent, { protocols: [chatPage(options)], ...server });
  return (path: string, headers: Readonly<Record<string, string>> = {}) =>
    respond(new Request(`http://localhost${path}`, { headers }));
};

/** The scripts and styles of a document. */
const filesIn = (document: string, url = '/'): readonly string[] =>
  [...document.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/gu)].map(
    ([, path = '']) => new URL(path, `http://localhost${url}`).pathname,
  );

/** The path at which a document expects the chat server. */
const apiOf = (document: string, url: string): string => {
  const [, link = ''] = /name="millrace-api" content="([^"]+)"/u.exec(document) ?? [];
  return new URL(link, `http://localhost${url}`).pathname;
};

describe('the chat page', () => {
  it('is a document with a strict policy, and nothing inline', async () => {
    const response = await pageOf()('/');
    expect(response.status).toBe(200);
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toContain('unsafe');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const document = await response.text();
    expect(document).toContain('<title>helper</title>');
    expect(document).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=/u);
  });

  it('is loaded again only when it has changed', async () => {
    const get = pageOf();
    const first = await get('/');
    const etag = first.headers.get('etag') ?? '';
    expect(first.headers.get('cache-control')).toBe('no-cache');
    const known = await get('/', { 'if-none-match': `W/${etag}` });
    expect([known.status, await known.text()]).toEqual([304, '']);
    const renamed = await pageOf({ title: 'Other' })('/', { 'if-none-match': etag });
    expect(renamed.status).toBe(200);
  });

  it('has a script and a style that browsers keep, compressed or not', async () => {
    const get = pageOf();
    const files = filesIn(await (await get('/')).text());
    expect(files).toHaveLength(2);
    for (const path of files) {
      expect(path).toMatch(/^\/page-[\w-]{8}\.(?:js|css)$/u);
      const plain = await get(path);
      expect(plain.headers.get('cache-control')).toContain('immutable');
      expect(plain.headers.get('content-type')).toMatch(/^text\/(?:javascript|css)/u);
      expect(plain.headers.get('content-encoding')).toBeNull();
      const text = await plain.text();
      const zipped = await get(path, { 'accept-encoding': 'br, gzip' });
      expect(zipped.headers.get('content-encoding')).toBe('gzip');
      const unzipped = zipped.body?.pipeThrough(new DecompressionStream('gzip'));
      expect(await new Response(unzipped).text()).toBe(text);
      const refused = await get(path, { 'accept-encoding': 'gzip;q=0, br' });
      expect(refused.headers.get('content-encoding')).toBeNull();
    }
  });

  it('loads no more than 92 kB to show an answer, and the rest when it is needed', async () => {
    const get = pageOf();
    const files = filesIn(await (await get('/')).text());
    const sizes = files.map(async (path) => {
      const response = await get(path, { 'accept-encoding': 'gzip' });
      return (await response.arrayBuffer()).byteLength;
    });
    const sum = (await Promise.all(sizes)).reduce((total, size) => total + size, 0);
    expect(sum).toBeGreaterThan(60_000);
    expect(sum).toBeLessThan(92_000);
    const script = await (await get(files.find((path) => path.endsWith('.js')) ?? '')).text();
    const later = [...script.matchAll(/import\(["'`]\.\/(page-[\w-]+\.js)["'`]\)/gu)];
    expect(later).toHaveLength(4);
    for (const [, name = ''] of later) expect((await get(`/${name}`)).status).toBe(200);
  });

  it('may have another place, title and server', async () => {
    const get = pageOf({ path: '/chat/', title: 'A <b>"&', api: '/agents/' });
    expect((await get('/')).status).toBe(404);
    const document = await (await get('/chat/')).text();
    expect(document).toContain('<title>A &#60;b&#62;&#34;&#38;</title>');
    expect(apiOf(document, '/chat/')).toBe('/agents');
    for (const path of filesIn(document, '/chat/')) {
      expect(path).toMatch(/^\/chat\/page-/u);
      expect((await get(path)).status).toBe(200);
    }
  });

  it.each([
    // The path of the page, the path that a proxy removes, and the path in the browser.
    ['/', '', '/'],
    ['/chat', '', '/chat'],
    ['/chat', '', '/chat/'],
    ['/chat/', '', '/chat'],
    ['/a/b', '', '/a/b'],
    ['/a/b', '', '/a/b/'],
    ['/', '/ai', '/ai/'],
    ['/chat', '/ai', '/ai/chat'],
    ['/chat', '/ai', '/ai/chat/'],
    ['/a/b', '/x/y', '/x/y/a/b/'],
  ])('X43: finds its files and its server: %s, below "%s", at %s', async (path, removed, url) => {
    const get = pageOf({ path });
    const response = await get(url.slice(removed.length));
    expect(response.status).toBe(200);
    const document = await response.text();
    expect(apiOf(document, url)).toBe(`${removed}/api`);
    const files = filesIn(document, url);
    expect(files).toHaveLength(2);
    for (const file of files) {
      expect(file.startsWith(`${removed}/`)).toBe(true);
      expect((await get(file.slice(removed.length))).status).toBe(200);
    }
  });

  it('X43: finds them without a slash at its end, if the proxy reports what it removes', async () => {
    const document = await (await pageOf()('/', { 'x-forwarded-prefix': '/ai' })).text();
    expect(apiOf(document, '/ai')).toBe('/ai/api');
    for (const file of filesIn(document, '/ai')) expect(file).toMatch(/^\/ai\/page-/u);
  });

  it.each([
    ['/user/ann@example.com/proxy/3000', '/user/ann@example.com/proxy/3000'],
    ['/a:b/~c', '/a:b/~c'],
    ['/a%20b/%C3%BC/', '/a%20b/%C3%BC'],
    ["/o'neil/a&lt;b", "/o'neil/a&lt;b"],
    ['/.well-known/...', '/.well-known/...'],
    // Of two proxies, each with its own.
    ['/a, /b', '/a/b'],
    ['/a/,/b/', '/a/b'],
  ])('X43: takes any prefix that is a path of its site: %s', async (given, prefix) => {
    const html = await (await pageOf()('/', { 'x-forwarded-prefix': given })).text();
    const document = html.replaceAll('&amp;', '&');
    expect(html).not.toContain('&lt;b');
    expect(apiOf(document, '/')).toBe(`${prefix}/api`);
    for (const file of filesIn(document, '/')) expect(file.startsWith(`${prefix}/`)).toBe(true);
  });

  it.each([
    '//evil.test',
    'https://evil.test',
    '/a"><script>',
    '/../x',
    '/a//b',
    '\\evil',
    '/%2e%2e/x',
    '/a/.%2E',
    '/a%2',
    '/a?b',
    '/a, https://evil.test',
    `/${'a'.repeat(600)}`,
  ])('X43: ignores a prefix that is no path of its site: %s', async (prefix) => {
    const response = await pageOf()('/', { 'x-forwarded-prefix': prefix });
    expect(response.headers.get('vary')).toBe('x-forwarded-prefix');
    const document = await response.text();
    expect(apiOf(document, '/')).toBe('/api');
    expect(document).not.toContain(prefix);
  });

  it('has the address of devtools for itself, and not for frames of other sites', async () => {
    const token = 'token=a-secret-of-devtools';
    const embedIn = ['https://shop.example'];
    const get = pageOf({ devtoolsUrl: `http://127.0.0.1:1/#${token}`, embedIn });
    expect(await (await get('/')).text()).toContain(token);
    const framed = await get('/embed');
    expect([framed.status, (await framed.text()).includes(token)]).toEqual([200, false]);
    const wrong = { devtoolsUrl: `127.0.0.1:1/#${token}` };
    expect(() => chatPage(wrong)).toThrow(/^(?!.*token=)/u);
  });

  it('is only for users, if the server has users', async () => {
    const user = ({ headers }: Request) => (headers.get('cookie') === 'a=1' ? 'ann' : undefined);
    const get = pageOf({}, { user });
    expect((await get('/')).status).toBe(401);
    expect((await get('/', { cookie: 'a=1' })).status).toBe(200);
  });

  it.each([
    [{ path: 'chat' }, /^chatPage\(\): 'path' must be a path, such as '\/', not "chat"/],
    [{ path: '' }, /'path' must be a path/],
    [{ api: '/a b' }, /'api' must be a path/],
    [{ starters: 'What?' }, /'starters' must be a list of up to 8 questions/],
    [{ logo: 'https://evil.test/a.png' }, /'logo' must be a path of this site/],
    [{ agents: { Sales: 'https://evil.test' } }, /'agents' must be paths by names/],
    [{ models: [''] }, /'models' must be a list of up to 20 names/],
    [{ logo: '//evil.test/a.png' }, /'logo' must be a path of this site/],
    [{ theme: { accent: 'url(https://evil.test)' } }, /'theme' must be colors by name/],
    [{ theme: { accent: 'red; color: blue' } }, /'theme' must be colors by name/],
    [{ theme: { shadow: 'red' } }, /'theme' must be colors by name/],
    [{ devtoolsUrl: 'javascript:alert(1)' }, /'devtoolsUrl' must be an http or https address/],
    [{ devtoolsUrl: 1 }, /'devtoolsUrl' must be an http or https address/],
    [{ name: 'x' }, /no option 'name'/],
  ])('refuses wrong options: %j', (options, message) => {
    expect(() => chatPage(options as ChatPageOptions)).toThrow(message);
  });
});
