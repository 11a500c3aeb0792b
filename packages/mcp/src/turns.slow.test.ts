import { afterEach, describe, expect, it } from '@jest/globals';
import { tool, type Tool } from 'millrace';
import { BehaviorSubject, firstValueFrom, map, timer } from 'rxjs';
import { mcp, type McpLayer, type McpOptions } from './index.js';
import { hostile, ran } from './servers.test-support.js';
import { serveMcp } from './server/index.js';
import { answer, answering, at, type Message, stream, web } from './web.test-support.js';

const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

const served = async (tools$: BehaviorSubject<readonly Tool[]>): Promise<McpLayer> => {
  const url = await new Promise<string>((resolve) => {
    open.push(
      serveMcp(tools$, { name: 'x', http: { port: 0 } }).subscribe((listening) => {
        if ('url' in listening) resolve(listening.url);
      }),
    );
  });
  const servers = mcp(at(url));
  open.push(servers.servers$.subscribe());
  return servers;
};

const vault = tool({ name: 'vault', description: 'Opens.', run: () => 'gold' });

describe('T20: a list of tools that changes during a turn', () => {
  it.each([
    ['before the result', 0],
    ['long before the result', 400],
  ])('%s: the next request has it', async (_when, waits) => {
    const tools$ = new BehaviorSubject<readonly Tool[]>([]);
    const unlock = tool({
      name: 'unlock',
      description: 'Unlocks.',
      run: () => {
        tools$.next([unlock, vault]);
        return timer(waits).pipe(map(() => 'unlocked'));
      },
    });
    tools$.next([unlock]);
    const { tools } = await ran([await served(tools$)], [['web_unlock']]);
    expect(tools[1]).toEqual(['web_unlock', 'web_vault']);
  });

  it.each([0, 5])('%d ms after the result: the next request has it', async (waits) => {
    let lists = 0;
    let write = (_message: object): void => undefined;
    const url = await web({
      initialize: (message, _request, response) =>
        answer(response, message, {
          protocolVersion: '2025-06-18',
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'x', version: '1' },
        }),
      GET: (_message, _request, response) => {
        write = stream(response);
      },
      'tools/list': (message, _request, response) => {
        lists += 1;
        const names = lists === 1 ? ['use'] : ['use', 'more'];
        const inputSchema = { type: 'object' };
        answer(response, message, { tools: names.map((name) => ({ name, inputSchema })) });
      },
      'tools/call': (message, _request, response) => {
        answer(response, message, { content: [] });
        setTimeout(() => write({ method: 'notifications/tools/list_changed' }), waits);
      },
    });
    const servers = mcp(at(url));
    open.push(servers.servers$.subscribe());
    const { tools } = await ran([servers], [['web_use']]);
    expect(tools[1]).toEqual(['web_use', 'web_more']);
  });

  it('over stdio: the next request has it', async () => {
    const { tools } = await ran([mcp(hostile('renamed'))], [['bad_use']], [['bad_use']]);
    expect(tools).toEqual([
      ['bad_use', 'bad_name1'],
      ['bad_use', 'bad_name2'],
      ['bad_use', 'bad_name3'],
    ]);
  });

  it('X6: and that never stops changing delays a result for a limited time', async () => {
    const start = Date.now();
    const { results } = await ran([mcp(hostile('storm'))], [['bad_use']]);
    expect(results['bad_use']).toBe('ran');
    expect(Date.now() - start).toBeLessThan(8_000);
  }, 15_000);
});

describe('T8: progress and the time limit of a tool', () => {
  /** Reports progress every 50 ms, this many times; then it answers, or reports no more. */
  const reporting = (times: number, answers: boolean, more: unknown = {}): Promise<string> =>
    web({
      'tools/call': (message: Message, _request, response) => {
        const { _meta: meta } = message['params'] as { _meta: { progressToken: number } };
        const write = stream(response);
        let progress = 0;
        const next = (): void => {
          progress += 1;
          if (response.destroyed) return;
          if (progress <= times) {
            const params = { progressToken: meta.progressToken, progress };
            write({ method: 'notifications/progress', params });
            setTimeout(next, 50);
          } else if (answers) {
            write({
              id: message['id'],
              result: { content: [{ type: 'text', text: 'done' }], ...(more as object) },
            });
            response.end();
          }
        };
        next();
      },
    });

  const result = async (url: string, timeouts: McpOptions['timeouts']): Promise<string> => {
    const servers = mcp(at(url, {}, { timeouts: { connectMs: 5_000, ...timeouts } }));
    return (await ran([servers], [['web_use']])).results['web_use'] ?? '';
  };

  it('it does not extend the limit by default', async () => {
    expect(await result(await reporting(20, true), { toolMs: 300 })).toMatch(/300 ms/);
  });

  it('it starts the limit again with renewOnProgress', async () => {
    const renewOnProgress = true;
    expect(await result(await reporting(20, true), { toolMs: 300, renewOnProgress })).toBe('done');
  });

  it('silence ends the run', async () => {
    const url = await reporting(3, false);
    expect(await result(url, { toolMs: 300, renewOnProgress: true })).toMatch(
      /reported no progress within 300 ms/,
    );
  });

  it('endless progress ends with totalMs', async () => {
    const url = await reporting(Infinity, false);
    const timeouts = { toolMs: 300, renewOnProgress: true, totalMs: 700 };
    expect(await result(url, timeouts)).toMatch(/700 ms/);
  });
});

