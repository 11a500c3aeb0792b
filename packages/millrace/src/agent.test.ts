import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  config,
  finalize,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  mergeMap,
  NEVER,
  Observable,
  of,
  switchMap,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import {
  type AgentEvent,
  createAgent,
  createDemand,
  fromPull,
  inProcessMemory,
  type Interceptor,
  type Memory,
  MillraceError,
  type Model,
  type ModelChunk,
  on,
  only,
  textBlock,
  textOf,
  tool,
} from './index.js';
import { finish, marbles, record, scriptedModel, text, toolCall } from './testing/index.js';
import { strictHistory } from './memories/repair.js';
import { sessions } from './layers/sessions/index.js';
import { journal } from './journal/index.js';
import { jsonSchema } from './schema/index.js';

const quick = tool({ name: 'quick', description: 'Settles.', run: () => 'ok' });

describe('an agent', () => {
  it('L2: call$ is cold and emits one reply; two subscriptions are two calls', async () => {
    const model = scriptedModel([text('one')], [text('two')]);
    const reply$ = createAgent({ model }).call$('?').pipe(toArray());
    expect(model.requests).toEqual([]);
    const replies = [await lastValueFrom(reply$), await lastValueFrom(reply$)];
    expect(replies.map((all) => all.map((reply) => textOf(reply)))).toEqual([['one'], ['two']]);
    expect(new Set(replies.flat().map(({ id }) => id)).size).toBe(2);
  });

  it('L2: stream$ emits every event, postCall last; call() and stream() are the same call pulled', async () => {
    const answers = Array.from({ length: 3 }, () => [text('a'), text('b')]);
    const agent = createAgent({ model: scriptedModel(...answers) });
    const pushed = await record(agent.stream$('?'));
    const pulled: AgentEvent[] = [];
    for await (const event of agent.stream('?')) pulled.push(event);
    expect(pulled.map(({ type }) => type)).toEqual(pushed.map(({ type }) => type));
    expect(pulled.at(-1)?.type).toBe('postCall');
    expect(textOf(await agent.call('?'))).toBe('ab');
  });

  it('L2: stream() does nothing before its first next(), and rejects if the call errors', async () => {
    const model = scriptedModel();
    const iterator = createAgent({ model }).stream('?')[Symbol.asyncIterator]();
    expect(model.requests).toEqual([]);
    const types: string[] = [];
    await expect(
      (async () => {
        for (;;) {
          const result = await iterator.next();
          if (result.done === true) return;
          types.push(result.value.type);
        }
      })(),
    ).rejects.toMatchObject({ code: 'unknown' });
    expect(types).toEqual(['preCall', 'preReasoning', 'error']);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('L2: stream() returns the reply after the last event, to loops as the promise reply', async () => {
    const agent = createAgent({ model: scriptedModel([text('a')], [text('b')], [text('c')]) });
    const stream = agent.stream('?');
    await expect(stream.reply).rejects.toMatchObject({ code: 'config' });
    const events = [];
    for await (const event of stream) events.push(event);
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: await stream.reply });
    expect((await stream.reply).text).toBe('a');
    // Each loop is a call.
    const iterator = stream[Symbol.asyncIterator]();
    let result = await iterator.next();
    while (result.done !== true) result = await iterator.next();
    expect(result.value).toBe(await stream.reply);
    expect(result.value.text).toBe('b');
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    const passedOn = async function* () {
      return (yield* agent.stream('?')).text;
    };
    const last = passedOn();
    let end = await last.next();
    while (end.done !== true) end = await last.next();
    expect(end.value).toBe('c');
  });

  it('L2: the reply of a stream that was left or that fails is its error, which is no unhandled one', async () => {
    const slow = scriptedModel(concat(of(text('a')), NEVER));
    const stream = createAgent({ model: slow }).stream('?');
    for await (const event of stream) if (event.type === 'reasoningChunk') break;
    await expect(stream.reply).rejects.toMatchObject({ code: 'aborted' });
    const failing = createAgent({ model: scriptedModel() }).stream('?');
    const failure = await (async () => {
      for await (const event of failing) expect(event).toBeDefined();
    })().catch((error: unknown) => error);
    await expect(failing.reply).rejects.toBe(failure);
    const misused = createAgent({ model: scriptedModel() }).stream('?', { use: [{} as never] });
    await expect(misused[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'config' });
    await expect(misused.reply).rejects.toMatchObject({ code: 'config' });
  });

  it('I16: a slow consumer of stream() pauses the source, and break ends it in the same tick', async () => {
    let taken = 0;
    let aborted = false;
    async function* tokens(signal: AbortSignal): AsyncGenerator<ModelChunk> {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      for (; taken < 2000; taken += 1) yield await Promise.resolve(text(`${taken} `));
      yield finish();
    }
    const model: Model = { name: 'pulled', stream$: (_, { demand }) => fromPull(tokens, demand) };
    const seen: AgentEvent[] = [];
    for await (const event of createAgent({ model }).stream('?')) {
      seen.push(event);
      // A consumer that lets the source run as far as it will before it takes the next event.
      await new Promise((resolve) => setImmediate(resolve));
      if (seen.length === 22) break;
    }
    expect(seen.filter(({ type }) => type === 'reasoningChunk')).toHaveLength(20);
    expect(taken).toBeLessThan(100);
    expect(aborted).toBe(true);
  });

  it('L2: 20,000 events wait in linear time for a reader that pulls', async () => {
    const chunks = Array.from({ length: 20_000 }, () => text('x'));
    let seen = 0;
    for await (const event of createAgent({ model: scriptedModel(chunks) }).stream('?')) {
      if (event.type === 'reasoningChunk') seen += 1;
    }
    expect(seen).toBe(20_000);
  });

  it('L2: return() ends the call, before, during and after its first event', async () => {
    let listening = 0;
    const model: Model = {
      name: 'm',
      stream$: () =>
        new Observable(() => {
          listening += 1;
          return () => (listening -= 1);
        }),
    };
    for (const pulls of [0, 1, 2, 3]) {
      const iterator = createAgent({ model }).stream('?')[Symbol.asyncIterator]();
      const pending = Array.from({ length: pulls }, () => iterator.next());
      await iterator.return?.();
      await Promise.all(pending);
      expect(await iterator.next()).toEqual({ done: true, value: undefined });
    }
    expect(listening).toBe(0);
  });

  it('I16: a plain subscribe leaves demand open', async () => {
    let taken = 0;
    async function* tokens(): AsyncGenerator<ModelChunk> {
      for (; taken < 500; taken += 1) yield await Promise.resolve(text('x'));
      yield finish();
    }
    const model: Model = { name: 'pulled', stream$: (_, { demand }) => fromPull(tokens, demand) };
    await createAgent({ model }).call('?');
    expect(taken).toBe(500);
  });

  it.each([
    ['a text', 'hi', ['hi']],
    ['content blocks', [textBlock('a'), textBlock('b')], ['ab']],
    ['a message', { role: 'user', content: [textBlock('hi')] }, ['hi']],
    [
      'a list of messages',
      [
        { role: 'user', content: [textBlock('a')] },
        { role: 'assistant', content: [textBlock('b')] },
      ],
      ['a', 'b'],
    ],
  ] as const)('L9: the input may be %s', async (_, input, texts) => {
    const model = scriptedModel([text('ok')]);
    await createAgent({ model }).call(input);
    expect(model.requests[0]?.messages.map((message) => textOf(message))).toEqual(texts);
  });

  it.each([
    [{ type: 'base64', media_type: 'image/png', data: 'AAAA' }],
    [{ kind: 'base64', mediaType: 'png', data: 'AAAA' }],
    [{ kind: 'base64', mediaType: 'image/png', data: './a.png' }],
    [{ kind: 'base64', mediaType: 'image/png', data: 'data:image/png;base64,AAAA' }],
    [{ kind: 'base64', mediaType: 'image/png', data: Buffer.from('x') }],
    [{ kind: 'base64', mediaType: 'image/png', data: '' }],
    [{ kind: 'url', url: './a.png' }],
    [undefined],
  ])('L9: a picture whose source is %j is refused, with the right form', async (source) => {
    const call = createAgent({ model: scriptedModel() }).call([{ type: 'image', source }] as never);
    await expect(call).rejects.toMatchObject({
      code: 'invalidRequest',
      message: expect.stringContaining("source: { kind: 'base64', mediaType: 'image/png'") as never,
    });
  });

  it("L9: another agent's message becomes a user message with that agent's name", async () => {
    const model = scriptedModel([text('ok')]);
    const reply = await createAgent({ name: 'Ada', model: scriptedModel([text('hi')]) }).call('?');
    await createAgent({ name: 'Bob', model }).call(reply);
    expect(model.requests[0]?.messages[0]).toEqual({
      id: expect.any(String),
      role: 'user',
      name: 'Ada',
      content: [{ type: 'text', text: 'hi' }],
    });
  });

  it('I1: an input with an unanswered tool use is refused, and nothing is sent', async () => {
    const model = scriptedModel();
    const asks = { type: 'tool_call', id: '1', name: 'f', input: {} } as const;
    const call = createAgent({ model }).call([{ role: 'assistant', content: [asks] }]);
    await expect(call).rejects.toMatchObject({ code: 'invalidRequest' });
    expect(model.requests).toEqual([]);
  });

  it.each([[''], [[]], [42], [{ role: 'robot', content: [] }], [null]])(
    'an invalid input (%j) gets an error that says what to pass',
    async (input) => {
      const call = createAgent({ model: scriptedModel() }).call(input as never);
      await expect(call).rejects.toMatchObject({ code: 'invalidRequest' });
      await expect(call).rejects.toThrow(/Pass a string/);
    },
  );

  it('is an operator on messages, one after the other by default', async () => {
    const upper = createAgent({
      model: scriptedModel([text('one')], [text('two')], [text('three')]),
    });
    const asked$ = from(['1', '2']).pipe(upper.asOperator(), map(textOf), toArray());
    expect(await lastValueFrom(asked$)).toEqual(['one', 'two']);
    expect(
      textOf(
        await lastValueFrom(
          of('3').pipe(upper.asOperator({ flatten: (project) => switchMap(project) })),
        ),
      ),
    ).toBe('three');
  });

  it('is immutable: what its options hold later changes nothing', async () => {
    const model = scriptedModel([text('a')]);
    const options = {
      model,
      use: [] as Interceptor[],
      request: { temperature: 0 },
      limits: { maxIterations: 3, timeouts: { callMs: 1_000 } },
    };
    const agent = createAgent(options);
    options.use.push(on('preReasoning', () => NEVER));
    options.model = scriptedModel();
    options.request.temperature = 2;
    options.limits.timeouts.callMs = 0;
    options.limits = { maxIterations: 1, timeouts: { callMs: 0 } };
    expect(textOf(await agent.call('?'))).toBe('a');
    expect(model.requests[0]).toMatchObject({ temperature: 0 });
    expect(agent.limits).toEqual({ maxIterations: 3, timeouts: { callMs: 1_000 } });
  });

  it('X19: tools cannot leave anything in the metadata of other calls', async () => {
    const leaky = tool({
      name: 'leaky',
      description: 'Leaks.',
      run: (_input, { metadata }) => Reflect.set(metadata, 'leak', 'yes'),
    });
    const model = scriptedModel([toolCall('leaky')], [text('a')]);
    const agent = createAgent({ model, tools: [leaky] });
    const { toolCalls } = await agent.call('?', { metadata: { user: 'u' } });
    expect(toolCalls).toMatchObject([{ output: 'false' }]);
  });

  it('X19: does not freeze what the caller gave', async () => {
    const input = { role: 'user' as const, content: [textBlock('hi')] };
    await createAgent({ model: scriptedModel([text('ok')]) }).call(input);
    expect(Object.isFrozen(input.content)).toBe(false);
  });
});

