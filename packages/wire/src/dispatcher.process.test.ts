import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

/**
 * Runs in a process of its own, because it replaces the connections of `fetch`. The server holds headers or a body back
 * until `release`; `Impatient` is Node's agent with limits of 50 ms instead of 5 minutes.
 */
const prelude = `
  import { createServer } from 'node:http';
  import { connect } from 'node:net';
  import { defaultCaps, exchange$ } from '@millrace/wire';
  import { openDemand } from 'millrace';
  import { asyncScheduler, lastValueFrom, toArray } from 'rxjs';

  const key = Symbol.for('undici.globalDispatcher.1');
  const events = (text) =>
    'data: ' + JSON.stringify({ type: 'text', text }) + '\\n\\n' +
    'data: {"type":"finish","finish":"stop"}\\n\\n';
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const ports = new Set();
  const server = createServer(async (request, response) => {
    ports.add(request.socket.remotePort);
    if (request.url === '/headers') await released;
    response.write(': hello\\n\\n');
    if (request.url === '/body') await released;
    response.end(events('real'));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = 'http://127.0.0.1:' + server.address().port;
  const exchange = (path, fetch) => ({
    vendor: 'Acme',
    secrets: [],
    caps: defaultCaps,
    fetch,
    request: () => ({ url: origin + path, headers: { 'x-key': 'k' }, body: '{}' }),
    read: ({ data }) => [data],
    readWhole: () => [],
  });
  const ask = (path = '/', fetch) =>
    lastValueFrom(
      exchange$(exchange(path, fetch), { demand: openDemand, scheduler: asyncScheduler }).pipe(toArray()),
    ).then(([first]) => first.text, (error) => error.code + ': ' + error.message);
  const askLate = (fetch) => Promise.all([ask('/headers', fetch), ask('/body', fetch)]);
  const nodeAgent = () => {
    new Response();
    return globalThis[key].constructor;
  };
  const tell = (what) => process.stdout.write(JSON.stringify(what), () => process.exit());
`;

const told = async (script: string): Promise<unknown> => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', prelude + script],
    { cwd: join(import.meta.dirname, '..') },
  );
  return JSON.parse(stdout);
};

describe('the connections of fetch', () => {
  it('are used, also before fetch was', async () => {
    const script = `
      // undici keeps a connection back for a turn of the event loop.
      const idle = async () => {
        for (let turn = 0; turn < 3; turn += 1) await new Promise((give) => setImmediate(give));
      };
      const answers = [await ask()];
      await idle();
      answers.push(await ask());
      await idle();
      await (await fetch(origin, { method: 'POST', body: '{}' })).text();
      tell([answers, ports.size]);
    `;
    expect(await told(script)).toEqual([['real', 'real'], 1]);
  });

  it('C5: have no time limits of their own', async () => {
    const script = `
      const Agent = nodeAgent();
      let dispatched = 0;
      globalThis[key] = new (class extends Agent {
        dispatch(options, handler) {
          dispatched += 1;
          return super.dispatch({ headersTimeout: 50, bodyTimeout: 50, ...options }, handler);
        }
      })();
      const patient = Promise.all([askLate(), askLate((input, init) => fetch(input, init))]);
      const codeOf = (path) =>
        fetch(origin + path, { method: 'POST' })
          .then((response) => response.text())
          .catch((error) => error.cause.code);
      const impatient = await Promise.all(['/headers', '/body'].map(codeOf));
      release();
      tell([impatient, await patient, dispatched]);
    `;
    const late = ['real', 'real'];
    expect(await told(script)).toEqual([
      ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
      [late, late],
      6,
    ]);
  });

  it('C5: keep the limits that an agent sets', async () => {
    const script = `
      globalThis[key] = new (nodeAgent())({ headersTimeout: 50, bodyTimeout: 50 });
      tell(await askLate());
    `;
    expect(await told(script)).toEqual([
      expect.stringMatching(/^timeout: .*UND_ERR_HEADERS_TIMEOUT/),
      expect.stringMatching(/^timeout: .*UND_ERR_BODY_TIMEOUT/),
    ]);
  });

  it('give way to a fetch that replaced the global one, at any time', async () => {
    const script = `
      const original = fetch;
      const before = await ask();
      const seen = [];
      globalThis.fetch = (input, init) => {
        seen.push(init.method, new Headers(init.headers).get('x-key'));
        return original(input, init);
      };
      const passed = await ask();
      globalThis.fetch = () => Promise.resolve(new Response(events('mocked')));
      const mocked = await ask();
      globalThis.fetch = original;
      tell([before, passed, mocked, await ask(), seen]);
    `;
    expect(await told(script)).toEqual(['real', 'real', 'mocked', 'real', ['POST', 'k']]);
  });

  it('give way to a dispatcher that a replaced fetch sets', async () => {
    const script = `
      const Agent = nodeAgent();
      const mine = new Agent();
      let count = 0;
      mine.dispatch = (options, handler) => {
        count += 1;
        return Agent.prototype.dispatch.call(mine, options, handler);
      };
      const original = fetch;
      globalThis.fetch = (input, init) => original(input, { dispatcher: mine, ...init });
      tell([await ask(), count]);
    `;
    expect(await told(script)).toEqual(['real', 1]);
  });

  it('report an error of the dispatcher itself', async () => {
    const script = `
      new Response();
      globalThis[key] = { dispatch: () => { throw new Error('no luck'); } };
      const thrown = await ask();
      globalThis[key] = { dispatch: (_, handler) => handler.onError(new Error('no pool')) };
      tell([thrown, await ask()]);
    `;
    expect(await told(script)).toEqual([
      expect.stringMatching(/^connection: Acme at 127.0.0.1/),
      expect.stringMatching(/^connection: Acme at 127.0.0.1/),
    ]);
  });
});

