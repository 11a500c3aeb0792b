import { afterEach, describe, expect, it } from '@jest/globals';
import {
  createAgent,
  interruptOn,
  suspend,
  type Suspension,
  suspensionsIn,
  textOf,
  tool,
  toolResults,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { EMPTY, firstValueFrom, lastValueFrom, NEVER, of, Subject, throwError } from 'rxjs';
import { mcp, type McpLayer, type McpOptions } from './index.js';
import { ran } from './servers.test-support.js';
import { done, modernShop, type Shop, shop } from './shop.test-support.js';
import { type Answer, at, send } from './web.test-support.js';

const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

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

  it('is cancelled if the call is interrupted, or takes too long', async () => {
    const store = await create();
    const stop$ = new Subject<void>();
    const agent = createAgent({
      model: scriptedModel([toolCall('web_bake')]),
      use: [held(store)],
    });
    const polled = firstValueFrom(store.polled$);
    const interrupted = agent.call('?', { use: [interruptOn(stop$)] });
    await polled;
    const first = firstValueFrom(store.cancelled$);
    stop$.next();
    await interrupted;
    await first;
    store.now.state = { status: 'working' };
    const second = firstValueFrom(store.cancelled$);
    expect(await bake(held(store, { timeouts: { toolMs: 300 } }))).toMatch(/300 ms/);
    await second;
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

  it.each<[what: string, refuse: Answer]>([
    ['a broken socket', (_message, request) => request.socket.destroy()],
    ['503', (_message, _request, response) => send(response, 503)],
    ['429', (_message, _request, response) => send(response, 429)],
  ])('survives %s while it is polled', async (_what, refuse) => {
    const store = await create();
    store.other['tasks/get'] = (...all) => {
      delete store.other['tasks/get'];
      store.now.state = completed;
      refuse(...all);
    };
    expect(await bake(held(store))).toBe('baked');
    expect(store.calls).not.toContain('tasks/cancel');
  });

  it.each(['tasks/get', 'tasks/result'])(
    'of a suspended call has its result after a broken %s',
    async (method) => {
      const store = await create();
      const servers = held(store, { timeouts: { connectMs: 5_000, suspendMs: 0 } });
      const agent = createAgent({ model: scriptedModel([toolCall('web_bake')]), use: [servers] });
      const { suspensions = [] } = await sessions(agent).open('1').call('Bake.');
      store.now.state = completed;
      let failures = 0;
      store.other[method] = (_message, request, response) => {
        failures += 1;
        if (failures === 2) Reflect.deleteProperty(store.other, method);
        if (failures === 1) request.socket.destroy();
        else send(response, 503);
      };
      const output = await firstValueFrom(servers.taskResult$(suspensions[0] as Suspension));
      expect(JSON.stringify(output)).toContain('baked');
      expect(failures).toBe(method === 'tasks/result' && version === '2026-07-28' ? 0 : 2);
    },
  );

  it('is not taken for a later task with its id, of a server that has restarted', async () => {
    const store = await create();
    const servers = held(store, { timeouts: { connectMs: 5_000, suspendMs: 0 } });
    const agent = createAgent({ model: scriptedModel([toolCall('web_bake')]), use: [servers] });
    const { suspensions = [] } = await sessions(agent).open('1').call('Bake.');
    store.now.state = { ...completed, createdAt: '2026-02-02T00:00:00Z' };
    await expect(
      firstValueFrom(servers.taskResult$(suspensions[0] as Suspension)),
    ).rejects.toMatchObject({
      code: 'server',
      message: expect.stringContaining("has lost the task 't1': another one has its id now"),
    });
    store.now.state = { status: 'working' };
    const patient = held(store);
    later(store, { ...completed, createdAt: '2026-02-02T00:00:00Z' });
    expect(await bake(patient)).toContain('another one has its id now');
    store.now.state = completed;
    expect(await bake(patient)).toBe('baked');
    expect(store.calls).not.toContain('tasks/cancel');
  });

  it.each([
    [5, 'baked'],
    [6, 'HTTP 503'],
  ])('survives up to five failures in a row: %d', async (failures, output) => {
    const store = await create();
    let polls = 0;
    store.other['tasks/get'] = (_message, _request, response) => {
      polls += 1;
      if (polls === failures) delete store.other['tasks/get'];
      send(response, 503);
    };
    later(store, completed);
    expect(await bake(held(store))).toContain(output);
    expect(polls).toBe(failures);
  });

  it('of a suspended call is cancelled by a message instead of its result', async () => {
    const store = await create();
    const model = scriptedModel([toolCall('web_bake')], [text('As you like.')]);
    const servers = held(store, { timeouts: { connectMs: 5_000, suspendMs: 0 } });
    const session = sessions(createAgent({ model, use: [servers] })).open('1');
    await session.call('Bake.');
    const cancelled = firstValueFrom(store.cancelled$);
    expect(textOf(await session.call('Never mind.'))).toBe('As you like.');
    await cancelled;
    expect(store.calls.filter((call) => call === 'tasks/cancel')).toHaveLength(1);
    expect(suspensionsIn((await session.saveState()).messages)).toEqual([]);
  });

  it('of a suspended call is not cancelled by its result', async () => {
    const store = await create();
    const model = scriptedModel([toolCall('web_bake')], [text('Done.')]);
    const options = { timeouts: { connectMs: 5_000, suspendMs: 0 } };
    const session = sessions(createAgent({ model, use: [held(store, options)] })).open('1');
    const { suspensions = [] } = await session.call('Bake.');
    const results = suspensions.map(({ toolCall: { id } }) => [id, 'baked']);
    await session.call(toolResults(Object.fromEntries(results)));
    expect(store.calls).not.toContain('tasks/cancel');
  });

  it('of a suspended call is not cancelled by a tool call that only names it', async () => {
    const store = await create();
    const mcpTask = { server: 'web', tool: 'bake', taskId: 't1' };
    const asked = tool({
      name: 'ask',
      description: 'Waits for an answer to the question of the model.',
      input: jsonSchema({ type: 'object' }),
      run: (input) => suspend(input, { from: 'program' }),
    });
    const model = scriptedModel([toolCall('ask', { mcpTask })], [text('As you like.')]);
    const servers = held(store);
    const session = sessions(createAgent({ model, tools: [asked], use: [servers] })).open('1');
    const { suspensions = [] } = await session.call('Ask.');
    expect(suspensions).toMatchObject([{ from: 'program', request: { mcpTask } }]);
    for (const request$ of [servers.cancelTask$, servers.taskResult$]) {
      await expect(lastValueFrom<unknown>(request$(suspensions[0] as Suspension))).rejects.toThrow(
        'does not wait for a task',
      );
    }
    await session.call('Never mind.');
    later(store, completed);
    expect(await bake(servers)).toBe('baked');
    expect(store.calls).not.toContain('tasks/cancel');
  });

  it('of a suspended call can be cancelled by the application', async () => {
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
    [{ status: 'completed', taskId: 't2' }, /state of the task 't1' is not valid/],
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

const form = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Salt?', requestedSchema: { type: 'object', properties: {} } },
};

describe('T20: a question of a task', () => {
  const asking = async (
    question: unknown,
    options: Partial<McpOptions>,
  ): Promise<{ readonly store: Shop; readonly output: string }> => {
    const store = await modernShop();
    later(store, { status: 'input_required', inputRequests: { q: question } });
    const cancelled = firstValueFrom(store.cancelled$, { defaultValue: undefined });
    const output = await bake(held(store, options));
    if (!store.calls.includes('tasks/update')) await cancelled;
    return { store, output };
  };

  it('has a signal that aborts when the call ends', async () => {
    const signals: AbortSignal[] = [];
    const { store } = await asking(form, {
      onElicit: (_request, signal) => {
        signals.push(signal);
        return NEVER;
      },
      timeouts: { connectMs: 5_000, toolMs: 500 },
    });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(store.calls).toContain('tasks/cancel');
  });

  it.each<[what: string, question: object, options: Partial<McpOptions>, text: RegExp]>([
    [
      'nobody',
      { method: 'sampling/createMessage', params: {} },
      {},
      /'web' asks for 'sampling\/createMessage'/,
    ],
    ['nobody, as it is unknown', { method: 'x' }, {}, /'web' asks for 'x'/],
    [
      'a callback that fails',
      form,
      { onElicit: () => throwError(() => new Error('s3cret')) },
      /could not answer/,
    ],
  ])(
    'that is answered by %s ends the call, and cancels the task',
    async (_what, question, options, message) => {
      const { store, output } = await asking(question, options);
      expect(output).toMatch(message);
      expect(output).not.toContain('s3cret');
      expect(store.calls).toContain('tasks/cancel');
    },
  );

  it.each<[what: string, options: Partial<McpOptions>, action: string]>([
    ['that emits nothing', { onElicit: () => EMPTY }, 'cancel'],
    ['that is missing', {}, 'decline'],
  ])('by a form whose callback is one %s is answered', async (_what, options, action) => {
    const { store, output } = await asking(form, options);
    expect(store.inputs.at(-1)).toEqual({ q: { action } });
    expect(output).toBe('baked');
  });
});

const suspensionsOf = async (session: {
  saveState(): PromiseLike<{ readonly messages: Parameters<typeof suspensionsIn>[0] }>;
}): Promise<readonly [Suspension]> => {
  const [waiting] = suspensionsIn((await session.saveState()).messages);
  if (waiting === undefined) throw new Error('Nothing waits.');
  return [waiting];
};