describe('events', () => {
  afterEach(() => {
    config.onUnhandledError = null;
  });

  it('H1: every event carries its origin, and a number that only grows', async () => {
    const model = scriptedModel([toolCall('quick')], [text('ok')]);
    const agent = createAgent({ name: 'Ada', model, tools: [quick] });
    const events = await record(sessions(agent).open('s').stream$('?', { callId: 'c' }));
    for (const event of events) {
      expect(event).toMatchObject({ rootId: 'c', callId: 'c', sessionId: 's', agent: ['Ada'] });
      expect(event).not.toHaveProperty('parentId');
      expect(event.at).toBeGreaterThan(0);
    }
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  });

  it('H4: reach every subscriber in the same order, also when one calls from inside a handler', async () => {
    const agent = createAgent({ model: scriptedModel([text('a')], [text('b')]) });
    const inner: Promise<unknown>[] = [];
    const seen: [string[], string[]] = [[], []];
    const mark = ({ callId, type }: AgentEvent) => `${callId} ${type}`;
    agent.events$.subscribe((event) => {
      seen[0].push(mark(event));
      if (event.type === 'reasoningChunk' && event.callId === 'one') {
        inner.push(agent.call('?', { callId: 'two' }));
      }
    });
    agent.events$.subscribe((event) => seen[1].push(mark(event)));
    await agent.call('?', { callId: 'one' });
    await Promise.all(inner);
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]).toHaveLength(10);
  });

  it('H4: a handler that lets its own call continue sees the events in order', async () => {
    let emit: ((chunk: ModelChunk) => void) | undefined;
    const model: Model = {
      name: 'by hand',
      stream$: () =>
        new Observable((subscriber) => {
          emit = (chunk) => subscriber.next(chunk);
          subscriber.next(text('a'));
          subscriber.complete();
        }),
    };
    const texts: string[] = [];
    const reply = await firstValueFrom(
      createAgent({ model })
        .stream$('?')
        .pipe(
          tap((event) => {
            if (event.type !== 'reasoningChunk') return;
            texts.push(event.delta);
            if (event.delta === 'a') {
              emit?.(text('b'));
              emit?.(finish());
            }
          }),
          only('postCall'),
        ),
    );
    expect(texts).toEqual(['a', 'b']);
    expect(textOf(reply.reply)).toBe('ab');
  });

  it('makes no event without listeners, and numbers the others as if it had', async () => {
    const deltas = Array.from({ length: 1_000 }, () => text('a')).flat();
    const asked = jest.fn(() => 0);
    const clock = jest.spyOn(asyncScheduler, 'now').mockImplementation(asked);
    const agent = createAgent({ model: scriptedModel(deltas, deltas, deltas) });

    await agent.call('?');
    expect(asked.mock.calls.length).toBeLessThan(50);
    const { seq } = await lastValueFrom(agent.stream$('?'));
    expect(asked.mock.calls.length).toBeGreaterThan(1_000);

    const heard = firstValueFrom(agent.events$.pipe(only('postCall')));
    await agent.call('?');
    expect((await heard).seq).toBe(seq);
    clock.mockRestore();
  });

  it('H5: events$ sees all calls and never ends; the error of a call is an event there', async () => {
    const agent = createAgent({ model: scriptedModel([text('a')]) });
    const types: string[] = [];
    let ended = false;
    agent.events$.pipe(finalize(() => (ended = true))).subscribe(({ type }) => types.push(type));
    await agent.call('1');
    await expect(agent.call('2')).rejects.toThrow();
    expect(types.filter((type) => type === 'postCall' || type === 'error')).toEqual([
      'postCall',
      'error',
    ]);
    expect(ended).toBe(false);
  });

  it('H5: nothing follows the last event, no matter what is done within it', async () => {
    const types: string[] = [];
    const controller = new AbortController();
    const agent = createAgent({ model: scriptedModel([text('a')], [text('b')]) });
    agent.events$.subscribe(({ type }) => types.push(type));
    await firstValueFrom(agent.stream$('?').pipe(only('postCall')));
    agent.events$.pipe(only('postCall')).subscribe(() => controller.abort());
    await agent.call('?', { signal: controller.signal });
    expect(types.filter((type) => type === 'postCall' || type === 'error')).toEqual([
      'postCall',
      'postCall',
    ]);
  });

  it('H5: a call that is left is an aborted error there', async () => {
    const agent = createAgent({ model: { name: 'm', stream$: () => NEVER } });
    const ends: unknown[] = [];
    agent.events$.pipe(only('error')).subscribe(({ error }) => ends.push(error.code));
    await firstValueFrom(agent.stream$('?').pipe(only('preReasoning')));
    expect(ends).toEqual(['aborted']);
  });

  it('X19: events are frozen through and through', async () => {
    const model = scriptedModel([toolCall('quick', { deep: { er: [1] } })], [text('ok')]);
    const events = await record(createAgent({ model, tools: [quick] }).stream$('?'));
    const isFrozen = (value: unknown): boolean =>
      typeof value !== 'object' ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every(isFrozen));
    expect(events.filter((event) => !isFrozen(event)).map(({ type }) => type)).toEqual([]);
  });
});

