import { afterEach, describe, expect, it } from '@jest/globals';
import { tool } from 'millrace';
import { firstValueFrom, Subject } from 'rxjs';
import { type HttpFetch, mcp } from './index.js';
import { serveMcp } from './server/index.js';
import { type Answer, answer, at, closeLatest, stream, web } from './web.test-support.js';

const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

const until = async (isDone: () => boolean): Promise<void> => {
  const end = Date.now() + 5_000;
  while (!isDone()) {
    if (Date.now() > end) throw new Error('It did not happen within 5 seconds.');
    await pause(10);
  }
};

/** A server of the version of 2026-07-28, whose resource changes. */
const modern = async () => {
  const change$ = new Subject<string>();
  let version = 0;
  const url = await new Promise<string>((resolve) => {
    open.push(
      serveMcp([], {
        http: { port: 0 },
        resources: [{ uri: 'a:b', name: 'A', read: () => `v${version}` }],
        resourceUpdates$: change$,
      }).subscribe((listening) => {
        if ('url' in listening) resolve(listening.url);
      }),
    );
  });
  const methods: string[] = [];
  const counted: HttpFetch = (target, request) => {
    methods.push(/"method":"([^"]+)"/.exec(request.body ?? '')?.[1] ?? request.method);
    return fetch(target, request);
  };
  const change = (): void => {
    version += 1;
    change$.next('a:b');
  };
  return { url, methods, counted, change };
};

/** A server of the version of 2025-11-25, which forgets a subscription at the first end of it. */
const legacy = async () => {
  const methods: string[] = [];
  let version = 0;
  let isSubscribed = false;
  let announce: (message: object) => void = () => undefined;
  const counting =
    (method: string, act: () => unknown): Answer =>
    (message, _request, response) => {
      methods.push(method);
      answer(response, message, act());
    };
  const url = await web({
    initialize: (message, _request, response) =>
      answer(response, message, {
        protocolVersion: '2025-11-25',
        capabilities: { resources: { subscribe: true } },
        serverInfo: { name: 'web', version: '1' },
      }),
    GET: (_message, _request, response) => (announce = stream(response)),
    'resources/subscribe': counting('resources/subscribe', () => {
      isSubscribed = true;
      return {};
    }),
    'resources/unsubscribe': counting('resources/unsubscribe', () => {
      isSubscribed = false;
      return {};
    }),
    'resources/read': counting('resources/read', () => ({
      contents: [{ uri: 'a:b', text: `v${version}` }],
    })),
  });
  const change = (): void => {
    version += 1;
    if (isSubscribed)
      announce({ method: 'notifications/resources/updated', params: { uri: 'a:b' } });
  };
  return { url, methods, counted: fetch, change };
};

describe('T20: resources that are followed', () => {
  it.each([
    ['2026-07-28', modern, 'subscriptions/listen'],
    ['2025-11-25', legacy, 'resources/subscribe'],
  ])(
    'have one subscription, which lasts for the others if one leaves: %s',
    async (_version, start, method) => {
      const { url, methods, counted, change } = await start();
      const servers = mcp(at(url, { fetch: counted }, { reconnect: { backoffMs: 20 } }));
      open.push(servers.servers$.subscribe());
      const seen: string[] = [];
      const followedBy = (name: string) =>
        servers.resource$('web', 'a:b').subscribe(([part]) => seen.push(`${name} ${part?.text}`));
      const [first, second] = [followedBy('first'), followedBy('second')];
      open.push(second);
      await until(() => seen.length === 2);
      await pause(200);
      change();
      await until(() => seen.length === 4);
      first.unsubscribe();
      await pause(200);
      change();
      await until(() => seen.includes('second v2'));
      expect(seen.toSorted()).toEqual([
        'first v0',
        'first v1',
        'second v0',
        'second v1',
        'second v2',
      ]);
      expect(methods.filter((it) => it === method)).toHaveLength(1);
    },
  );

  it('are read from a server that could not be reached before', async () => {
    const url = await web();
    await closeLatest();
    const servers = mcp(at(url));
    await expect(firstValueFrom(servers.resource$('web', 'a:b'))).rejects.toMatchObject({
      code: 'connection',
    });
    const use = tool({ name: 'use', description: 'Uses.', run: () => 'used' });
    const { port, pathname: path } = new URL(url);
    const resources = [{ uri: 'a:b', name: 'A', read: () => 'content' }];
    const serving = serveMcp([use], { http: { port: Number(port), path }, resources });
    await new Promise<void>((resolve) => open.push(serving.subscribe(() => resolve())));
    expect(await firstValueFrom(servers.resource$('web', 'a:b'))).toEqual([
      { uri: 'a:b', text: 'content' },
    ]);
  });
});