describe('T20: roots', () => {
  it('are sent to the server that asks, and announced when they change', async () => {
    const roots$ = new BehaviorSubject([{ uri: 'file:///one', name: 'One' }]);
    let said = (_message: Message): void => undefined;
    const heard: unknown[] = [];
    let write = (_message: object): void => undefined;
    const url = await web({
      initialize: (message, _request, response) => {
        heard.push((message['params'] as { capabilities: unknown }).capabilities);
        answer(response, message, {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'x', version: '1' },
        });
      },
      GET: (_message, _request, response) => {
        write = stream(response);
      },
      'notifications/roots/list_changed': (_message, _request, response) => {
        response.writeHead(202).end();
        write({ id: 'r', method: 'roots/list' });
      },
      // The answers of the client.
      undefined: (message, _request, response) => {
        response.writeHead(202).end();
        said(message);
      },
      'tools/call': (message, _request, response) => {
        said = ({ result: roots }) => {
          heard.push(roots);
          if (heard.length === 2) roots$.next([{ uri: 'file:///two', name: 'Two' }]);
          else answer(response, message, { content: [] });
        };
        write({ id: 'q', method: 'roots/list' });
      },
    });
    const servers = mcp(at(url, {}, { roots: roots$ }));
    open.push(servers.servers$.subscribe());
    await ran([servers], [['web_use']]);
    expect(heard).toMatchObject([
      { roots: { listChanged: true } },
      { roots: [{ uri: 'file:///one', name: 'One' }] },
      { roots: [{ uri: 'file:///two', name: 'Two' }] },
    ]);
  });

  it('that are no file URLs are refused', async () => {
    const url = await answering({});
    const servers = mcp(
      at(url, {}, { roots: new BehaviorSubject([{ uri: 'https://a.example' }]) }),
    );
    expect(() => mcp(at(url, {}, { roots: [{ uri: '/work' }] }))).toThrow(/file URL/);
    expect((await ran([servers])).warnings).toEqual([expect.stringContaining('pathToFileURL')]);
  });
});