describe('a session', () => {
  it('remembers, and is the same for the same id', async () => {
    const model = scriptedModel([text('one')], [text('two')]);
    const agent = createAgent({ model });
    await sessions(agent).open('s').call('a');
    await sessions(agent).open('s').call('b');
    expect(model.requests[1]?.messages.map((message) => textOf(message))).toEqual([
      'a',
      'one',
      'b',
    ]);
  });

  it('S3: a bare call remembers nothing', async () => {
    const model = scriptedModel([text('one')], [text('two')]);
    const agent = createAgent({ model });
    await agent.call('a');
    await agent.call('b');
    expect(model.requests[1]?.messages).toHaveLength(1);
  });

  it('S3: a second call while one runs errors with busy', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const session = sessions(createAgent({ model: model('--t(f|)') })).open('s');
      const first$ = session.call$('1', { scheduler }).pipe(map(textOf));
      const second$ = session.call$('2', { scheduler }).pipe(map(textOf));
      expectObservable(first$).toBe('---(t|)');
      const code$ = second$.pipe(
        catchError((error: unknown) => of(Reflect.get(Object(error), 'code'))),
      );
      expectObservable(code$, '-^').toBe('-(c|)', { c: 'busy' });
    });
  });

  it('S3: is free for a subscriber that gets the reply, or its last event', async () => {
    const model = scriptedModel([text('a')], [text('b')], [text('c')], [text('d')]);
    const session = sessions(createAgent({ model })).open('s');
    const afterReply$ = session.call$('1').pipe(concatMap(() => session.call$('2')));
    expect(textOf(await lastValueFrom(afterReply$))).toBe('b');
    const withinLast$ = session.stream$('3').pipe(
      only('postCall'),
      mergeMap(() => session.call$('4')),
    );
    expect(textOf(await lastValueFrom(withinLast$))).toBe('d');
  });

  it('S3: is free again after an input that cannot be read, and after a journal that throws', async () => {
    const session = sessions(createAgent({ model: scriptedModel([text('b')]) })).open('s');
    await expect(session.call('')).rejects.toMatchObject({ code: 'invalidRequest' });
    expect(textOf(await session.call('2'))).toBe('b');
    const step$ = () => {
      throw new Error('no disk');
    };
    const broken = sessions(createAgent({ model: scriptedModel(), use: [journal(step$)] })).open(
      's',
    );
    await expect(broken.call('1')).rejects.toMatchObject({ code: 'unknown' });
    await expect(broken.call('2')).rejects.toMatchObject({ code: 'unknown' });
  });

  it('S3: is free, and everything is torn down, when a subscriber gets an error', async () => {
    const model = scriptedModel(() => throwError(() => new Error('503')), [text('b')]);
    const session = sessions(createAgent({ model })).open('s');
    const retried$ = session.call$('1').pipe(
      catchError(() => {
        expect(session.interrupt()).toBe(false);
        return session.call$('2');
      }),
    );
    expect(textOf(await lastValueFrom(retried$))).toBe('b');
  });

  it('a callId that the session has had is a conflict', async () => {
    const session = sessions(createAgent({ model: scriptedModel([text('a')]) })).open('s');
    await session.call('1', { callId: 'c' });
    await expect(session.call('2', { callId: 'c' })).rejects.toMatchObject({ code: 'conflict' });
  });

  it('S3: is free again after an error', async () => {
    const session = sessions(createAgent({ model: scriptedModel(() => NEVER, [text('b')]) })).open(
      's',
    );
    const timeouts = { callMs: 50 };
    await expect(session.call('1', { limits: { timeouts } })).rejects.toMatchObject({
      code: 'timeout',
    });
    expect(textOf(await session.call('2'))).toBe('b');
  });

  it('hears its own calls only', async () => {
    const agent = createAgent({ model: scriptedModel([text('a')], [text('b')]) });
    const ids = new Set<string | undefined>();
    sessions(agent)
      .open('s')
      .events$.subscribe(({ sessionId }) => ids.add(sessionId));
    await sessions(agent).open('s').call('?');
    await sessions(agent).open('t').call('?');
    expect([...ids]).toEqual(['s']);
  });

  it('a memory that fails is a typed error', async () => {
    const broken = () => ({
      load$: () => {
        throw new Error('disk full');
      },
      append$: () => of(0),
    });
    const agent = createAgent({ model: scriptedModel() });
    await expect(sessions(agent, { memory: broken }).open('s').call('?')).rejects.toMatchObject({
      code: 'memory',
    });
  });

  it('a memory that gives no list is a typed error', async () => {
    const odd = (): Memory => ({ load$: () => of(null) as never, append$: () => of(0) });
    const session = sessions(createAgent({ model: scriptedModel() }), { memory: odd }).open('s');
    await expect(session.call('?')).rejects.toMatchObject({ code: 'memory' });
  });

  it('S11: a memory that holds a broken pair is repaired, or refused before anything is sent', async () => {
    const memory = inProcessMemory();
    const asks = { type: 'tool_call', id: '1', name: 'f', input: {} } as const;
    await lastValueFrom(memory('s').append$([{ id: 'a', role: 'assistant', content: [asks] }]));
    const model = scriptedModel([text('Hi.')]);
    const session = sessions(createAgent({ model }), { memory }).open('s');
    const strict = session.call('?', { use: [strictHistory()] });
    await expect(strict).rejects.toMatchObject({ code: 'memory' });
    expect(model.requests).toEqual([]);
    expect(textOf(await session.call('?'))).toBe('Hi.');
  });
});

