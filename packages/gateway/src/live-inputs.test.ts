import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  interruptOn,
  type Layer,
  type Model,
  output,
  textOf,
  tool,
  type Tool,
  toolGroup,
} from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { marbles, record, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  BehaviorSubject,
  catchError,
  concat,
  EMPTY,
  filter,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  Subject,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { liveInstructions, type LiveOptions, liveModel, liveTools } from './index.js';

const named = (name: string): Tool => tool({ name, description: name, run: () => `${name} ran.` });
const [hammer, saw] = [named('hammer'), named('saw')];
const systemsOf = ({ requests }: { readonly requests: readonly { system?: string }[] }) =>
  requests.map(({ system }) => system);
const toolsOf = ({ requests }: ReturnType<typeof scriptedModel>) =>
  requests.map(({ tools = [] }) => tools.map(({ name }) => name).join());
const boom = new Error('Flags are down.');

/** Two turns: the hammer, then the answer. */
const twoTurns = () => scriptedModel([toolCall('hammer')], [text('Done.')]);

/** An Observable that never ends, as feature flags. */
const flag = <T>(value: T): Observable<T> => concat(of(value), NEVER);

describe('R6: live inputs', () => {
  it('share one subscription while calls run, and free it with the last call', () => {
    marbles(({ cold, hot, model, scheduler, expectObservable, expectSubscriptions }) => {
      const source = cold('3ms a 40ms b', { a: 'A.', b: 'B.' });
      const answers = model(['10ms (tf|)', '20ms (tf|)', '5ms (tf|)']);
      const agent = createAgent({ model: answers, use: [liveInstructions(source)] });
      const ask$ = () => agent.call$('?', { scheduler }).pipe(map(({ text: said }) => said));
      const third$ = hot('49ms x').pipe(ignoreElements());
      expectObservable(ask$()).toBe('13ms (t|)');
      expectObservable(concat(hot('5ms (x|)').pipe(ignoreElements()), ask$())).toBe('25ms (t|)');
      expectObservable(
        concat(
          merge(third$, hot('50ms (x|)')).pipe(
            takeWhile((x) => x !== 'x'),
            ignoreElements(),
          ),
          ask$(),
        ),
      ).toBe('58ms (t|)');
      // The first call waits 3 ms; the second one gets the last value at once; the third one starts again.
      expectSubscriptions(source.subscriptions).toBe(['^ 24ms !', '50ms ^ 7ms !']);
      scheduler.flush();
      expect(systemsOf(answers)).toEqual(['A.', 'A.', 'A.']);
    });
  });

  it('I5: unsubscribing and an interrupt end the wait, which an event reports', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const [left, cut] = [cold<string>('-'), cold<string>('-')];
      const model = scriptedModel();
      const waiting = createAgent({ model, use: [liveInstructions(left)] });
      const status$ = waiting.stream$('?', { scheduler }).pipe(
        filter(({ type }) => type === 'liveInput'),
        map((event) => ('status' in event ? event.status : '')),
      );
      expectObservable(status$, '^ 9ms !').toBe('w', { w: 'waiting' });
      expectSubscriptions(left.subscriptions).toBe('^ 9ms !');
      const stops = interruptOn(cold('7ms x'));
      const stopped = createAgent({ model, use: [liveInstructions(cut), stops] });
      const reason$ = stopped.call$('?', { scheduler }).pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('7ms (r|)', { r: 'interrupted' });
      expectSubscriptions(cut.subscriptions).toBe('^ 6ms !');
      scheduler.flush();
      expect(model.requests).toEqual([]);
    });
  });

  it('C5: the time-out of the call covers the wait', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('-');
      const agent = createAgent({ model: scriptedModel(), use: [liveInstructions(source)] });
      const call$ = agent.call$('?', { scheduler, limits: { timeouts: { callMs: 20 } } });
      const code$ = call$.pipe(map(() => ''));
      expectObservable(
        code$.pipe(
          tap({ error: ({ code }) => expect(code).toBe('timeout') }),
          ignoreElements(),
          quietly(),
        ),
      ).toBe('20ms |');
      expectSubscriptions(source.subscriptions).toBe('^ 19ms !');
    });
  });

  it.each<[string, Observable<string>, LiveOptions, string | RegExp]>([
    [
      'fails',
      throwError(() => boom),
      {},
      /failed: Flags are down\. To continue with its last value, set onError: 'keep'\.$/,
    ],
    [
      'fails without any value',
      throwError(() => boom),
      { onError: 'keep' },
      /failed: Flags are down\. Give it a first value with startWith\(…\)\.$/,
    ],
    [
      'fails after a value',
      concat(
        of('A.'),
        throwError(() => boom),
      ),
      {},
      /failed: Flags/,
    ],
    [
      'fails after a value, kept',
      concat(
        of('A.'),
        throwError(() => boom),
      ),
      { onError: 'keep' },
      'A.',
    ],
    [
      'completes without a value',
      of<string>(),
      {},
      /^The source of liveInstructions\(\) completed without a value\. Give it .* startWith/,
    ],
    ['completes', of('A.', 'B.'), {}, 'B.'],
    ['emits something else', from([5] as unknown[] as string[]), {}, /must emit strings/],
  ])('a source that %s', async (_what, source, options, expected) => {
    const model = scriptedModel([text('Yes.')]);
    const agent = createAgent({ model, use: [liveInstructions(source, options)] });
    const answered = agent.call('?').then(() => systemsOf(model)[0]);
    if (typeof expected === 'string') expect(await answered).toBe(expected);
    else await expect(answered).rejects.toThrow(expected);
  });

  it('I10: name a wrong argument', () => {
    // @ts-expect-error -- not an Observable
    expect(() => liveModel('gpt')).toThrow(/liveModel\(\) takes an Observable of models/);
    // @ts-expect-error -- not an option
    expect(() => liveTools(of([]), { at: 'never' })).toThrow(/'at' must be 'call' or 'turn'/);
  });
});