describe('T20: a page that a server requires first (-32042)', () => {
  const page = {
    mode: 'url',
    url: 'https://bank.example/login',
    message: 'Log in.',
    elicitationId: 'e1',
  };

  const requiring = async (elicitations: unknown, completes = true) => {
    const seen = { calls: 0 };
    let write = (_message: object): void => undefined;
    const url = await web({
      GET: (_message, _request, response) => {
        write = stream(response);
      },
      'tools/call': (message, _request, response) => {
        seen.calls += 1;
        if (seen.calls > 1 && completes) {
          answer(response, message, { content: [{ type: 'text', text: 'paid' }] });
          return;
        }
        const error = { code: -32042, message: 'Log in first.', data: { elicitations } };
        stream(response)({ id: message['id'], error });
        response.end();
      },
    });
    const complete = (): void =>
      write({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
    return { url, seen, complete };
  };

  it('is opened by the user, and the tool call is repeated once it is completed', async () => {
    const { url, seen, complete } = await requiring([page]);
    const shown: unknown[] = [];
    const onElicitUrl = (request: unknown) => {
      shown.push(request);
      setTimeout(complete, 50);
      return timer(10).pipe(map(() => true));
    };
    const servers = mcp(at(url, {}, { onElicitUrl }));
    open.push(servers.servers$.subscribe());
    expect((await ran([servers], [['web_use']])).results['web_use']).toBe('paid');
    expect(shown).toEqual([{ url: page.url, message: 'Log in.' }]);
    expect(seen.calls).toBe(2);
  });

  it.each<[what: string, elicitations: unknown, accepts: boolean, calls: number, text: RegExp]>([
    ['that the user declines', [page], false, 1, /did not open the page/],
    ['that is no web page', [{ ...page, url: 'file:///etc/passwd' }], true, 1, /cannot be shown/],
    ['of no form', 'none', true, 1, /Log in first/],
  ])('%s: the tool call fails', async (_what, elicitations, accepts, calls, message) => {
    const { url, seen, complete } = await requiring(elicitations);
    const onElicitUrl = () => {
      setTimeout(complete, 20);
      return timer(0).pipe(map(() => accepts));
    };
    const { results } = await ran([mcp(at(url, {}, { onElicitUrl }))], [['web_use']]);
    expect(results['web_use']).toMatch(message);
    expect(seen.calls).toBe(calls);
  });

  it('of many: five are shown', async () => {
    const { url, complete } = await requiring(Array.from({ length: 8 }, () => page));
    let shown = 0;
    const onElicitUrl = () => {
      shown += 1;
      setTimeout(complete, 20);
      return timer(0).pipe(map(() => true));
    };
    const servers = mcp(at(url, {}, { onElicitUrl }));
    open.push(servers.servers$.subscribe());
    await ran([servers], [['web_use']]);
    expect(shown).toBe(5);
  });

  it('again and again: the tool call is repeated once', async () => {
    const { url, seen, complete } = await requiring([page], false);
    const onElicitUrl = () => {
      setTimeout(complete, 20);
      return timer(0).pipe(map(() => true));
    };
    const servers = mcp(at(url, {}, { onElicitUrl }));
    open.push(servers.servers$.subscribe());
    const { results } = await ran([servers], [['web_use']]);
    expect(results['web_use']).toContain('Log in first.');
    expect(seen.calls).toBe(2);
  });

  it('without onElicitUrl: the model reads what the server says', async () => {
    const { url, seen } = await requiring([page]);
    expect((await ran([mcp(at(url))], [['web_use']])).results['web_use']).toContain(
      'Log in first.',
    );
    expect(seen.calls).toBe(1);
  });
});

describe('T20: requests of the application', () => {
  const resourceful = async () => {
    let version = 1;
    const calls: string[] = [];
    let write = (_message: object): void => undefined;
    const url = await web({
      initialize: (message, _request, response) =>
        answer(response, message, {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {}, completions: {}, prompts: {}, resources: { subscribe: true } },
          serverInfo: { name: 'x', version: '1' },
        }),
      GET: (_message, _request, response) => {
        write = stream(response);
      },
      'resources/subscribe': (message, _request, response) => {
        calls.push('subscribe');
        answer(response, message, {});
      },
      'resources/unsubscribe': (message, _request, response) => {
        calls.push('unsubscribe');
        answer(response, message, {});
      },
      'resources/read': (message, _request, response) => {
        calls.push('read');
        answer(response, message, { contents: [{ uri: 'a:b', text: `v${version}` }] });
      },
      'completion/complete': (message, _request, response) => {
        const params = message['params'] as { argument: { value: string } };
        const all = ['python', 'pytorch', 7].filter((it) =>
          String(it).startsWith(params.argument.value),
        );
        answer(response, message, { completion: { values: [...all, 7], total: 2, hasMore: null } });
      },
    });
    const change = (uri = 'a:b'): void => {
      version += 1;
      write({ method: 'notifications/resources/updated', params: { uri } });
    };
    return { url, calls, change };
  };

  it('resource$ emits a resource now and after each change', async () => {
    const { url, calls, change } = await resourceful();
    const seen: unknown[] = [];
    const servers = mcp(at(url));
    open.push(servers.servers$.subscribe());
    const followed = servers.resource$('web', 'a:b').subscribe(([part]) => seen.push(part?.text));
    const until = async (length: number): Promise<void> => {
      while (seen.length < length) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await until(1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    change('other:uri');
    // A storm is one reading.
    for (let storm = 0; storm < 1_000; storm += 1) change();
    await until(2);
    followed.unsubscribe();
    while (!calls.includes('unsubscribe')) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(new Set(seen)).toEqual(new Set(['v1', 'v1002']));
    expect(calls.filter((call) => call === 'read').length).toBeLessThanOrEqual(3);
  });

  it('complete$ emits the suggestions for an argument', async () => {
    const { url } = await resourceful();
    const request = { prompt: 'review', argument: 'language', value: 'py' };
    expect(await firstValueFrom(mcp(at(url)).complete$('web', request))).toEqual({
      values: ['python', 'pytorch'],
      total: 2,
      hasMore: false,
    });
  });

  it('of an unknown server, or one that cannot be reached, error', async () => {
    const servers = mcp(at('http://127.0.0.1:1/'));
    await expect(firstValueFrom(servers.resource$('other', 'a:b'))).rejects.toMatchObject({
      code: 'config',
    });
    await expect(firstValueFrom(servers.resource$('web', 'a:b'))).rejects.toMatchObject({
      code: 'connection',
    });
  });
});
