import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

/**
 * A process of its own, since Jest hides the dispatcher of Node from its tests. `Impatient` is the agent of Node with
 * shorter limits than its 5 minutes. The server holds headers or a body back until it is told to release them.
 */
const prelude = `
  import { createServer } from 'node:http';
  import { guardedFetch, nodeFetch } from '@millrace/wire';

  new Headers();
  const key = Symbol.for('undici.globalDispatcher.1');
  const { constructor: Agent } = globalThis[key];
  const use = (dispatcher) => {
    globalThis[key] = dispatcher;
  };
  let dispatched = 0;
  class Impatient extends Agent {
    dispatch(options, handler) {
      dispatched += 1;
      return super.dispatch({ headersTimeout: 50, bodyTimeout: 50, ...options }, handler);
    }
  }
  let release;
  const released = new Promise((resolve) => (release = resolve));
  let connections = 0;
  const server = createServer(async ({ url }, response) => {
    if (url === '/headers') await released;
    response.write('late ');
    if (url === '/body') await released;
    response.end('answer');
  });
  server.on('connection', () => (connections += 1));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = 'http://127.0.0.1:' + server.address().port;
  const ask = (send, path = '/') =>
    send(origin + path, { method: 'POST', body: '{}' })
      .then((response) => response.text())
      .catch((error) => error.cause?.code ?? String(error));
  const askBoth = (send) => Promise.all([ask(send, '/headers'), ask(send, '/body')]);
  const tell = (what) => {
    process.stdout.write(JSON.stringify(what), () => process.exit());
  };
`;

const told = async (script: string): Promise<unknown> => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', prelude + script],
    { cwd: join(import.meta.dirname, '..') },
  );
  return JSON.parse(stdout);
};

describe('C5: the time limits of the fetch of Node', () => {
  const limits = ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'];
  const answers = ['late answer', 'late answer'];

  it('do not apply to headers and pieces of a body that are late', async () => {
    const script = `
      use(new Impatient());
      const patient = Promise.all([
        askBoth(guardedFetch({})),
        askBoth(guardedFetch({ fetch: (input, init) => fetch(input, init) })),
        askBoth(guardedFetch({ fetch: nodeFetch() })),
      ]);
      const impatient = await askBoth(fetch);
      release();
      tell([impatient, await patient, dispatched]);
    `;
    expect(await told(script)).toEqual([limits, [answers, answers, answers], 6]);
  });

  it('apply if the user sets an agent that names them', async () => {
    const script = `
      use(new Agent({ headersTimeout: 50, bodyTimeout: 50 }));
      tell(await askBoth(guardedFetch({})));
    `;
    expect(await told(script)).toEqual(limits);
  });

  it('are lifted without other connections', async () => {
    const script = `
      const send = guardedFetch({});
      for (let count = 0; count < 10; count += 1) await ask(send);
      const own = connections;
      for (let count = 0; count < 10; count += 1) await ask(fetch);
      tell({ own, more: connections - own });
    `;
    // Node opens a second one while the first is not free yet.
    expect(await told(script)).toEqual({ own: expect.any(Number), more: 0 });
  });

  it('are lifted without precedence over a replaced fetch and a dispatcher that it sets', async () => {
    const script = `
      use(new Impatient());
      const mine = new Agent();
      let count = 0;
      mine.dispatch = (options, handler) => {
        count += 1;
        return Agent.prototype.dispatch.call(mine, options, handler);
      };
      const original = fetch;
      globalThis.fetch = (input, init) => original(input, { dispatcher: mine, ...init });
      const proxied = await ask(guardedFetch({}));
      globalThis.fetch = () => Promise.resolve(new Response('mocked'));
      tell([proxied, count, dispatched, await ask(guardedFetch({}))]);
    `;
    expect(await told(script)).toEqual(['late answer', 1, 0, 'mocked']);
  });

  it('are lifted by the dispatcher that knows the handler, and not at all without one', async () => {
    const script = `
      let given;
      const send = guardedFetch({
        fetch: (_, init) => {
          given = init;
          return Promise.resolve(new Response(''));
        },
      });
      const latest = Symbol.for('undici.globalDispatcher.2');
      const asked = [];
      globalThis[latest] = { dispatch: () => asked.push(2) };
      use({ dispatch: () => asked.push(1) });
      await send(origin, {});
      given.dispatcher.dispatch({}, { onRequestStart() {} });
      given.dispatcher.dispatch({}, { onConnect() {} });
      use(undefined);
      globalThis[latest] = undefined;
      await send(origin, {});
      tell([asked, 'dispatcher' in given]);
    `;
    expect(await told(script)).toEqual([[2, 1], false]);
  });
});
