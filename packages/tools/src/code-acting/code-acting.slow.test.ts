import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type AgentEvent,
  type AgentOptions,
  approval,
  createAgent,
  interruptOn,
  type Layer,
  on,
  suspend,
  textOf,
  tool,
  toolOutput,
} from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { budget } from 'millrace/traffic';
import {
  delay,
  filter,
  lastValueFrom,
  map,
  NEVER,
  Subject,
  take,
  takeUntil,
  takeWhile,
  tap,
  timer,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import { codeActing, type CodeActingOptions } from './index.js';

const terminate = jest.spyOn(Worker.prototype, 'terminate');
const ended: unknown[] = [];
afterEach(() => void ended.push(...terminate.mock.results.map(({ value }) => value)));
afterAll(() => Promise.all(ended).then(() => terminate.mockRestore()));

const city = jsonSchema({
  type: 'object',
  properties: { city: { type: 'string', description: 'Its name.' } },
  required: ['city'],
  additionalProperties: false,
});

const weather = tool({
  name: 'weather',
  description: 'Returns the weather.',
  input: city,
  run: ({ city: name }) => ({ city: name, degrees: name.length }),
});

interface RunOptions extends Partial<AgentOptions> {
  readonly acting?: CodeActingOptions;
  readonly layers?: readonly Layer[];
}

const agentFor = (code: string, { acting, layers = [], ...options }: RunOptions = {}) => {
  const model = scriptedModel([toolCall('run_javascript', { code }, 'c')], [text('Done.')]);
  // A busy machine may be slow: most of these tests are not about time.
  const use = [codeActing({ timeoutMs: 60_000, ...acting }), ...layers];
  return { model, agent: createAgent({ model, tools: [weather], ...options, use }) };
};

const run = async (code: string, options: RunOptions = {}) => {
  const { model, agent } = agentFor(code, options);
  const events = await record(agent.stream$('x'));
  const results = events.filter((event) => event.type === 'postActing');
  const last = results.find(({ toolCall: { id } }) => id === 'c')?.result;
  const inner = results.filter(({ toolCall: { id } }) => id !== 'c');
  return {
    model,
    events,
    text: last === undefined ? '' : textOf(last),
    isError: last?.isError,
    details: last?.details,
    inner: inner.map(({ toolCall: { id, name }, result }) => ({ id, name, text: textOf(result) })),
  };
};

describe('T23: codeActing', () => {
  it('runs code that calls tools one after the other and at the same time', async () => {
    const code = `
      const first = await tools.weather({ city: 'Oslo' });
      const [a, b] = await Promise.all(['Rome', 'Berlin'].map((city) => tools.weather({ city })));
      console.log(first.city);
      return a.degrees + b.degrees;`;
    const ran = await run(code);
    expect(ran).toMatchObject({
      text: 'Oslo\n\nResult: 10',
      isError: false,
      details: { logged: 'Oslo', result: '10', toolCalls: 3 },
      inner: [
        { id: 'c.1', name: 'weather', text: '{"city":"Oslo","degrees":4}' },
        { id: 'c.2', name: 'weather', text: '{"city":"Rome","degrees":4}' },
        { id: 'c.3', name: 'weather', text: '{"city":"Berlin","degrees":6}' },
      ],
    });
    const below = ran.events.find(
      (event) => event.type === 'preActing' && event.toolCall.id === 'c.1',
    );
    expect(below).toMatchObject({ agent: ['agent', 'code'], parentId: ran.events[0]?.callId });
    const logged = ran.events.filter((event) => event.type === 'actingChunk');
    expect(logged).toMatchObject([{ toolCall: { id: 'c' }, value: 'Oslo\n' }]);
  });

  it('shows the model one tool, which describes the others, and those it calls directly', async () => {
    const read = tool({ name: 'read_skill', description: 'Reads.', run: () => 'x' });
    const direct = tool({ name: 'ask-user', description: 'Asks.', run: () => 'x' });
    const { model } = agentFor('1');
    const options = { tools: [weather, read, direct], acting: { direct: ['ask-user'] } };
    const shown = (await run('1', options)).model.requests[0]?.tools ?? [];
    expect(shown.map(({ name }) => name)).toEqual(['read_skill', 'ask-user', 'run_javascript']);
    expect(shown.at(-1)?.description).toContain(
      '\ntools.weather(input: { city: string /* Its name. */ }) // Returns the weather.',
    );
    expect(model.requests).toEqual([]);
  });

  it('adds nothing to an agent without tools', async () => {
    const model = scriptedModel([text('Done.')]);
    await createAgent({ model, use: [codeActing()] }).call('x');
    expect(model.requests[0]?.tools ?? []).toEqual([]);
  });

  it('I23: fails the call without its sandbox, with the command that installs it', async () => {
    const plainOn = Reflect.get(Worker.prototype, 'on');
    const on = jest.spyOn(Worker.prototype, 'on').mockImplementation(function (
      this: Worker,
      name,
      listener,
    ) {
      if (name !== 'message') return plainOn.call(this, name, listener);
      queueMicrotask(() => listener({ type: 'notInstalled' }));
      return this;
    });
    await expect(run('1')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringMatching(/codeActing\(\) .*: npm install quickjs-emscripten-core@/),
    });
    on.mockRestore();
  });

  it('parses results that are JSON, unless they may be meant as text', async () => {
    const texts = ['7', '007', '1.0', '"a"', '[1]', 'null', '{"a"', 'true', ''];
    const get = tool({
      name: 'get',
      description: 'Gets.',
      input: jsonSchema({ type: 'object', properties: { at: { type: 'integer' } } }),
      run: ({ at = 0 }) => texts[at] ?? '',
    });
    const code = `const all = await Promise.all(${JSON.stringify(texts)}.map((_, at) => tools.get({ at })));
      return JSON.stringify(all)`;
    const { text: shown } = await run(code, { tools: [get] });
    expect(JSON.parse(shown)).toEqual([7, '007', '1.0', '"a"', [1], null, '{"a"', true, '']);
  });

  it('reports errors with the line of the code', async () => {
    const fail = tool({
      name: 'fail',
      description: 'Fails.',
      run: () => {
        throw new Error('No luck.');
      },
    });
    const code = `
      const errors = [];
      const add = (e) => errors.push(e.name + ': ' + e.message + e.stack);
      try { await tools.weather({ city: 5 }) } catch (e) { add(e) }
      try { await tools.weather("Oslo") } catch (e) { add(e) }
      try { await tools.wether({}) } catch (e) { add(e) }
      try { await tools.fail() } catch (e) { add(e) }
      console.log(errors.join('|'));
      await tools.fail();`;
    const { text: shown, isError } = await run(code, { tools: [weather, fail] });
    const [invalid, text, unknown, failed] = shown.split('|');
    expect(invalid).toMatch(/^ToolError: The arguments for weather are invalid:[^]*code\.js:4/u);
    expect(text).toContain('takes one object');
    expect(unknown).toMatch(/no tool 'wether'. The tools are: weather, fail\.[^]*code\.js:6/u);
    expect(failed).toMatch(/^ToolError: Failed: No luck\.[^]*code\.js:7/u);
    expect(shown).toMatch(/Error: ToolError: Failed: No luck\.\n[^|]*code\.js:9[^|]*$/u);
    expect(isError).toBe(true);
  });

  it('does not mix the notes on repeated calls with results', async () => {
    const code = `const all = [];
      for (let n = 0; n < 4; n += 1) all.push(await tools.weather({ city: 'Oslo' }));
      return JSON.stringify(all.map(({ degrees }) => degrees))`;
    expect((await run(code)).text).toBe('[4,4,4,4]');
  });

  it.each([
    ['const = 5', /SyntaxError/u],
    ['await new Promise(() => {})', /never settles/u],
  ])('reports the error of %j', async (code, message) => {
    expect(await run(code)).toMatchObject({ text: expect.stringMatching(message), isError: true });
  });

  it('lets the code catch what fails, and waits for calls that it does not await', async () => {
    const seen: string[] = [];
    const fail = tool({
      name: 'fail',
      description: 'Fails.',
      run: () => toolOutput({ content: 'no', isError: true }),
    });
    const note = tool({ name: 'note', description: 'Notes.', run: () => void seen.push('noted') });
    const code =
      'tools.note(); try { await tools.fail() } catch (e) { tools.note(); return e.message }';
    expect((await run(code, { tools: [fail, note] })).text).toBe('no');
    expect(seen).toEqual(['noted', 'noted']);
  });

  it('gives the code whole results, and the model only what it returns', async () => {
    const large = tool({ name: 'large', description: 'x', run: () => 'x'.repeat(50_000) });
    const code = 'const it = await tools.large(); console.log(it.length); return it';
    const whole = await run(code, { tools: [large] });
    expect(whole.text).toMatch(/^50000\n/u);
    expect(whole.text.length).toBeLessThan(10_100);
    const options = { tools: [large], acting: { maxResult: 100, maxLength: 200 } };
    expect((await run(code, options)).text).toMatch(/^1\d\d\n/u);
  });

  it('runs the same whenever it runs: time and randomness', async () => {
    const code = `return JSON.stringify([Date.now() === +new Date(), Date() === new Date().toString(),
      new Date(5).getTime(), new Date() instanceof Date, new Date().constructor === Date, Date.UTC(1970, 0), Math.random(), Math.random()])`;
    const [one, other] = await Promise.all(
      [1, 2].map(async () => {
        const { agent } = agentFor(code);
        const reply = await lastValueFrom(
          agent
            .stream$('x', { callId: 'same' })
            .pipe(filter((event) => event.type === 'postActing')),
        );
        return textOf(reply.result);
      }),
    );
    expect(one).toEqual(other);
    expect(JSON.parse(one ?? '')).toEqual([
      true,
      true,
      5,
      true,
      true,
      0,
      expect.any(Number),
      expect.any(Number),
    ]);
  });
});

