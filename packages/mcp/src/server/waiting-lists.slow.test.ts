import { afterEach, describe, expect, it } from '@jest/globals';
import { type Tool, tool } from 'millrace';
import type { Client } from '@modelcontextprotocol/client';
import { BehaviorSubject, NEVER, Observable, Subject, VirtualTimeScheduler } from 'rxjs';
import {
  clientOf,
  closeAll,
  connected,
  modernMessage,
  overHttp,
  posted,
  ways,
} from './clients.test-support.js';
import { type McpPrompt, type McpResource, mcpHandler, type ServingOptions } from './index.js';
import { createShared } from './serving.js';
import { servingOf } from './serve-options.js';

afterEach(closeAll);

const why = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    (value) => JSON.stringify(value),
    (error: unknown) => String(error),
  );

const use = tool({ name: 'use', description: 'Uses.', run: () => 'used' });

const asked: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  'tools/list': (client) => client.listTools(),
  'tools/call': (client) => client.callTool({ name: 'use', arguments: {} }),
  'resources/list': (client) => client.listResources(),
  'resources/templates/list': (client) => client.listResourceTemplates(),
  'resources/read': (client) => client.readResource({ uri: 'a:b' }),
  'prompts/list': (client) => client.listPrompts(),
  'prompts/get': (client) => client.getPrompt({ name: 'p' }),
  'completion/complete': (client) =>
    client.complete({ ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }),
};
const subscribing = {
  'resources/subscribe': (client: Client) => client.subscribeResource({ uri: 'a:b' }),
};

const absent: ServingOptions = {
  resources: NEVER as Observable<readonly McpResource[]>,
  prompts: NEVER as Observable<readonly McpPrompt[]>,
  resourceUpdates$: NEVER,
};

describe.each(ways)('T24: over %s, a list that is not there yet', (way) => {
  const all = Object.entries({ ...asked, ...(way.endsWith('2025') && subscribing) });

  it.each(all)('is awaited by %s within the limits of calls', async (method, ask) => {
    const { client } = await connected(way, NEVER, {
      ...absent,
      limits: { calls: 1, callsPerClient: 1 },
      timeouts: { toolMs: 100 },
      onError: ({ message }) => message,
    });
    const tooLong = `The answer to ${method} took longer than 100 ms.`;
    const [first, second] = await Promise.all([why(ask(client)), why(ask(client))]);
    expect([first, second].toSorted()).toEqual([
      expect.stringMatching('1 tool calls'),
      expect.stringContaining(tooLong),
    ]);
    // What was held is free again.
    expect(await why(ask(client))).toMatch(tooLong);
  });

  it('is not counted once the list is available: running calls do not keep a client from listing tools', async () => {
    const started$ = new Subject<void>();
    const started = new Promise<void>((resolve) => started$.subscribe(resolve));
    const slow = tool({
      name: 'use',
      description: 'Uses.',
      run: () => {
        started$.next();
        return NEVER;
      },
    });
    const tools$ = new BehaviorSubject([slow]);
    const { client } = await connected(way, tools$, { limits: { calls: 1 } });
    void why(client.callTool({ name: 'use', arguments: {} }));
    await started;
    expect((await client.listTools()).tools).toHaveLength(1);
  });
});

it('T24: a call whose tools arrive late runs, and its headers are checked', async () => {
  const tools$ = new Subject<readonly Tool[]>();
  const url = await overHttp(tools$);
  const message = modernMessage('tools/call', { name: 'use', arguments: {} });
  const answer = posted(url, message);
  setTimeout(() => tools$.next([use]), 100);
  expect((await answer).body).toContain('used');
});

describe('T24: values that the application emits', () => {
  const counted = <T>(values$: Observable<T>) => {
    const count = { now: 0, all: 0 };
    const value$ = new Observable<T>((subscriber) => {
      count.now += 1;
      count.all += 1;
      subscriber.add(() => (count.now -= 1));
      return values$.subscribe(subscriber);
    });
    return { value$, count };
  };

  it.each(ways)('is subscribed to once, over %s', async (way) => {
    const tools = counted(new BehaviorSubject([use]));
    const resources = counted(new BehaviorSubject<readonly McpResource[]>([]));
    const updates = counted(new Subject<string>());
    const { client, serving } = await connected(way, tools.value$, {
      resources: resources.value$,
      resourceUpdates$: updates.value$,
    });
    await client.listTools();
    await client.listResources();
    const once = { now: 1, all: 1 };
    expect([tools.count, resources.count, updates.count]).toEqual([once, once, once]);
    serving.unsubscribe();
    expect([tools.count.now, resources.count.now, updates.count.now]).toEqual([0, 0, 0]);
  });

  it('is announced again after one of its lists has failed', async () => {
    const lists: Subject<readonly Tool[]>[] = [];
    const tools$ = new Observable<readonly Tool[]>((subscriber) => {
      const list$ = new BehaviorSubject<readonly Tool[]>([use]);
      lists.push(list$);
      return list$.subscribe(subscriber);
    });
    const handler = mcpHandler(tools$, { onError: () => undefined });
    const client = clientOf('http 2026');
    const changes: string[] = [];
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      changes.push('changed');
    });
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    await client.connect(
      new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
        fetch: (url, init) => handler.fetch(new Request(url, init)),
      }),
    );
    await client.listen({ toolsListChanged: true });
    const until = async (count: number): Promise<void> => {
      const end = Date.now() + 5_000;
      while (changes.length < count && Date.now() < end) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(changes).toHaveLength(count);
    };
    lists[0]?.next([]);
    await until(1);
    lists[0]?.error(new Error('lost'));
    // It is there again with the next request, which it may have changed before.
    expect((await client.listTools()).tools).toHaveLength(1);
    await until(2);
    lists.at(-1)?.next([]);
    await until(3);
    await client.close();
    handler.close();
  });

  it('as changes of one resource are announced up to ten times a second, by the scheduler of the server', () => {
    const scheduler = new VirtualTimeScheduler();
    const uris$ = new Subject<string>();
    const serving = servingOf('test', [], { resourceUpdates$: uris$, resources: [] });
    const seen: unknown[] = [];
    createShared(serving, scheduler).changes$.subscribe((change) =>
      seen.push([scheduler.now(), change]),
    );
    ['a:b', 'a:b', 'c:d', 'a:b'].forEach((uri) => uris$.next(uri));
    scheduler.flush();
    expect(seen).toEqual([
      [0, { updated: 'a:b' }],
      [0, { updated: 'c:d' }],
      [100, { updated: 'a:b' }],
    ]);
  });
});
