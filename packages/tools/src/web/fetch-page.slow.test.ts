import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type LookupFunction, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { lentToolContext, toolContract } from 'millrace/testing';
import { lastValueFrom, VirtualTimeScheduler } from 'rxjs';
import { runTool } from '../run-tool.test-support.js';
import { fetchPage, type FetchPageOptions } from './fetch-page.js';
import { publicLookup } from './guarded-get.js';
import { article$ } from './read-article.js';
import { openSite, withResolve } from './site.test-support.js';

const secret = 'TOP SECRET';
const answer =
  (type: string, body: string | Uint8Array, headers: Record<string, string> = {}, status = 200) =>
  (_: unknown, response: ServerResponse): void => {
    response.writeHead(status, { ...(type !== '' && { 'content-type': type }), ...headers });
    response.end(body);
  };
const html = (body: string | Uint8Array, headers?: Record<string, string>) =>
  answer('text/html', body, headers);
const endless =
  (status: number, headers: Record<string, string>) =>
  (_: unknown, response: ServerResponse): void => {
    response.writeHead(status, headers);
    const write = (): void => {
      while (!response.destroyed && response.write('x'.repeat(10_000)));
    };
    response.on('drain', write);
    write();
  };
const redirect = (location: string, status = 302) => answer('', '', { location }, status);

const mill = `<!doctype html><title>The Mill &amp; more</title><base href="/docs/">
<nav><a href="/home">Home</a></nav><script>alert(1)</script>
<main><h1>Mill</h1><p>See <a href="wheel.html">the wheel</a>, <a href="//other.test/x">another</a>,
<a href="mailto:a@b.test">mail</a>.</p><ul><li>a</li></ul></main><footer>Imprint</footer>`;

const site = await openSite({
  '/mill': html(mill),
  '/plain': html('<p>Only a paragraph.'),
  '/empty': html(''),
  '/long': html(`<main><h1>Long</h1>${'<p>The wheel turns.</p>'.repeat(2_000)}</main>`),
  '/text': answer('text/plain; charset=utf-8', 'The wheel\nturns.'),
  '/json': answer('application/problem+json', '{"wheel":1}'),
  '/xml': answer('application/xml', '<?xml version="1.0" encoding="iso-8859-1"?><a>\xe9</a>'),
  '/pdf': answer('application/pdf', '%PDF'),
  '/png': answer('Image/PNG', 'x'),
  '/untyped': answer('', 'x'),
  '/odd-type': answer(`x/${'y'.repeat(500)}`, 'x'),
  '/missing': answer('text/html', secret, {}, 404),
  '/failed': answer('text/html', secret, {}, 503),
  '/not-modified': answer('', '', {}, 304),
  '/gzip': html(gzipSync(mill), { 'content-encoding': 'gzip' }),
  '/deflate': html(deflateSync(mill), { 'content-encoding': 'deflate' }),
  '/br': html(brotliCompressSync(mill), { 'content-encoding': 'br' }),
  '/odd-encoding': html(mill, { 'content-encoding': 'gzip, gzip' }),
  '/not-gzip': html('x'.repeat(100), { 'content-encoding': 'gzip' }),
  '/bomb': html(gzipSync(new Uint8Array(100_000_000)), { 'content-encoding': 'gzip' }),
  '/endless': endless(200, { 'content-type': 'text/plain' }),
  '/endless-pdf': endless(200, { 'content-type': 'application/pdf' }),
  '/endless-redirect': endless(302, { location: '/text' }),
  '/not-br': html('x'.repeat(100), { 'content-encoding': 'br' }),
  '/slow': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.write('The');
  },
  '/slower': (_, response) => void response.write('The'),
  '/silent': () => undefined,
  '/to-mill': redirect('/mill', 301),
  '/to-to-mill': redirect('to-mill', 307),
  '/loop': redirect('/loop'),
  '/to-file': redirect('file:///etc/passwd'),
  '/to-metadata': redirect('http://169.254.169.254/latest/meta-data/'),
  '/to-decimal': redirect('http://2130706433/'),
  '/to-user': redirect('http://user:password@127.0.0.1/'),
  '/to-port': redirect('http://127.0.0.1:22/'),
  '/to-invalid': redirect('http://[::1'),
  '/to-name': (_, response) =>
    void response.writeHead(302, { location: `http://inside.test:${site.port}/mill` }).end(),
  '/latin1': answer('text/html; charset=ISO-8859-1', Buffer.from('<p>caf\xe9', 'latin1')),
  '/meta': html(Buffer.from('<meta charset="windows-1252"><p>\x93caf\xe9\x94', 'latin1')),
  '/undeclared': html(Buffer.from('<p>caf\xe9', 'latin1')),
  '/utf-16': html(Buffer.from('\ufeff<p>café', 'utf16le')),
  '/invalid-utf-8': answer('text/plain; charset="utf-8"', Buffer.from('caf\xe9', 'latin1')),
  '/odd-charset': answer('text/html; charset=klingon', 'x'),
});
afterAll(() => site.close());