describe('T23: the tool calls of code', () => {
  it('pass the interceptors and steps of the agent', async () => {
    const seen: string[] = [];
    const layers = [
      on(
        'preActing',
        tap(({ toolCall: { name } }) => seen.push(`pre ${name}`)),
      ),
      on(
        'postActing',
        map((event) =>
          event.toolCall.name === 'weather'
            ? {
                ...event,
                result: {
                  ...event.result,
                  content: [{ type: 'text' as const, text: '{"degrees":1}' }],
                },
              }
            : event,
        ),
      ),
      {
        name: 'watching',
        step: () => (next) => (step) => {
          if (step.kind === 'tool') seen.push(`step ${step.id}`);
          return next(step);
        },
      } satisfies Layer,
    ];
    const code = 'return (await tools.weather({ city: "Oslo" })).degrees';
    expect((await run(code, { layers })).text).toBe('1');
    expect(seen).toEqual(['pre run_javascript', 'step 1/0', 'pre weather', 'step 1/0']);
  });

  it('can be vetoed, and need approval', async () => {
    const code =
      'try { return await tools.weather({ city: "Oslo" }) } catch (e) { return e.message }';
    const veto = on(
      'preActing',
      filter(({ toolCall: { name } }) => name !== 'weather'),
    );
    expect((await run(code, { layers: [veto] })).text).toContain('was rejected');
    const asked: string[] = [];
    const approve = approval(({ tool: name }) => {
      asked.push(name);
      return name === 'run_javascript';
    });
    expect((await run(code, { layers: [approve] })).text).toContain('was not approved');
    expect(asked).toEqual(['run_javascript', 'weather']);
  });

  it('I20: run with an input that every decider of the agent has seen, in layers of any priority', async () => {
    const code =
      'try { return await tools.weather({ city: "Oslo" }) } catch (e) { return e.message }';
    const only = on(
      'preActing',
      filter(({ toolCall: { name, input } }) => name !== 'weather' || input['city'] === 'Oslo'),
    );
    const edits = approval(({ tool: name }) =>
      name === 'weather' ? { approved: true, input: { city: 'Rome' } } : true,
    );
    expect((await run(code, { layers: [only, edits] })).text).toContain('was rejected');
    const seen: number[] = [];
    const noting = (priority: number): Layer => ({
      name: `noting ${priority}`,
      priority,
      step:
        ({ info: { parentId } }) =>
        (next) =>
        (step) => {
          if (step.kind === 'intent' && parentId !== undefined) seen.push(priority);
          return next(step);
        },
    });
    await run(code, { layers: [5, 35, 50, 100, 200].map(noting) });
    expect(seen).toEqual([5, 35, 50, 100, 200]);
  });

  it('are limited, by the agent, by the layer and by a budget', async () => {
    const code = `let n = 0; try { for (;;) { await tools.weather({ city: 'Oslo' }); n += 1; } } catch (e) { return n + e.message }`;
    expect((await run(code, { limits: { maxToolCalls: 3 } })).text).toMatch(
      /^3.*limit of tool calls/u,
    );
    expect((await run(code, { acting: { maxCalls: 4 } })).text).toBe(
      '4Not run: code may call tools up to 4 times.',
    );
    const prices = { scripted: { input: 1, output: 1 } };
    const layers = [budget({ money: 1, prices, toolCalls: 3, onExceed: 'error' })];
    const { agent } = agentFor(code, { layers });
    await expect(agent.call('x')).rejects.toMatchObject({ code: 'budget' });
  });

  it.each([-50, 50])(
    'are counted by the code, not by what other tools claim (%s)',
    async (toolCalls) => {
      const odd = tool({
        name: 'odd',
        description: 'Claims to have run others.',
        run: () => toolOutput({ content: 'Odd.', details: { toolCalls } }),
      });
      const code = `let n = 0; try { for (;;) { await tools.weather({ city: 'Oslo' }); n += 1; } } catch (e) { return n }`;
      const model = scriptedModel(
        [toolCall('odd', {}, 'o')],
        [toolCall('run_javascript', { code }, 'c')],
        [text('Done.')],
      );
      const use = [codeActing({ timeoutMs: 60_000, direct: ['odd'] })];
      const agent = createAgent({ model, tools: [weather, odd], use, limits: { maxToolCalls: 4 } });
      const events = await record(agent.stream$('x'));
      const results = events.filter((event) => event.type === 'postActing');
      const ofCode = results.find(({ toolCall: { id } }) => id === 'c');
      expect(ofCode && textOf(ofCode.result)).toBe('3');
    },
  );

  it('run in parallel, up to the limit of the agent', async () => {
    const state = { running: 0, most: 0 };
    const slow = tool({
      name: 'slow',
      description: 'x',
      run: () => {
        state.running += 1;
        state.most = Math.max(state.most, state.running);
        return timer(1).pipe(tap(() => (state.running -= 1)));
      },
    });
    const code = 'await Promise.all(Array.from({ length: 8 }, () => tools.slow()))';
    await run(code, { tools: [slow], limits: { parallel: 3 } });
    expect(state.most).toBe(3);
  });

  it('may end the call with a final answer, and cannot suspend', async () => {
    const final = tool({
      name: 'final',
      description: 'x',
      run: () => toolOutput({ content: 'The end.', finalAnswer: true }),
    });
    const { agent } = agentFor('await tools.final(); for (;;);', { tools: [final] });
    expect(await agent.call('x')).toMatchObject({ text: 'The end.', reason: 'toolFinal' });
    const wait = tool({ name: 'wait', description: 'x', run: () => suspend() });
    const { text: shown, isError } = await run('await tools.wait()', { tools: [wait] });
    expect(shown).toContain('waits for an external result');
    expect(isError).toBe(true);
  });

  it('S6: are not repeated when the call is resumed, and the code continues with their results', async () => {
    const calls = createCallStore(inProcessCalls());
    const ran: string[] = [];
    const started$ = new Subject<void>();
    const state = { isCut: true };
    const act = tool({
      name: 'act',
      description: 'x',
      input: city,
      idempotent: true,
      run: ({ city: name }) => {
        ran.push(name);
        if (!state.isCut || name !== 'c') return { name, at: ran.length };
        return NEVER.pipe(tap({ subscribe: () => setImmediate(() => started$.next()) }));
      },
    });
    const code = `
      const [a, b] = await Promise.all(['a', 'b'].map((city) => tools.act({ city })));
      const seen = [Math.random(), Date.now()];
      console.log(JSON.stringify(seen));
      const c = await tools.act({ city: 'c' });
      return [a.at, b.at, c.name].join()`;
    const create = (...answers: ScriptedAnswer[]) => {
      const durable = journal(calls);
      const model = scriptedModel(...answers);
      const use = [
        durable,
        codeActing({ timeoutMs: 60_000, maxCalls: undefined, direct: undefined }),
      ];
      return { model, durable, agent: createAgent({ model, tools: [act], use }) };
    };
    const first = create([toolCall('run_javascript', { code }, 'x')]);
    const events = await lastValueFrom(
      first.agent.stream$('x', { callId: 'call' }).pipe(takeUntil(started$), toArray()),
    );
    const [logged] = events.flatMap((event) => (event.type === 'actingChunk' ? [event.value] : []));
    expect(ran).toEqual(['a', 'b', 'c']);
    state.isCut = false;
    const second = create([text('Done.')]);
    const reply = await lastValueFrom(second.durable.resume$(second.agent, 'call'));
    expect(reply.text).toBe('Done.');
    expect(ran).toEqual(['a', 'b', 'c', 'c']);
    const message = second.model.requests[0]?.messages.at(-1);
    expect(message?.role === 'tool' && textOf(message.content[0] ?? { content: [] })).toBe(
      `${String(logged)}\nResult: 1,2,c`,
    );
  });
});

