import { afterEach, describe, expect, it } from '@jest/globals';
import {
  createAgent,
  interruptOn,
  type Suspension,
  suspensionsIn,
  textOf,
  toolResults,
} from '@millrace/core';
import { sessions } from '@millrace/core/sessions';
import { scriptedModel, text, toolCall } from '@millrace/core/testing';
import { filter, firstValueFrom, of, Subject } from 'rxjs';
import { mcp, type McpLayer, type McpOptions } from './index.js';
import { ran } from './servers.test-support.js';
import { type Answer, answer, at, type Message, web } from './web.test-support.js';

const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

const paramsOf = (message: Message): Readonly<Record<string, unknown>> =>
  message['params'] as Readonly<Record<string, unknown>>;

interface Shop {
  readonly url: string;
  /** The methods that were called for tasks. */
  readonly calls: string[];
  /** Lets the task be as told from the next poll on. */
  readonly now: { state: Readonly<Record<string, unknown>>; result: unknown };
  readonly inputs: unknown[];
  readonly polled$: Subject<void>;
}

const done = { content: [{ type: 'text', text: 'baked' }] };

/** A server of 2025-11-25 whose tool runs as a task. */
const shop = async (taskSupport = 'required'): Promise<Shop> => {
  const shop = {
    calls: [] as string[],
    now: { state: { status: 'working' }, result: done as unknown },
    inputs: [] as unknown[],
    polled$: new Subject<void>(),
  };
  const task = () => ({
    taskId: 't1',
    ttl: null,
    createdAt: '2026-01-01T00:00:00Z',
    lastUpdatedAt: '2026-01-01T00:00:00Z',
    pollInterval: 100,
    ...shop.now.state,
  });
  const noted =
    (act: Answer): Answer =>
    (message, request, response) => {
      shop.calls.push(String(message['method']));
      act(message, request, response);
    };
  const url = await web({
    initialize: (message, _request, response) =>
      answer(response, message, {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
        serverInfo: { name: 'web', version: '1' },
      }),
    'tools/list': (message, _request, response) =>
      answer(response, message, {
        tools: [
          {
            name: 'bake',
            description: 'Bakes.',
            inputSchema: { type: 'object' },
            execution: { taskSupport },
          },
        ],
      }),
    'tools/call': noted((message, _request, response) =>
      answer(response, message, paramsOf(message)['task'] === undefined ? done : { task: task() }),
    ),
    'tasks/get': noted((message, _request, response) => {
      answer(response, message, task());
      shop.polled$.next();
    }),
    'tasks/result': noted((message, _request, response) =>
      answer(response, message, shop.now.result),
    ),
    'tasks/cancel': noted((message, _request, response) => {
      shop.now.state = { status: 'cancelled' };
      answer(response, message, task());
    }),
  });
  return { url, ...shop };
};

/** A server of 2026-07-28, which decides that a tool call is a task. */
const modernShop = async (): Promise<Shop> => {
  const shop = {
    calls: [] as string[],
    now: {
      state: { status: 'working' } as Readonly<Record<string, unknown>>,
      result: done as unknown,
    },
    inputs: [] as unknown[],
    polled$: new Subject<void>(),
  };
  const whole = (result: object) => ({ resultType: 'complete', ...result });
  const task = () => ({
    taskId: 't1',
    ttlMs: null,
    createdAt: '2026-01-01T00:00:00Z',
    lastUpdatedAt: '2026-01-01T00:00:00Z',
    pollIntervalMs: 100,
    ...shop.now.state,
  });
  const noted =
    (act: Answer): Answer =>
    (message, request, response) => {
      shop.calls.push(String(message['method']));
      act(message, request, response);
    };
  const url = await web({
    'server/discover': (message, _request, response) =>
      answer(
        response,
        message,
        whole({
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
          ttlMs: 0,
          cacheScope: 'private',
        }),
      ),
    'tools/list': (message, _request, response) =>
      answer(
        response,
        message,
        whole({
          tools: [{ name: 'bake', description: 'Bakes.', inputSchema: { type: 'object' } }],
          ttlMs: 0,
          cacheScope: 'private',
        }),
      ),
    'tools/call': noted((message, _request, response) => {
      const { _meta: meta } = paramsOf(message);
      shop.inputs.push(
        (meta as Record<string, unknown>)['io.modelcontextprotocol/clientCapabilities'],
      );
      answer(response, message, { ...task(), resultType: 'task' });
    }),
    'tasks/get': noted((message, _request, response) => {
      answer(response, message, whole(task()));
      shop.polled$.next();
    }),
    'tasks/update': noted((message, _request, response) => {
      shop.inputs.push(paramsOf(message)['inputResponses']);
      shop.now.state = { status: 'completed', result: done };
      answer(response, message, whole({}));
    }),
    'tasks/cancel': noted((message, _request, response) => answer(response, message, whole({}))),
  });
  return { url, ...shop };
};