const quietly =
  () =>
  (source: Observable<never>): Observable<never> =>
    source.pipe(catchError(() => EMPTY));

/** Runs a call of two turns, with a change between them. */
const across = async <T>(
  layer: (source: Observable<T>) => Layer,
  [first, second]: readonly [T, T],
  agentModel: Model,
  use: readonly Layer[] = [],
): Promise<readonly AgentEvent[]> => {
  const changes$ = new Subject<T>();
  const source = merge(of(first), changes$);
  const agent = createAgent({ model: agentModel, tools: [hammer], use: [layer(source), ...use] });
  const events$ = agent.stream$('?').pipe(
    tap(({ type }) => {
      if (type === 'postActing') changes$.next(second);
    }),
  );
  const events = await record(events$);
  expect(changes$.observed).toBe(false);
  return events;
};

describe('R6: liveInstructions', () => {
  it.each([
    ['call', ['A.', 'A.']],
    ['turn', ['A.', 'B.']],
  ] as const)('uses at each %s the newest', async (at, expected) => {
    const model = twoTurns();
    const layer = (source: Observable<string>) => liveInstructions(source, { at });
    const events = await across(layer, ['A.', 'B.'], model);
    expect(systemsOf(model)).toEqual(expected);
    const changes = events.filter(({ type }) => type === 'liveInput');
    expect(changes).toHaveLength(at === 'turn' ? 1 : 0);
  });

  it('replaces the instructions of the agent, and leaves the rest of the prompt', async () => {
    const model = scriptedModel([toolCall('hammer')], [text('1')], [text('{"n": 1}')]);
    const schema = jsonSchema({
      type: 'object',
      properties: { n: { type: 'integer' } },
      required: ['n'],
    });
    const layer = (source: Observable<string>) => liveInstructions(source, { at: 'turn' });
    const found: Layer = {
      name: 'found',
      call: () => (next) => (call) =>
        next({ ...call, found: { ...call.found, x: { text: 'Passage.', placement: 'system' } } }),
    };
    await across(layer, ['A.', ''], model, [found, output(schema)]);
    const rest = '[Retrieved Context]\nPassage.';
    expect(systemsOf(model)).toEqual([`A.\n\n${rest}`, rest, rest]);
  });

  it('also applies to the closing request', async () => {
    const model = scriptedModel([toolCall('hammer')], [toolCall('hammer')], [text('Closed.')]);
    const layer = (source: Observable<string>) => liveInstructions(source, { at: 'turn' });
    const limits: Layer = {
      name: 'limits',
      call: () => (next) => (call) =>
        next({ ...call, options: { ...call.options, limits: { maxIterations: 2 } } }),
    };
    await across(layer, ['A.', 'B.'], model, [limits]);
    expect(systemsOf(model)).toEqual(['A.', 'B.', 'B.']);
  });
});