describe('I5: the sandbox of codeActing ends', () => {
  beforeEach(() => void terminate.mockClear());

  const waiting = () => {
    const state = { isCancelled: false };
    const started$ = new Subject<void>();
    const wait = tool({
      name: 'wait',
      description: 'x',
      run: () =>
        NEVER.pipe(
          tap({
            subscribe: () => started$.next(),
            unsubscribe: () => (state.isCancelled = true),
          }),
        ),
    });
    return { state, started$, wait };
  };

  it('when the caller unsubscribes, in the same tick, with the tools that it called', async () => {
    const { state, started$, wait } = waiting();
    const { agent } = agentFor('await tools.wait()', { tools: [wait] });
    const started = lastValueFrom(started$.pipe(take(1)));
    const subscription = agent.call$('x').subscribe();
    await started;
    expect(terminate).not.toHaveBeenCalled();
    subscription.unsubscribe();
    expect(terminate).toHaveBeenCalledTimes(1);
    expect(state.isCancelled).toBe(true);
  });

  it('when the call is interrupted, after the tools that it called', async () => {
    const { state, started$, wait } = waiting();
    const layers = interruptOn(started$.pipe(delay(0)));
    const { agent } = agentFor('await tools.wait()', { tools: [wait], layers });
    const events = await record(agent.stream$('x'));
    const ends = events.flatMap((event) =>
      event.type === 'postActing'
        ? [event.toolCall.id]
        : event.type === 'postCall'
          ? [event.reply.reason]
          : [],
    );
    expect(ends).toEqual(['c.1', 'interrupted', 'c', 'interrupted']);
    expect(state.isCancelled).toBe(true);
    expect(terminate).toHaveBeenCalledTimes(1);
  });

  it('when time is up, also after a tool call, by the scheduler of the call', async () => {
    const code = 'await tools.weather({ city: "Oslo" }); console.log("here"); for (;;);';
    const { agent } = agentFor(code, { acting: { timeoutMs: 1_000 } });
    const scheduler = new VirtualTimeScheduler();
    const events$ = new Subject<AgentEvent>();
    const logged = lastValueFrom(events$.pipe(takeWhile(({ type }) => type !== 'actingChunk')));
    const all = lastValueFrom(events$.pipe(toArray()));
    agent.stream$('x', { scheduler }).subscribe(events$);
    await logged;
    expect(terminate).not.toHaveBeenCalled();
    scheduler.flush();
    expect(terminate).toHaveBeenCalledTimes(1);
    const last = (await all).findLast((event) => event.type === 'postActing');
    expect(last?.type === 'postActing' && textOf(last.result)).toBe(
      'here\n\nError: The code was stopped after 1000 ms.',
    );
  });

  it('when its memory is full', async () => {
    const code =
      'await tools.weather({ city: "Oslo" }); const all = []; for (;;) all.push(new Uint8Array(1e6))';
    expect((await run(code)).text).toMatch(/out of memory/u);
  });
});