const held = ({ url }: Pick<Shop, 'url'>, options: Partial<McpOptions> = {}): McpLayer => {
  const servers = mcp(at(url, {}, options));
  open.push(servers.servers$.subscribe());
  return servers;
};

const bake = async (servers: McpLayer): Promise<string> =>
  (await ran([servers], [['web_bake']])).results['web_bake'] ?? '';

const later = (store: Shop, state: object): void =>
  void store.polled$.subscribe(() => Object.assign(store.now, { state }));

describe.each([
  ['2025-11-25', () => shop(), { status: 'completed' }],
  ['2026-07-28', modernShop, { status: 'completed', result: done }],
])('T20: a tool call that is a task (%s)', (version, create, completed) => {
  it('is polled until it has a result', async () => {
    const store = await create();
    later(store, completed);
    expect(await bake(held(store))).toBe('baked');
    expect(store.calls[0]).toBe('tools/call');
    expect(store.calls.filter((call) => call === 'tools/call')).toHaveLength(1);
    expect(store.calls).not.toContain('tasks/cancel');
  });

  it('is cancelled if the call is interrupted, unsubscribed from, or takes too long', async () => {
    const store = await create();
    const stop$ = new Subject<void>();
    const agent = createAgent({
      model: scriptedModel([toolCall('web_bake')]),
      use: [held(store)],
    });
    const cancelled = async (): Promise<void> => {
      while (!store.calls.includes('tasks/cancel'))
        await new Promise((resolve) => setTimeout(resolve, 10));
      store.calls.length = 0;
      store.now.state = { status: 'working' };
    };
    const polled = firstValueFrom(store.polled$);
    const interrupted = agent.call('?', { use: [interruptOn(stop$)] });
    await polled;
    stop$.next();
    await interrupted;
    await cancelled();
    await firstValueFrom(
      createAgent({ model: scriptedModel([toolCall('web_bake')]), use: [held(store)] })
        .stream$('?')
        .pipe(filter(({ type }) => type === 'preActing')),
    ).catch(() => undefined);
    expect(await bake(held(store, { timeouts: { toolMs: 300 } }))).toMatch(/300 ms/);
    await cancelled();
  });

  it('suspends the call, and another process takes the result', async () => {
    const store = await create();
    const model = scriptedModel([toolCall('web_bake')], [text('It is baked.')]);
    const options = { timeouts: { connectMs: 5_000, suspendMs: 150 } };
    const first = sessions(createAgent({ model, use: [held(store, options)] })).open('1');
    const { reason } = await first.call('Bake.');
    expect(reason).toBe('suspended');
    expect(store.calls).not.toContain('tasks/cancel');
    const state: unknown = JSON.parse(JSON.stringify(await first.saveState()));
    open.splice(0).forEach((subscription) => subscription.unsubscribe());

    const servers = held(store, options);
    const second = sessions(createAgent({ model, use: [servers] })).open('1');
    await second.loadState(state);
    const [waiting] = await suspensionsOf(second);
    store.now.state = completed;
    const output = await firstValueFrom(servers.taskResult$(waiting));
    const reply = await second.call(toolResults({ [waiting.toolCall.id]: output }));
    expect(textOf(reply)).toBe('It is baked.');
    expect(store.calls.filter((call) => call === 'tools/call')).toHaveLength(1);
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('baked');
  });

  it('of a suspended call can be cancelled by the program', async () => {
    const store = await create();
    const model = scriptedModel([toolCall('web_bake')]);
    const servers = held(store, { timeouts: { connectMs: 5_000, suspendMs: 0 } });
    const { suspensions = [] } = await sessions(createAgent({ model, use: [servers] }))
      .open('1')
      .call('Bake.');
    const [waiting] = suspensions;
    expect(waiting).toMatchObject({
      from: 'program',
      request: { mcpTask: { server: 'web', tool: 'bake', taskId: 't1' } },
    });
    await new Promise<void>((resolve, reject) => {
      servers.cancelTask$(waiting as Suspension).subscribe({ complete: resolve, error: reject });
    });
    expect(store.calls).toContain('tasks/cancel');
  });

  const failures: [state: object, text: RegExp][] = [
    [{ status: 'cancelled', statusMessage: 'Closed.' }, /cancelled the task: Closed\./],
    [{ status: 7 }, /state of the task 't1' is not valid/],
  ];
  if (version === '2026-07-28') {
    const error = { code: 1, message: 'Burnt.' };
    failures.push([{ status: 'failed', error }, /The task failed: Burnt\./]);
  }

  it.each(failures)('that ends as %j is an error for the model', async (state, message) => {
    const store = await create();
    later(store, state);
    expect(await bake(held(store))).toMatch(message);
  });

  it('is asked for no more often than ten times a second', async () => {
    const store = await create();
    store.now.state = { status: 'working', pollInterval: 0, pollIntervalMs: 0.001 };
    await bake(held(store, { timeouts: { toolMs: 700 } }));
    expect(store.calls.filter((call) => call === 'tasks/get').length).toBeLessThan(8);
  });
});

