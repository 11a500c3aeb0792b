import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { filter, firstValueFrom, map, of, ReplaySubject, scan, take, toArray } from 'rxjs';
import { mcp, type McpLayer, type McpOptions } from './index.js';
import { ran } from './servers.test-support.js';
import { type Answer, answer, at, type Message, send, stream, web } from './web.test-support.js';

const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

const whole = { resultType: 'complete' };
const fresh = { ttlMs: 0, cacheScope: 'private' };
const subscription = 'io.modelcontextprotocol/subscriptionId';
const said = { ...whole, content: [{ type: 'text', text: 'use ran' }] };
const toolsOf = (...names: readonly string[]): object => ({
  ...whole,
  ...fresh,
  tools: names.map((name) => ({ name, description: 'Is it.', inputSchema: { type: 'object' } })),
});

interface Listening {
  readonly filter: unknown;
  readonly announce: (method: string, params?: object) => void;
  readonly end: () => void;
}

interface Modern {
  readonly url: string;
  readonly calls: string[];
  readonly listening$: ReplaySubject<Listening>;
}

/** A server of 2026-07-28, which has no sessions: changes come on streams that clients ask for. */
const modern = async (
  other: Readonly<Record<string, Answer>> = {},
  capabilities: object = { tools: { listChanged: true }, resources: { subscribe: true } },
): Promise<Modern> => {
  const calls: string[] = [];
  const listening$ = new ReplaySubject<Listening>(10);
  const listen: Answer = (message, _request, response: ServerResponse) => {
    const write = stream(response);
    const _meta = { [subscription]: message['id'] };
    const { notifications } = message['params'] as { notifications: object };
    write({ method: 'notifications/subscriptions/acknowledged', params: { notifications, _meta } });
    listening$.next({
      filter: notifications,
      announce: (method, params = {}) => write({ method, params: { ...params, _meta } }),
      end: () => response.destroy(),
    });
  };
  const answers: Readonly<Record<string, Answer>> = {
    'server/discover': (message, _request, response) =>
      answer(response, message, {
        ...whole,
        ...fresh,
        supportedVersions: ['2026-07-28'],
        capabilities,
      }),
    'tools/list': (message, _request, response) => answer(response, message, toolsOf('use')),
    'tools/call': (message, _request, response) => answer(response, message, said),
    'subscriptions/listen': listen,
    ...other,
  };
  const url = await web(
    Object.fromEntries(
      Object.entries(answers).map(([method, act]): [string, Answer] => [
        method,
        (...all) => {
          calls.push(method);
          act(...all);
        },
      ]),
    ),
  );
  return { url, calls, listening$ };
};

const held = (url: string, options: Partial<McpOptions> = {}): McpLayer => {
  const servers = mcp(at(url, {}, options));
  open.push(servers.servers$.subscribe());
  return servers;
};

const use = async (servers: McpLayer): Promise<string> =>
  (await ran([servers], [['web_use']])).results['web_use'] ?? '';

const names = (servers: McpLayer, count: number): Promise<unknown> =>
  firstValueFrom(
    servers.servers$.pipe(
      map(([server]) => server?.tools.map(({ name }) => name) ?? []),
      filter((all) => all.length === count),
    ),
  );