describe.each(['undici6', 'undici7'])('%s', (undici) => {
  it('its mocks answer, immediately or late, and fail', async () => {
    const script = `
      import { MockAgent, setGlobalDispatcher } from '${undici}';
      const mocks = new MockAgent();
      mocks.disableNetConnect();
      setGlobalDispatcher(mocks);
      const pool = mocks.get(origin);
      const path = '/v1';
      const seen = [];
      pool.intercept({ path, method: 'POST', headers: { 'x-key': 'k' } }).reply(200, ({ body }) => {
        seen.push(body);
        return events('mocked');
      });
      const answers = [await ask(path)];
      pool.intercept({ path, method: 'POST' }).reply(200, events('late')).delay(20);
      answers.push(await ask(path));
      pool.intercept({ path, method: 'POST' }).reply(429, { error: { message: 'slow down' } });
      answers.push(await ask(path));
      pool.intercept({ path, method: 'POST' }).replyWithError(new Error('gone'));
      answers.push(await ask(path), await ask('/other'));
      tell([answers, seen, ports.size]);
    `;
    expect(await told(script)).toEqual([
      [
        'mocked',
        'late',
        expect.stringMatching(/^rateLimited: .*slow down/),
        expect.stringMatching(/^connection/),
        expect.stringMatching(/^connection/),
      ],
      ['{}'],
      0,
    ]);
  });

  it('its proxy is used', async () => {
    const script = `
      import { ProxyAgent, setGlobalDispatcher } from '${undici}';
      const tunnels = [];
      const proxy = createServer();
      proxy.on('connect', ({ url }, socket) => {
        tunnels.push('http://' + url);
        const { hostname, port } = new URL('http://' + url);
        const target = connect(Number(port), hostname, () => {
          socket.write('HTTP/1.1 200 OK\\r\\n\\r\\n');
          target.pipe(socket).pipe(target);
        });
      });
      await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
      const uri = 'http://127.0.0.1:' + proxy.address().port;
      setGlobalDispatcher(new ProxyAgent({ uri, proxyTunnel: true }));
      tell([await ask(), tunnels.every((url) => url === origin), tunnels.length]);
    `;
    expect(await told(script)).toEqual(['real', true, 1]);
  });

  it('repeated headers come through its interceptors', async () => {
    const script = `
      import { Agent, interceptors, setGlobalDispatcher } from '${undici}';
      server.removeAllListeners('request');
      server.on('request', (_, response) => {
        response.writeHead(429, [['retry-after', '7'], ['x-request-id', 'a'], ['x-request-id', 'b']]).end('{}');
      });
      setGlobalDispatcher(new Agent().compose((dispatch) => dispatch));
      const failed = await lastValueFrom(
        exchange$(exchange('/'), { demand: openDemand, scheduler: asyncScheduler }),
      ).catch((error) => error);
      tell([failed.retryAfterMs, failed.requestId]);
    `;
    expect(await told(script)).toEqual([7_000, 'a, b']);
  });

  it('its interceptors are used', async () => {
    const script = `
      import { Agent, interceptors, setGlobalDispatcher } from '${undici}';
      let count = 0;
      const counting = (dispatch) => (options, handler) => {
        count += 1;
        return dispatch(options, handler);
      };
      setGlobalDispatcher(new Agent().compose(counting, interceptors.retry()));
      tell([await ask(), count]);
    `;
    expect(await told(script)).toEqual(['real', 1]);
  });
});