const never: LookupFunction = () => {
  throw new Error('A name was resolved.');
};
const local: FetchPageOptions = { allowPrivate: ['127.0.0.1'], ports: [site.port], lookup: never };
const read = (path: string, options: FetchPageOptions = {}, input = {}) =>
  runTool(fetchPage({ ...local, ...options }), { url: site.origin + path, ...input });
const textOfPage = async (path: string): Promise<string> =>
  (await read(path)).text.split('\n\n').slice(1).join('\n\n');
const resolvingTo =
  (...addresses: string[]): LookupFunction =>
  (_, __, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

describe('fetch_page', () => {
  const samples = {
    valid: [{ url: `${site.origin}/mill` }, { url: `${site.origin}/long`, from: 10 }],
    invalid: [{}, { url: '' }, { url: 'x'.repeat(2_001) }, { url: 'http://a', from: -1 }],
  };
  for (const { name, run } of toolContract(() => fetchPage(local), samples)) it(name, run);

  it('returns the main content as Markdown, with absolute links', async () => {
    const { text, output } = await read('/mill');
    expect(text).toBe(
      `The Mill & more\n${site.origin}/mill\n\n# Mill\n\nSee [the wheel](${site.origin}/docs/wheel.html), ` +
        '[another](http://other.test/x), [mail](mailto:a@b.test).\n\n- a',
    );
    const characters = text.length - text.indexOf('# Mill');
    expect(output.details).toEqual({
      ...{ url: `${site.origin}/mill`, title: 'The Mill & more', status: 200, type: 'text/html' },
      ...{ bytes: mill.length, redirects: [], from: 0, to: characters, characters },
    });
  });

  it.each([
    ['/plain', 'Only a paragraph.'],
    ['/empty', '(The page has no text.)'],
    ['/text', 'The wheel\nturns.'],
    ['/json', '{"wheel":1}'],
    ['/gzip', expect.stringContaining('# Mill')],
    ['/deflate', expect.stringContaining('# Mill')],
    ['/br', expect.stringContaining('# Mill')],
    ['/latin1', 'café'],
    ['/meta', '“café”'],
    ['/undeclared', 'café'],
    ['/utf-16', 'café'],
    ['/invalid-utf-8', 'caf\ufffd'],
  ])('reads %s', async (path, expected) => {
    expect(await textOfPage(path)).toEqual(expected);
  });

  it('returns a long page in parts that add up to the whole', async () => {
    const parts: string[] = [];
    for (let from: number | undefined = 0; from !== undefined;) {
      const { text, output } = await read('/long', { maxLength: 10_000 }, { from });
      const { to, characters } = output.details as { to: number; characters: number };
      const [, part = '', note] = /\/long\n\n([^]*)\n\n\[(.*)\]$/u.exec(text) ?? [];
      expect(part.length).toBeLessThanOrEqual(10_000);
      parts.push(part);
      from = to < characters ? to : undefined;
      expect(note).toBe(
        `Characters ${to - part.length} to ${to} of ${characters}.${from === undefined ? '' : ` Continue with from: ${to}.`}`,
      );
    }
    expect(parts.join('')).toBe(`# Long${'\n\nThe wheel turns.'.repeat(2_000)}`);
    await expect(read('/long', {}, { from: 1_000_000 })).rejects.toThrow(/has only \d+ characters/);
  });

  it('follows redirects, and names them', async () => {
    const { output } = await read('/to-to-mill');
    expect(output.details).toMatchObject({
      url: `${site.origin}/mill`,
      redirects: [`${site.origin}/to-to-mill`, `${site.origin}/to-mill`],
    });
    await expect(read('/to-to-mill', { maxRedirects: 1 })).rejects.toThrow('more than 1 times');
    await expect(read('/loop')).rejects.toThrow('redirects more than 5 times');
  });

  it.each([
    ['/pdf', "is of the type 'application/pdf'. Only HTML, text, JSON and XML"],
    ['/png', "is of the type 'image/png'"],
    ['/untyped', 'is without a type'],
    ['/odd-type', /^.{0,200}$/u],
    ['/missing', 'status 404 Not Found'],
    ['/failed', 'status 503 Service Unavailable'],
    ['/not-modified', 'status 304 Not Modified'],
    ['/odd-encoding', 'a compression that is not supported'],
    ['/not-br', 'the compressed data is invalid'],
    ['/not-gzip', 'the compressed data is invalid'],
    ['/odd-charset', "the charset 'klingon', which is not supported"],
  ])('refuses %s', async (path, message) => {
    await expect(read(path)).rejects.toThrow(message);
    await expect(read(path)).rejects.not.toThrow(secret);
  });
});

describe('X17: fetch_page refuses', () => {
  it.each([
    // Loopback, in all notations.
    ['http://127.0.0.1/', 'not public'],
    ['http://127.1/', 'not public'],
    ['http://2130706433/', 'not public'],
    ['http://017700000001/', 'not public'],
    ['http://0x7f000001/', 'not public'],
    ['http://0x7f.0.0.1/', 'not public'],
    ['http://0177.0.0.01/', 'not public'],
    ['http://127.0.0.1./', 'not public'],
    ['http://%31%32%37.0.0.1/', 'not public'],
    ['http://①②⑦.0.0.1/', 'not public'],
    ['http://127。0。0。1/', 'not public'],
    ['http:\\\\127.0.0.1\\', 'not public'],
    ['http:127.0.0.1', 'not public'],
    ['  http://127.0.0.1/  ', 'not public'],
    ['ht\ntp://127.0.0.1/', 'not public'],
    ['http://0/', 'not public'],
    ['http://[::1]/', 'not public'],
    ['http://[::]/', 'not public'],
    ['http://[0:0:0:0:0:0:0:1]/', 'not public'],
    ['http://[::ffff:127.0.0.1]/', 'not public'],
    ['http://[::ffff:7f00:1]/', 'not public'],
    ['http://[::127.0.0.1]/', 'not public'],
    ['http://[64:ff9b::127.0.0.1]/', 'not public'],
    ['http://[2002:7f00:1::]/', 'not public'],
    // Other networks.
    ['https://10.0.0.1/', 'not public'],
    ['https://172.16.0.1/', 'not public'],
    ['https://192.168.0.1/', 'not public'],
    ['https://100.64.0.1/', 'not public'],
    ['http://169.254.169.254/latest/meta-data/', 'not public'],
    ['http://0xa9fea9fe/', 'not public'],
    ['http://[fd00:ec2::254]/', 'not public'],
    ['http://100.100.100.200/', 'not public'],
    ['http://168.63.129.16/', 'not public'],
    ['http://224.0.0.1/', 'not public'],
    ['http://[fe80::1]/', 'not public'],
    ['http://[fc00::1]/', 'not public'],
    ['http://[ff02::1]/', 'not public'],
    // Forms that the URL parser rejects.
    ['http://[fe80::1%25eth0]/', 'not a valid URL'],
    ['http://1.2.3.4.5/', 'not a valid URL'],
    ['http://256.0.0.1/', 'not a valid URL'],
    ['http://example.com:99999/', 'not a valid URL'],
    ['//example.com/', 'not a valid URL'],
    ['example.com', 'not a valid URL'],
    // Schemes, user names, ports.
    ['file:///etc/passwd', 'only http and https'],
    ['ftp://example.com/', 'only http and https'],
    ['javascript:alert(1)', 'only http and https'],
    ['data:text/html,x', 'only http and https'],
    ['http://user@example.com/', 'a user name or a password'],
    ['http://:password@example.com/', 'a user name or a password'],
    ['http://example.com@127.0.0.1/', 'a user name or a password'],
    ['http://127.0.0.1\\@example.com/', 'not public'],
    ['http://example.com:22/', 'port 22 is not allowed'],
    ['https://example.com:8443/', 'port 8443 is not allowed'],
    ['http://example.com:0/', 'port 0 is not allowed'],
  ])('%j: %s', async (url, message) => {
    const ran = runTool(fetchPage({ lookup: never }), { url });
    await expect(ran).rejects.toThrow(message);
    await expect(ran).rejects.not.toThrow(/password@|user@/u);
  });

  it.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', 'fd00::1', '::ffff:127.0.0.1'])(
    'a name that resolves to %s',
    async (address) => {
      const before = site.requests.length;
      const url = `http://inside.test:${site.port}/mill`;
      const tool = fetchPage({ ports: [site.port], lookup: resolvingTo(address) });
      await expect(runTool(tool, { url })).rejects.toThrow(
        "'inside.test' must not be fetched: its address is not public.",
      );
      expect(site.requests).toHaveLength(before);
    },
  );

  it.each([
    ['/to-metadata', 'not public'],
    ['/to-decimal', 'not public'],
    ['/to-file', 'only http and https'],
    ['/to-user', 'a user name or a password'],
    ['/to-port', 'port 22 is not allowed'],
    ['/to-invalid', 'not a valid URL'],
  ])('the redirect %s: %s', async (path, message) => {
    const onlyHere = (url: URL) => url.host === `127.0.0.1:${site.port}` || url.port === '22';
    await expect(read(path, { allowPrivate: onlyHere })).rejects.toThrow(message);
  });

  it('a redirect to a name with a private address, which no earlier connection may serve', async () => {
    const before = site.requests.length;
    const lookup = resolvingTo('127.0.0.1');
    await expect(read('/to-name', { lookup })).rejects.toThrow("'inside.test' must not be fetched");
    expect(site.requests.slice(before)).toEqual(['/to-name']);
    // The same name, allowed for one path only.
    const allowPrivate = ({ pathname }: URL) => pathname === '/to-name';
    const tool = fetchPage({ ports: [site.port], lookup, allowPrivate });
    const url = `http://inside.test:${site.port}/to-name`;
    await expect(runTool(tool, { url })).rejects.toThrow("'inside.test' must not be fetched");
    expect(site.requests.slice(before)).toEqual(['/to-name', '/to-name']);
  });

  it('a name that rebinds: the connection uses the addresses that were checked', () => {
    const answers = [['8.8.8.8', '127.0.0.1', '::1'], ['127.0.0.1'], ['10.0.0.1', '8.8.4.4']];
    const lookup: LookupFunction = (...args) => resolvingTo(...(answers.shift() ?? []))(...args);
    const resolved: unknown[] = [];
    const resolve = (all: boolean) =>
      publicLookup(lookup)('rebind.test', { all }, (error, ...found) =>
        resolved.push(error === null ? found : error.message),
      );
    resolve(true);
    resolve(true);
    resolve(false);
    resolve(true);
    expect(resolved).toEqual([
      [[{ address: '8.8.8.8', family: 4 }]],
      "'rebind.test' must not be fetched: its address is not public.",
      ['8.8.4.4', 4],
      "'rebind.test' must not be fetched: its address is not public.",
    ]);
  });

  it.each(['::1', '[::1]', '0:0::1', 'LOCALHOST'])(
    'private hosts but those allowed: %s',
    async (host) => {
      const hostname = host === 'LOCALHOST' ? 'localhost' : '[::1]';
      // Not refused: the port 1 is closed.
      const tool = fetchPage({
        allowPrivate: [host],
        ports: [1],
        lookup: resolvingTo('127.0.0.1'),
      });
      const ran = runTool(tool, { url: `http://${hostname}:1/` });
      await expect(ran).rejects.toThrow(/the server refuses connections|the connection failed/u);
    },
  );

  it('URLs that the predicate does not allow, after a redirect as well', async () => {
    const isAllowed = ({ pathname }: URL) => pathname === '/to-mill';
    await expect(read('/mill', { isAllowed })).rejects.toThrow('not one of the allowed URLs');
    await expect(read('/to-mill', { isAllowed })).rejects.toThrow("/mill' must not be fetched");
  });

  it.each([
    [{ allowPrivate: 'localhost' }, "'allowPrivate' must be a list of hosts"],
    [{ ports: ['80'] }, "'ports' must be a list of port numbers"],
    [{ maxLength: 20_000 }, "'maxLength' must be a whole number from 100 to 15,000"],
    [{ allow: [] }, "has no option 'allow'"],
  ])('the options %j', (options, message) => {
    expect(() => fetchPage(options as never)).toThrow(message);
  });
});

