import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concat,
  delay,
  EMPTY,
  finalize,
  ignoreElements,
  lastValueFrom,
  map,
  NEVER,
  of,
  switchMap,
  tap,
  throwError,
} from 'rxjs';
import {
  type AgentOptions,
  createAgent,
  interruptOn,
  type Layer,
  on,
  type Step,
  textOf,
  tool,
} from '../index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { interruptLayer } from './steps.js';
import { type Cell, cell, createLocals } from '../step.js';
import { layersOf, handedDown } from '../call/compose.js';

const layer = (name: string, more: Omit<Layer, 'name'> = {}): Layer => ({ name, ...more });
const names = (layers: readonly Layer[]): readonly string[] => layers.map(({ name }) => name);

/** Notes every step that passes it. */
const noting = (notes: string[], name = 'noting', more: Omit<Layer, 'name' | 'step'> = {}): Layer =>
  layer(name, {
    ...more,
    step: () => (next) => (step) =>
      next(step).pipe(
        tap({
          subscribe: () => notes.push(`${name} ${step.kind} ${step.id}`),
          complete: () => notes.push(`${name} done ${step.id}`),
        }),
      ),
  });

const echo = tool({ name: 'echo', description: 'Echoes.', run: () => 'Hallo' });
const oneTool = () => scriptedModel([toolCall('echo')], [text('Done.')]);