describe('R6: liveModel', () => {
  const two = () => {
    const [a, b] = [twoTurns(), scriptedModel([text('B.')], [text('B.')])];
    return { a: { ...a, name: 'a' }, b: { ...b, name: 'b' } };
  };

  it.each(['call', 'turn'] as const)('asks at each %s the newest', async (at) => {
    const { a, b } = two();
    const layer = (source: Observable<Model>) => liveModel(source, { at });
    const events = await across<Model>(layer, [a, b], scriptedModel());
    expect(events.at(-1)).toMatchObject({ reply: { text: at === 'call' ? 'Done.' : 'B.' } });
    expect([a.requests.length, b.requests.length]).toEqual(at === 'call' ? [2, 0] : [1, 1]);
  });

  it('keeps the time-outs of the call', () => {
    marbles(({ scheduler, model, cold, expectObservable }) => {
      const first = model(['2ms (cf|)']);
      const silent = scriptedModel(cold('-'));
      const models$ = merge(of<Model>(first), cold<Model>('1ms s', { s: silent }));
      const agent = createAgent({
        model: first,
        tools: [tool({ name: 'tool', description: 'A tool.', run: () => 'ok' })],
        use: [liveModel(models$, { at: 'turn' })],
      });
      const limits = { timeouts: { firstChunkMs: 30 } };
      const failed$ = agent
        .call$('?', { scheduler, limits })
        .pipe(
          tap({ error: ({ code }) => expect(code).toBe('timeout') }),
          ignoreElements(),
          quietly(),
        );
      expectObservable(failed$).toBe('32ms |');
    });
  });
});

describe('R6: liveTools', () => {
  it.each([
    ['call', ['hammer,saw', 'hammer,saw']],
    ['turn', ['hammer,saw', 'hammer,drill']],
  ] as const)('T10: has at each %s the newest', async (at, expected) => {
    const model = twoTurns();
    const layer = (source: Observable<readonly Tool[]>) => liveTools(source, { at });
    await across<readonly Tool[]>(layer, [[saw], [named('drill')]], model);
    expect(toolsOf(model)).toEqual(expected);
  });

  it('T10: takes groups, and leaves out names that are taken, with a warning', async () => {
    const model = scriptedModel([text('Yes.')]);
    const group = toolGroup({
      name: 'wood',
      description: 'Wood.',
      active: true,
      tools: [saw, hammer],
    });
    const use = [liveTools(flag([group, named('saw')]))];
    const events = await record(createAgent({ model, tools: [hammer], use }).stream$('?'));
    expect(toolsOf(model)).toEqual(['hammer,saw,manage_tools']);
    const warnings = events.filter(({ type }) => type === 'warning');
    expect(warnings).toMatchObject([
      { message: expect.stringContaining("'hammer' of liveTools() is left out") },
      { message: expect.stringContaining("'saw' of liveTools() is left out") },
    ]);
  });

  it('several add up', async () => {
    const model = scriptedModel([text('Yes.')]);
    const use = [liveTools(flag([hammer])), liveTools(flag([saw]))];
    await createAgent({ model, use }).call('?');
    expect(toolsOf(model)).toEqual(['hammer,saw']);
  });

  it('several add up at each turn, too', async () => {
    const lists = [[named('a')], [named('b')]].map((list) => new BehaviorSubject(list));
    const swap = tool({
      name: 'swap',
      description: 'Swaps.',
      run: () => {
        lists.forEach((list$, nth) => list$.next([named(`${nth}`)]));
        return '';
      },
    });
    const model = scriptedModel([toolCall('swap')], [text('Yes.')]);
    const use = lists.map((list$) => liveTools(list$, { at: 'turn' }));
    await createAgent({ model, tools: [swap], use }).call('?');
    expect(toolsOf(model)).toEqual(['swap,a,b', 'swap,0,1']);
    expect(lists.some(({ observed }) => observed)).toBe(false);
  });
});