describe('fetch_page is bounded', () => {
  it.each(['/bomb', '/endless'])('in bytes: %s', async (path) => {
    await expect(read(path)).rejects.toThrow(`${path}' has more than 2000000 bytes.`);
    await site.closed(path);
  });

  it('in bytes: it does not read a response that it refuses or that redirects', async () => {
    await expect(read('/endless-pdf')).rejects.toThrow('application/pdf');
    expect((await read('/endless-redirect')).text).toContain('The wheel');
    await site.closed('/endless-pdf');
    await site.closed('/endless-redirect');
  });

  it.each(['/slow', '/silent'])('in time: %s', async (path) => {
    const scheduler = new VirtualTimeScheduler();
    const ran = runTool(fetchPage(local), { url: site.origin + path }, { scheduler });
    const failed = expect(ran).rejects.toThrow('The page took longer than 20000 ms.');
    await requested(path);
    scheduler.flush();
    await failed;
    await site.closed(path);
  });

  it('I5: unsubscribing closes the connection', async () => {
    const context = lentToolContext({ scheduler: new VirtualTimeScheduler() });
    const url = `${site.origin}/slower`;
    const subscription = fetchPage(local)
      .run$({ url }, context)
      .subscribe({ error: () => undefined });
    await requested('/slower');
    subscription.unsubscribe();
    await site.closed('/slower');
  });

  it('I5: unsubscribing closes a connection that is not established yet', async () => {
    // undici itself would end such a connection after 10 s.
    jest.useFakeTimers({
      doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'setInterval'],
    });
    const connection = withResolve<Socket>();
    const server = createServer(connection.resolve).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const subscription = fetchPage({ ...local, ports: [port] })
      .run$({ url: `https://127.0.0.1:${port}/` }, lentToolContext())
      .subscribe({ error: () => undefined });
    const socket = await connection.promise;
    socket.on('error', () => undefined).resume();
    subscription.unsubscribe();
    await once(socket, 'close');
    jest.useRealTimers();
    server.close();
  });

  it('I5: unsubscribing while a name is resolved ends without a request', async () => {
    const before = site.requests.length;
    const lookups = withResolve<() => void>();
    const lookup: LookupFunction = (_, __, callback) =>
      lookups.resolve(() => callback(null, [{ address: '127.0.0.1', family: 4 }]));
    const subscription = fetchPage({ allowPrivate: () => true, ports: [site.port], lookup })
      .run$({ url: `http://late.test:${site.port}/mill` }, lentToolContext())
      .subscribe({ error: () => undefined });
    const resolve = await lookups.promise;
    subscription.unsubscribe();
    resolve();
    await read('/text');
    expect(site.requests.slice(before)).toEqual(['/text']);
  });

  it('I5: unsubscribing ends the thread that converts', async () => {
    const terminate = jest.spyOn(Worker.prototype, 'terminate');
    const fetched = {
      url: new URL(site.origin),
      status: 200,
      contentType: 'text/html',
      redirects: [],
    };
    article$({ ...fetched, body: Buffer.from('<h1>'.repeat(400_000)) })
      .subscribe()
      .unsubscribe();
    expect(terminate).toHaveBeenCalledTimes(1);
    await terminate.mock.results[0]?.value;
    terminate.mockRestore();
  });

  it('does not block: hostile HTML is converted in a thread', async () => {
    let ticks = 0;
    let isDone = false;
    const tick = (): void => {
      ticks += 1;
      if (!isDone) setImmediate(tick);
    };
    tick();
    const body = Buffer.from(`<main>${'<blockquote>x'.repeat(80_000)}`);
    const fetched = { url: new URL(site.origin), status: 200, contentType: 'text/html', body };
    const { text } = await lastValueFrom(article$({ ...fetched, redirects: [] }));
    isDone = true;
    expect(text.length).toBeGreaterThan(80_000);
    expect(ticks).toBeGreaterThan(100);
  });
});

/** Resolves once the site got a request. */
const requested = async (path: string): Promise<void> => {
  while (!site.requests.includes(path)) await new Promise(setImmediate);
};