describe('layers', () => {
  it('S1: a call that no layer may interrupt reports it to one that tries', async () => {
    const stopping = layer('stopping', {
      call:
        ({ interruption }) =>
        (next) =>
        (call) => {
          interruption.trigger({ message: 'Stop.' });
          return next(call);
        },
    });
    const call = (use: AgentOptions['use'] = []) =>
      createAgent({ model: scriptedModel([text('Done.')]), use }).call('?');
    await expect(call([stopping])).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('interruptLayer'),
    });
    expect(textOf(await call([[interruptLayer, stopping]]))).toBe('Stop.');
  });

  it('know the other layers, and the step that makes the call', async () => {
    const seen: unknown[] = [];
    const seeing = layer('seeing', {
      inherit: true,
      priority: 7,
      record: ({ info, layers }) => {
        seen.push([info.agent.join('/'), info.parentStep, layers[0]?.name]);
        return (call$) => call$;
      },
    });
    const inner = createAgent({ name: 'inner', model: scriptedModel([text('Yes.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, parent) => inner.call$('?', { parent }).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('ask')], [text('Done.')]);
    await createAgent({ name: 'outer', model, tools: [ask], use: [seeing] }).call('a');
    expect(seen).toEqual([
      ['outer', undefined, 'seeing'],
      ['outer/inner', '1/0', 'seeing'],
    ]);
  });

  it('Y4: stand in the order of their priorities, inherited ones first among equals, each once', () => {
    const shared = layer('shared', { inherit: true });
    const own = [layer('late', { priority: 200 }), layer('a'), shared, layer('b')];
    expect(names(layersOf(own, [shared, layer('above', { inherit: true })]))).toEqual([
      'shared',
      'above',
      'a',
      'b',
      'late',
    ]);
  });

  it('Y4: a single one replaces an earlier one of its name, and an inherited one both', () => {
    const single = (priority: number) => layer('log', { single: true, priority, inherit: true });
    const [first, second, above] = [single(1), single(2), single(3)];
    expect(layersOf([first, second], [])).toEqual([second]);
    expect(layersOf([first, second], [above])).toEqual([above]);
  });

  it('Y4: label a call and those below it, and never replace what an event, a call or a tool context has', async () => {
    const labels = { sessionId: 's', tenant: 'acme', callId: 'x', seq: 7, get: 1 };
    const seen: unknown[] = [];
    const below = createAgent({ name: 'below', model: scriptedModel([text('Done.')]) });
    const asks = tool({
      name: 'asks',
      description: 'Asks.',
      run: (_input, context) => {
        seen.push(context.callId, typeof context.get, { ...context });
        return below.call$('?', { parent: context }).pipe(map(textOf));
      },
    });
    const model = scriptedModel([toolCall('asks')], [text('Done.')]);
    const agent = createAgent({
      model,
      tools: [asks],
      use: [layer('labels', { labels })],
    });
    const events = await record(agent.stream$('?', { callId: 'real' }));
    expect(seen).toEqual(['real', 'function', expect.objectContaining({ tenant: 'acme' })]);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(
      new Set(events.map((event) => JSON.stringify([event.rootId, event['tenant' as never]]))),
    ).toEqual(new Set(['["real","acme"]']));
    expect(new Set(events.map(({ callId }) => callId.split('/')[0]))).toEqual(new Set(['real']));
    const odd = { name: 'odd', labels: { sessionId: 's', type: 'odd' } };
    expect(() => createAgent({ model, use: [odd] })).toThrow("an object without a label 'type'");
  });

  it('Y4: hand down what sub-agents inherit, and what only those do that speak', () => {
    const layers = [
      layer('own'),
      layer('all', { inherit: true }),
      layer('voice', { inherit: 'voice' }),
    ];
    expect(names(handedDown(layers, false))).toEqual(['all']);
    expect(names(handedDown(layers, true))).toEqual(['all', 'voice']);
  });

  it('Y4: keep a cell per call, and one per family', () => {
    const ofCall = cell('call', () => ({ count: 0 }));
    const ofFamily = cell('family', () => ({ count: 0 }));
    const family = new Map<Cell<unknown>, unknown>();
    const [parent, child] = [createLocals(family), createLocals(family)];
    parent(ofCall).count = 1;
    parent(ofFamily).count = 1;
    expect([parent(ofCall).count, child(ofCall).count, child(ofFamily).count]).toEqual([1, 0, 1]);
  });

  it('Y4: wrap every step of a call, outermost first', async () => {
    const notes: string[] = [];
    const agent = createAgent({
      model: oneTool(),
      tools: [echo],
      use: [noting(notes, 'inner'), [noting(notes, 'outer', { priority: 1 })]],
    });
    await agent.call('Hi!');
    expect(notes.filter((note) => note.startsWith('outer') && !note.includes('done'))).toEqual([
      'outer open open',
      'outer model 1',
      'outer intent 1/0/intent',
      'outer tool 1/0',
      'outer model 2',
      'outer reply reply',
    ]);
    expect(notes.slice(0, 2)).toEqual(['outer open open', 'inner open open']);
  });

  it('Y4: those of a call come beside those of its agent', async () => {
    const notes: string[] = [];
    const agent = createAgent({ model: scriptedModel([text('Hi.')]), use: [noting(notes, 'a')] });
    await agent.call('?', { use: [noting(notes, 'b', { priority: 1 })] });
    expect(notes).toContain('a model 1');
    expect(notes.indexOf('b model 1')).toBeLessThan(notes.indexOf('a model 1'));
  });

  it('H2, Y4: hold interceptors, which are inherited with them; a call may have its own', async () => {
    const seen: string[] = [];
    const see = (what: string) =>
      on(
        'postCall',
        tap(({ agent }) => seen.push(`${what} ${agent.join('/')}`)),
      );
    const below = createAgent({ name: 'below', model: scriptedModel([text('In.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, context) => below.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('ask')], [text('Out.')]),
      tools: [ask],
      use: [layer('audit', { inherit: true, on: [see('audit')] }), see('own')],
    });
    await agent.call('?', { use: [see('call')] });
    expect(seen).toEqual(['audit agent/below', 'audit agent', 'own agent', 'call agent']);
  });

  it('Y4: reach sub-agents if they are inherited', async () => {
    const notes: string[] = [];
    const child = createAgent({ name: 'child', model: scriptedModel([text('Below.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, context) => child.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('ask')], [text('Done.')]),
      tools: [ask],
      use: [noting(notes, 'all', { inherit: true }), noting(notes, 'own')],
    });
    await agent.call('?');
    expect(notes.filter((note) => note === 'all model 1')).toHaveLength(2);
    expect(notes.filter((note) => note === 'own model 1')).toHaveLength(1);
  });

  it('Y1: a layer that waits changes nothing but the time', () => {
    marbles(({ expectObservable }) => {
      const late = layer('late', { step: () => (next) => (step) => next(step).pipe(delay(2)) });
      const agent = createAgent({ model: scriptedModel([text('Hi.')]), use: [late] });
      const said$ = agent.call$('?').pipe(map(textOf));
      // The history, the message and the reply.
      expectObservable(said$).toBe('------(a|)', { a: 'Hi.' });
    });
  });

  it('Y2: a step that a layer completes empty is cut', async () => {
    const empty = (kind: string): Layer =>
      layer('empty', {
        step: () => (next) => (step) => (step.kind === kind ? EMPTY : next(step)),
      });
    const model = oneTool();
    const reply = await createAgent({ model, tools: [echo], use: [empty('tool')] }).call('?');
    expect(reply.toolCalls).toEqual([
      expect.objectContaining({ output: 'Interrupted before it finished.', isError: true }),
    ]);
    const cut = createAgent({ model: scriptedModel([text('Hi.')]), use: [empty('model')] });
    await expect(cut.call('?')).resolves.toMatchObject({ reason: 'interrupted' });
    const reply$ = createAgent({ model: scriptedModel([text('Hi.')]), use: [empty('reply')] });
    await expect(reply$.call('?')).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining("The layer 'empty' emitted nothing for the step 'reply'"),
    });
  });

  it('Y3: a layer that emits two values is an error that names it', async () => {
    const both = layer('both', {
      step: () => (next) => (step) => concat(next(step), next(step)),
    });
    const agent = createAgent({ model: scriptedModel([text('Hi.')]), use: [both] });
    await expect(agent.call('?')).rejects.toMatchObject({
      message: expect.stringContaining("The layer 'both' emitted two values"),
    });
  });

  it('Y3: an error of a layer fails the call, and is no result of a tool', async () => {
    const broken = layer('broken', {
      step: () => (next) => (step) =>
        step.kind === 'tool' ? throwError(() => new Error('Broken.')) : next(step),
    });
    const model = oneTool();
    const events = await record(
      createAgent({ model, tools: [echo], use: [broken] }).stream$('?'),
    ).catch((error: unknown) => error);
    expect(events).toMatchObject({ message: expect.stringContaining('Broken.') });
    expect(model.requests).toHaveLength(1);
  });

  it('Y4: answers in the place of the world, and what it answers is guarded', async () => {
    const cached = new Map<string, unknown>();
    const cache = layer('cache', {
      step:
        () =>
        (next) =>
        <T>(step: Step<T>) => {
          if (step.kind !== 'tool') return next(step);
          const key = JSON.stringify(step.input);
          return cached.has(key)
            ? of(cached.get(key) as T)
            : next(step).pipe(tap((value) => cached.set(key, value)));
        },
    });
    let runs = 0;
    const counted = tool({ name: 'echo', description: 'Echoes.', run: () => `${(runs += 1)}` });
    const model = () =>
      scriptedModel([toolCall('echo', {}, 'one')], [toolCall('echo', {}, 'one')], [text('Done.')]);
    const agent = createAgent({ model: model(), tools: [counted], use: [cache] });
    await agent.call('?');
    await agent.call('?', { model: model() });
    expect(runs).toBeLessThan(3);
  });

  it('Y4: open around the whole call, its first event and its last, outermost first', async () => {
    const notes: string[] = [];
    const opening = (name: string, priority: number): Layer =>
      layer(name, {
        priority,
        record: () => (call$) =>
          call$.pipe(
            tap({ subscribe: () => notes.push(`${name} opens`) }),
            finalize(() => notes.push(`${name} closes`)),
          ),
        call: () => (next) => (call) => {
          notes.push(`${name} is called`);
          return next(call);
        },
      });
    const agent = createAgent({
      model: scriptedModel([text('Hello.')]),
      use: [opening('inner', 20), opening('outer', 10)],
    });
    await lastValueFrom(agent.stream$('?').pipe(tap(({ type }) => notes.push(type))));
    const [calls, last] = [['outer is called', 'inner is called'], 'postCall'];
    expect(notes.slice(0, 4)).toEqual(['outer opens', 'inner opens', ...calls]);
    expect(notes.slice(-3)).toEqual([last, 'inner closes', 'outer closes']);
  });

  it('Y4, I10: no layer begins a call that cannot be opened, and each listener gets the reason', async () => {
    const begun: string[] = [];
    const heard: string[] = [];
    const agent = createAgent({
      model: scriptedModel(),
      use: [
        layer('late', { call: () => (next) => (call) => (begun.push('late'), next(call)) }),
        layer('shut', { record: () => () => throwError(() => new Error('no')) }),
      ],
    });
    agent.events$.subscribe(({ type }) => heard.push(type));
    const events = await record(agent.stream$('?').pipe(catchError(() => EMPTY)));
    expect(events.map(({ type }) => type)).toEqual(['error']);
    expect([begun, heard]).toEqual([[], ['error']]);
  });

  it.each<[Layer['record'], string]>([
    [() => () => EMPTY, "A layer's 'record' must subscribe once"],
    [() => (call$) => concat(call$, call$), "A layer's 'record' must subscribe once"],
    [
      () => {
        throw new Error('torn');
      },
      "In the layer 'odd': torn",
    ],
    // As it began, its error is its own, also if that is no value.
    [
      () => (call$) =>
        concat(
          call$.pipe(ignoreElements()),
          throwError(() => undefined),
        ),
      'undefined',
    ],
  ])('Y3: an odd opening is an error that says what is odd (%#)', async (open, why) => {
    const use = [layer('odd', { ...(open && { record: open }) })];
    const agent = createAgent({ model: scriptedModel([text('a')], [text('b')]), use });
    await expect(agent.call('?')).rejects.toThrow(why);
  });

  it('I5: a call that is left before it is open has not begun', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const late$ = cold('-----a');
      const heard: string[] = [];
      const agent = createAgent({
        model: scriptedModel([text('a')]),
        use: [layer('late', { record: () => (call$) => late$.pipe(switchMap(() => call$)) })],
      });
      agent.events$.subscribe(({ type }) => heard.push(type));
      expectObservable(agent.call$('?', { scheduler }), '^--!').toBe('');
      expectSubscriptions(late$.subscriptions).toBe('^--!');
      expectObservable(of(heard).pipe(delay(9))).toBe('---------(a|)', { a: [] });
    });
  });

  it('S1: an interrupt does not wait for a call below that is not open yet', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const below = createAgent({
        model: scriptedModel([text('a')]),
        use: [layer('late', { record: () => (call$) => NEVER.pipe(switchMap(() => call$)) })],
      });
      const ask = tool({
        name: 'echo',
        description: 'Asks.',
        run: (_, parent) => below.call$('?', { parent }),
      });
      const agent = createAgent({ model: oneTool(), tools: [ask] });
      const options = { scheduler, use: [interruptOn(cold('---x'))] };
      const reasons$ = agent.call$('?', options).pipe(map(({ reason }) => reason));
      expectObservable(reasons$).toBe('---(a|)', { a: 'interrupted' });
    });
  });

  it.each([
    [[{}], /'use' takes a list of interceptors/],
    [[{ name: '' }], /'use' takes a list of interceptors/],
    ['budget', /'use' must be a list of layers/],
    [[{ name: 'x', stpe: () => 0 }], /The layer 'x' has no option 'stpe'/],
  ])('refuses what is no layer (%#)', (use, why) => {
    expect(() => createAgent({ model: scriptedModel(), use: use as never })).toThrow(why);
  });
});