describe('a resumed call', () => {
  /** Ends the process of a call before its second turn, and resumes it. */
  const resumed = async (
    layer: (nth: number) => readonly Layer[],
    [first, second]: readonly [Model, Model],
  ): Promise<readonly AgentEvent[]> => {
    const driver = inProcessCalls();
    const before = journal(createCallStore(driver));
    const options = { tools: [named('own')] };
    const dying = createAgent({ ...options, model: first, use: [before, ...layer(0)] });
    const events$ = dying.stream$('?', { callId: 'c' });
    await lastValueFrom(events$.pipe(takeWhile(({ type }) => type !== 'postActing')));
    const after = journal(createCallStore(driver));
    const agent = createAgent({ ...options, model: second, use: [after, ...layer(1)] });
    const events: AgentEvent[] = [];
    const subscription = agent.events$.subscribe((event) => events.push(event));
    await lastValueFrom(after.resume$(agent, 'c'));
    subscription.unsubscribe();
    return events;
  };

  it('S6: has the instructions that were recorded', async () => {
    const [dying, model] = [
      scriptedModel([toolCall('own')], NEVER),
      scriptedModel([text('Done.')]),
    ];
    await resumed((nth) => [liveInstructions(flag(['A.', 'B.'][nth] ?? ''))], [dying, model]);
    expect(systemsOf(model)).toEqual(['A.']);
  });

  it('S6: takes the newest from its next turn on', async () => {
    const [dying, model] = [
      scriptedModel([toolCall('own')], NEVER),
      scriptedModel([text('Done.')]),
    ];
    const layer = (nth: number) => [
      liveInstructions(flag(['A.', 'B.'][nth] ?? ''), { at: 'turn' }),
    ];
    await resumed(layer, [dying, model]);
    expect(systemsOf(model)).toEqual(['B.']);
  });

  it('S6: has those of the recorded tools that still exist; others are unknown', async () => {
    const dying = scriptedModel([toolCall('own')], NEVER);
    const model = scriptedModel([toolCall('saw'), toolCall('hammer')], [text('Done.')]);
    const lists = [
      [saw, hammer],
      [hammer, named('drill')],
    ];
    const events = await resumed((nth) => [liveTools(flag(lists[nth] ?? []))], [dying, model]);
    expect(toolsOf(model)[0]).toBe('own,hammer');
    const results = events.flatMap((event) =>
      event.type === 'postActing' ? [textOf(event.result)] : [],
    );
    expect(results.at(-2)).toMatch(/No tool is named 'saw'/);
    expect(results.at(-1)).toBe('hammer ran.');
    expect(events).toContainEqual(
      expect.objectContaining({ message: 'Tools of liveTools() no longer exist: saw.' }),
    );
  });

  it('S6: continues with the current model, and warns about another name', async () => {
    const dying = { ...scriptedModel([toolCall('own')], NEVER), name: 'a' };
    const model = { ...scriptedModel([text('Done.')]), name: 'b' };
    const events = await resumed(
      (nth) => [liveModel(flag([dying, model][nth] ?? model))],
      [dying, dying],
    );
    expect(events).toContainEqual(
      expect.objectContaining({
        message: "The call started with the model 'a', and continues with 'b'.",
      }),
    );
  });
});