describe('T20: a server of 2026-07-28', () => {
  it('announces a changed list, also after its stream has broken, and what changed meanwhile is there', async () => {
    const tools = ['use'];
    const { url, listening$ } = await modern({
      'tools/list': (message, _request, response) => answer(response, message, toolsOf(...tools)),
    });
    const servers = held(url);
    await names(servers, 1);
    const first = await firstValueFrom(listening$);
    expect(first.filter).toEqual({ toolsListChanged: true });
    tools.push('two');
    first.announce('notifications/tools/list_changed');
    await names(servers, 2);
    tools.push('three');
    first.end();
    await names(servers, 3);
    const [, second] = await firstValueFrom(listening$.pipe(take(2), toArray()));
    tools.push('four');
    second?.announce('notifications/tools/list_changed');
    await names(servers, 4);
  });

  it('X6: whose streams end immediately is not asked for them in a loop', async () => {
    const { url, calls } = await modern({
      'subscriptions/listen': (_message, _request, response) => send(response, 500),
    });
    const servers = held(url, { reconnect: { backoffMs: 200, maxBackoffMs: 200 } });
    for (let round = 0; round < 3; round += 1) expect(await use(servers)).toBe('use ran');
    expect(calls.filter((call) => call === 'subscriptions/listen').length).toBeLessThan(10);
  });

  it('announces changes of a resource, also after its stream has broken', async () => {
    let version = 0;
    const { url, listening$ } = await modern(
      {
        'resources/read': (message, _request, response) =>
          answer(response, message, {
            ...whole,
            ...fresh,
            contents: [{ uri: 'a:b', text: `version ${(version += 1)}` }],
          }),
      },
      { resources: { subscribe: true } },
    );
    const servers = held(url);
    const seen$ = new ReplaySubject<string>(10);
    open.push(
      servers
        .resource$('web', 'a:b')
        .pipe(map(([part]) => part?.text ?? ''))
        .subscribe(seen$),
    );
    const first = await firstValueFrom(listening$);
    expect(first.filter).toEqual({ resourceSubscriptions: ['a:b'] });
    await firstValueFrom(seen$);
    first.announce('notifications/resources/updated', { uri: 'a:b' });
    await firstValueFrom(
      seen$.pipe(
        scan((count) => count + 1, 0),
        filter((count) => count === 2),
      ),
    );
    first.end();
    const [, second] = await firstValueFrom(listening$.pipe(take(2), toArray()));
    second?.announce('notifications/resources/updated', { uri: 'a:b' });
    await firstValueFrom(
      seen$.pipe(
        scan((count) => count + 1, 0),
        filter((count) => count === 3),
      ),
    );
  });

  it('that switches to the version of 2025, or back, is connected again', async () => {
    let isModern = true;
    const refuse: Answer = (message, _request, response) =>
      send(response, 400, {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32_000, message: 'Bad Request: No valid session ID provided' },
      });
    const only =
      (modernOnes: boolean, act: Answer): Answer =>
      (...all) =>
        (isModern === modernOnes ? act : refuse)(...all);
    const isOfSession = (request: { headers: NodeJS.Dict<unknown> }): boolean =>
      request.headers['mcp-session-id'] !== undefined;
    const either =
      (result: object): Answer =>
      (message, request, response) =>
        isModern === isOfSession(request)
          ? refuse(message, request as never, response)
          : answer(response, message, result);
    const { url } = await modern({
      'server/discover': only(true, (message, _request, response) =>
        answer(response, message, {
          ...whole,
          ...fresh,
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
        }),
      ),
      initialize: only(false, (message: Message, _request, response) =>
        send(response, 200, {
          jsonrpc: '2.0',
          id: message['id'],
          result: {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {} },
            serverInfo: { name: 'x', version: '1' },
          },
        }),
      ),
      'tools/list': either(toolsOf('use')),
      'tools/call': either(said),
    });
    const servers = held(url, {});
    for (const next of [true, false, true, false]) {
      isModern = next;
      expect(await use(servers)).toBe('use ran');
    }
  });

  it.each([true, false])(
    'asks the user to open a page (accepted: %j), and is asked again with the answer',
    async (isOpened) => {
      const pages: unknown[] = [];
      const params: Message[] = [];
      const { url } = await modern({
        'tools/call': (message, _request, response) => {
          params.push(message['params'] as Message);
          const answered = params.at(-1)?.['inputResponses'];
          const page = {
            mode: 'url',
            message: 'Log\u001b[2K in.',
            url: 'https://example.com/login',
            elicitationId: 'e1',
          };
          answer(
            response,
            message,
            answered === undefined
              ? {
                  resultType: 'input_required',
                  inputRequests: { q: { method: 'elicitation/create', params: page } },
                  requestState: 's',
                }
              : { ...whole, content: [{ type: 'text', text: JSON.stringify(answered) }] },
          );
        },
      });
      const servers = held(url, {
        onElicitUrl: (request) => {
          pages.push(request);
          return of(isOpened);
        },
      });
      expect(await use(servers)).toContain(isOpened ? '"accept"' : '"decline"');
      expect(pages).toEqual([{ message: 'Log[2K in.', url: 'https://example.com/login' }]);
    },
  );

  it('gets the error -32042 shown to the user, and nothing runs again if the page stays closed', async () => {
    const pages: unknown[] = [];
    const page = {
      mode: 'url',
      message: 'Log in.',
      url: 'https://example.com/',
      elicitationId: 'e1',
    };
    const { url, calls } = await modern({
      'tools/call': (message, _request, response) => {
        const error = { code: -32_042, message: 'Log in first.', data: { elicitations: [page] } };
        send(response, 200, { jsonrpc: '2.0', id: message['id'], error });
      },
    });
    const servers = held(url, {
      onElicitUrl: (request) => {
        pages.push(request);
        return of(false);
      },
    });
    expect(await use(servers)).toContain('did not open the page');
    expect(pages).toEqual([{ message: 'Log in.', url: 'https://example.com/' }]);
    expect(calls.filter((call) => call === 'tools/call')).toHaveLength(1);
  });
});