it('an error carries what is known of it, and nothing else that it was given', () => {
  const given = { partial: 'a', apiKey: 'sk-secret', code: 'auth', message: 'b', retryable: true };
  const error = new MillraceError('server', 'It failed.', given);
  expect(error).toMatchObject({ code: 'server', message: 'It failed.', retryable: true });
  expect(Object.keys(error).sort()).toEqual([
    'code',
    'name',
    'partial',
    'retryable',
    'userMessage',
  ]);
});

describe('a misuse gets an error with the fix', () => {
  const model = scriptedModel();
  it.each<[string, () => unknown, RegExp]>([
    ['no model', () => createAgent({} as never), /createAgent\(\) needs 'model'.*openai\(/],
    [
      'a model of the AI SDK',
      () => createAgent({ model: { specificationVersion: 'v3', doStream: () => 0 } } as never),
      /'model' must be .*aiSdkModel\(model\) of '@millrace\/ai-sdk'/,
    ],
    [
      'something else for a model',
      () => createAgent({ model: 'gpt' as never }),
      /'model' must be a model/,
    ],
    [
      'an unknown option',
      () => createAgent({ model, tool: [] } as never),
      /no option 'tool'.*tools/,
    ],
    [
      'two tools of one name',
      () => createAgent({ model, tools: [quick, quick] }),
      /Two tools are named 'quick'. Rename/,
    ],
    [
      'a tool that is none',
      () => createAgent({ model, tools: [{ name: 'x' } as never] }),
      /what tool\(/,
    ],
    [
      'an interceptor that is none',
      () => createAgent({ model, use: ['log'] as never }),
      /interceptors, such as on\(type/,
    ],
    [
      'an option of sessions that is a layer',
      () => sessions(createAgent({ model }), { approval: () => true } as never),
      /sessions\(\) has no option 'approval'. Add approval\(approver\) to 'use'/,
    ],
    [
      'an option of a journal',
      () => createAgent({ model, onUncertain: 'report' } as never),
      /no option 'onUncertain'. Pass it to journal\(store/,
    ],
    [
      'an unknown call option',
      () => createAgent({ model }).call$('?', { request: { temprature: 1 } as never }),
      /'temprature'.*temperature/,
    ],
    [
      'an option that stands in a group',
      () => createAgent({ model }).call$('?', { maxIterations: 1 } as never),
      /no option 'maxIterations'. Write limits: { maxIterations: … }/,
    ],
    [
      'an impossible number',
      () => createAgent({ model }).call$('?', { limits: { maxIterations: 0 } }),
      /at least 1, not 0/,
    ],
    [
      'a timeout that no timer can wait for',
      () => createAgent({ model }).call$('?', { limits: { timeouts: { callMs: 2 ** 31 - 0.5 } } }),
      /2,147,483,647/,
    ],
    [
      'a timeout of a tool that is no number',
      () =>
        createAgent({ model }).call$('?', {
          limits: { timeouts: { tools: { t: '20s' } } as never },
        }),
      /milliseconds/,
    ],
    ['a mark that nothing can reach', () => createDemand(0), /at least 1/],
    [
      'an unknown option of stream()',
      () => createAgent({ model }).stream('?', { temprature: 1 } as never),
      /'temprature'/,
    ],
    [
      'an unknown timeout',
      () => createAgent({ model }).call$('?', { limits: { timeouts: { ms: 1 } as never } }),
      /'timeouts'.*'ms'.*callMs/s,
    ],
    ['a session without an id', () => sessions(createAgent({ model })).open(''), /id of a session/],
    [
      'a schema that is none',
      () => tool({ name: 'x', description: 'y', input: 'string' as never, run: () => 1 }),
      /must be a Standard Schema.*jsonSchema\(\{ type: 'object'/s,
    ],
    [
      'a schema of no object',
      () =>
        tool({
          name: 'x',
          description: 'y',
          input: jsonSchema({ type: 'string' } as object as never),
          run: () => 1,
        }),
      /type: 'object'/,
    ],
    [
      'a broken schema',
      () =>
        tool({
          name: 'x',
          description: 'y',
          input: jsonSchema({ type: 'object', properties: { a: { type: 'int' } } }),
          run: () => 1,
        }),
      /^jsonSchema\(\): the schema is not a valid JSON Schema/,
    ],
    [
      'a tool without a description',
      () => tool({ name: 'x', description: '', run: () => 1 }),
      /'description' must be/,
    ],
    [
      'a tool with an impossible name',
      () => tool({ name: 'my\ntool', description: 'y', run: () => 1 }),
      /1 to 256 characters/,
    ],
    ['a tool without run', () => tool({ name: 'x', description: 'y' } as never), /needs 'run'/],
  ])('%s', (_, build, message) => {
    expect(build).toThrow(expect.objectContaining({ code: 'config' }));
    expect(build).toThrow(message);
  });

  it('I14: two tools of one name in one call', () => {
    const again = tool({ name: 'quick', description: 'Another.', run: () => 'no' });
    expect(() => createAgent({ model }).call$('?', { tools: [quick, again] })).toThrow(
      /Two tools are named 'quick'/,
    );
  });

  it('a foreign parent', async () => {
    const call = createAgent({ model }).call('?', { parent: {} as never });
    await expect(call).rejects.toThrow(/'parent' must be the context/);
  });

  it('an interceptor of an unknown event', () => {
    expect(() =>
      on(
        'preacting' as never,
        map((x) => x),
      ),
    ).toThrow(/preActing/);
  });
});