it('X20: code cannot break out of its tools, nor break them for the process', async () => {
  const codes = [
    ['delete globalThis.tools; tools = 5; return typeof tools.weather', 'function'],
    ['tools.weather = 5; return typeof tools.weather', 'function'],
    ['return tools.weather.constructor("return typeof process")()', 'undefined'],
    ['return typeof tools.__proto__', /no tool '__proto__'/u],
    ['return String(tools)', /no tool 'toString'/u],
    ['return typeof (await tools)', 'object'],
    ['await tools.weather({ city: "x".repeat(2e6) })', /the input has 2\d{6} characters/u],
    ['return await tools.weather({ toJSON: () => 5 })', /invalid|not a JSON object/u],
    ['return await tools.weather({ toJSON: () => undefined })', /not JSON/u],
    ['const a = {}; a.a = a; return await tools.weather(a)', /circular/u],
    [
      'return (await tools.weather(JSON.parse(`{"city":"Oslo","__proto__":{"polluted":1}}`))).degrees',
      '4',
    ],
    [
      'JSON.parse = JSON.stringify = () => { throw 1 }; return (await tools.weather({ city: "Oslo" })).degrees',
      '4',
    ],
  ] as const;
  const code = `
    const texts = [];
    for (const code of ${JSON.stringify(codes.map(([it]) => it))}) {
      const act = (async () => {}).constructor(code);
      texts.push(await act().then(String, String));
    }
    return texts.join('|')`;
  const { text: shown } = await run(code);
  const texts = shown.split('|');
  for (const [index, [, expected]] of codes.entries()) {
    if (typeof expected === 'string') expect(texts[index]).toBe(expected);
    else expect(texts[index]).toMatch(expected);
  }
  expect('polluted' in {}).toBe(false);
});

it.each([
  [{ maxCalls: 0 }, "'maxCalls' must be"],
  [{ memoryMb: 1 }, "'memoryMb' must be"],
  [{ direct: 'x' }, "'direct' must be"],
  [{ time: 1 }, "no option 'time'"],
])('refuses the options %j', (options, message) => {
  expect(() => codeActing(options as never)).toThrow(message);
});