describe('T20: a tool that may run as a task', () => {
  it.each<[support: string, suspendMs: number | undefined, calls: readonly string[]]>([
    ['optional', undefined, ['tools/call']],
    ['forbidden', 5_000, ['tools/call']],
  ])('%s, with suspendMs %j: is called as usual', async (support, suspendMs, calls) => {
    const store = await shop(support);
    const timeouts = { connectMs: 5_000, ...(suspendMs !== undefined && { suspendMs }) };
    expect(await bake(held(store, { timeouts }))).toBe('baked');
    expect(store.calls).toEqual(calls);
  });

  it('optional, with suspendMs: is a task', async () => {
    const store = await shop('optional');
    store.now.state = { status: 'completed' };
    const timeouts = { connectMs: 5_000, suspendMs: 5_000 };
    expect(await bake(held(store, { timeouts }))).toBe('baked');
    expect(store.calls).toEqual(['tools/call', 'tasks/result']);
  });
});

describe('T20: a task that asks the user', () => {
  it('2025-11-25: is asked for its result, which brings the question', async () => {
    const store = await shop();
    later(store, { status: 'input_required' });
    expect(await bake(held(store))).toBe('baked');
    expect(store.calls.at(-1)).toBe('tasks/result');
  });

  it('2026-07-28: gets the answer of the callback, once', async () => {
    const store = await modernShop();
    later(store, {
      status: 'input_required',
      inputRequests: {
        q: {
          method: 'elicitation/create',
          params: {
            mode: 'form',
            message: 'Salt?',
            requestedSchema: { type: 'object', properties: {} },
          },
        },
      },
    });
    const onElicit = () => of({ action: 'accept' as const, content: { salt: true } });
    const baked = bake(held(store, { onElicit }));
    expect(await baked).toBe('baked');
    expect(store.inputs).toMatchObject([
      { extensions: { 'io.modelcontextprotocol/tasks': {} } },
      { q: { action: 'accept', content: { salt: true } } },
    ]);
  });
});

const suspensionsOf = async (session: {
  saveState(): PromiseLike<{ readonly messages: Parameters<typeof suspensionsIn>[0] }>;
}): Promise<readonly [Suspension]> => {
  const [waiting] = suspensionsIn((await session.saveState()).messages);
  if (waiting === undefined) throw new Error('Nothing waits.');
  return [waiting];
};
