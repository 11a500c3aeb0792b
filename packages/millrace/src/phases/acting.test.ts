import { describe, expect, it } from '@jest/globals';
import {
  concat,
  delay,
  filter,
  lastValueFrom,
  map,
  NEVER,
  Observable,
  of,
  throwError,
  timer,
} from 'rxjs';
import { z } from 'zod';
import {
  createAgent,
  inProcessMemory,
  on,
  only,
  type Tool,
  tool,
  type ToolContext,
  toolOutput,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const define = (name: string, run: () => unknown, exclusive = false): Tool =>
  tool({ name, description: `Does ${name}.`, run, exclusive });

/** What a batch of tools gave, as the reply tells it. */
const outputs = async (tools: readonly Tool[], ...uses: Parameters<typeof toolCall>[]) => {
  const model = scriptedModel(
    uses.map((use) => toolCall(...use)),
    [text('done')],
  );
  const reply = await createAgent({ model, tools }).call('?');
  return reply.toolCalls.map(({ output, isError }) => `${isError ? '! ' : ''}${output}`);
};

describe('the result of a tool', () => {
  it.each([
    ['a text', () => 'text', 'text'],
    ['a number', () => 5, '5'],
    ['an object', () => ({ a: [1] }), '{"a":[1]}'],
    ['nothing', () => undefined, '(no output)'],
    ['null', () => null, 'null'],
    ['a big number', () => ({ n: 12n }), '{"n":"12"}'],
    ['a Promise', () => Promise.resolve('later'), 'later'],
    ['an Observable of texts', () => of('a', 'b'), 'ab'],
    ['an Observable of values', () => of({ p: 1 }, { p: 2 }), '{"p":2}'],
    ['an empty Observable', () => of(), '(no output)'],
    ['progress and then a text', () => of({ p: 1 }, 'done'), 'done'],
    ['a Promise of an Observable', () => Promise.resolve(of('x', 'y')), 'xy'],
    [
      'what a generator returns',
      async function* () {
        yield await Promise.resolve('progress');
        return 'result';
      },
      'result',
    ],
    [
      'the texts of a generator',
      async function* () {
        yield await Promise.resolve('a');
        yield 'b';
      },
      'ab',
    ],
    ['progress and then a tool output', () => of('x', toolOutput({ content: 'out' })), 'out'],
    [
      'what a generator without promises returns',
      function* () {
        yield 'progress';
        return 'sync';
      },
      'sync',
    ],
    ['a spread of an output', () => ({ ...toolOutput({ content: 'out' }), details: 1 }), 'out'],
    ['blocks', () => toolOutput({ content: [{ type: 'text', text: 'block' }] }), 'block'],
  ])('T1: may be %s', async (_, run, expected) => {
    expect(await outputs([define('f', run)], ['f'])).toEqual([expected]);
  });

  it('T1: every emission is an actingChunk immediately', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const counting = define('tool', () => concat(of('a'), of('b').pipe(delay(3, scheduler))));
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [counting] });
      const chunk$ = agent.stream$('?', { scheduler }).pipe(
        only('actingChunk'),
        map(({ value }) => value),
      );
      expectObservable(chunk$).toBe('a--(b|)');
    });
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no battery');
      },
      '! Failed: no battery',
    ],
    ['rejects', () => Promise.reject(new Error('no net')), '! Failed: no net'],
    ['errors', () => throwError(() => new Error('late')), '! Failed: late'],
    [
      'throws a text',
      () => {
        throw 'text';
      },
      '! Failed: text',
    ],
    [
      'throws nothing',
      () => {
        throw undefined;
      },
      '! Failed: undefined',
    ],
    [
      'throws what cannot be shown',
      () => {
        throw Object.create(null);
      },
      '! Failed: a value that cannot be shown was thrown',
    ],
  ])('I2: a tool that %s is an observation', async (_, run, expected) => {
    expect(await outputs([define('f', run), define('g', () => 'ok')], ['f'], ['g'])).toEqual([
      expected,
      'ok',
    ]);
  });

  it.each([[undefined], [null], [5], [[{ type: 'text' }]], [[null]]])(
    'X12: an output with broken content (%j) is an observation',
    async (content) => {
      const broken = define('f', () => toolOutput({ content: content as never }));
      const [output] = await outputs([broken, define('g', () => 'ok')], ['f'], ['g']);
      expect(output).toMatch(/^! The tool's output is invalid/);
    },
  );

  it('X12: a tool that validates twice runs once', async () => {
    const valid = { valid: true as const, value: {} };
    const twice = { ...define('f', () => 'ran'), validation$: () => of(valid, valid) };
    expect(await outputs([twice], ['f'])).toEqual(['ran']);
  });

  it('X12: a cycle is an observation', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    expect(await outputs([define('f', () => cycle)], ['f'])).toEqual([
      expect.stringMatching(/^! The tool's output cannot be converted to JSON/),
    ]);
  });

  it('I3: an unknown tool is an observation that lists the names', async () => {
    const tools = [define('f', () => 1), define('g', () => 1)];
    expect(await outputs(tools, ['h'], ['toString'], ['f'])).toEqual([
      "! No tool is named 'h'. The tools are: f, g.",
      "! No tool is named 'toString'. The tools are: f, g.",
      '1',
    ]);
  });

  it('X11: arguments that are no JSON object are an observation, and the tool is not run', async () => {
    const model = scriptedModel([{ type: 'toolCall', name: 'f', json: '{"a":' }], [text('done')]);
    const reply = await createAgent({ model, tools: [define('f', () => 'ran')] }).call('?');
    expect(reply.toolCalls[0]?.output).toMatch(/not a JSON object: {"a":/);
  });

  it('T14: a long observation is cut, with a marker that says how much is missing', async () => {
    const model = scriptedModel([toolCall('f')], [text('done')]);
    const long = define('f', () => 'x'.repeat(30));
    const reply = await createAgent({ model, tools: [long] }).call('?', {
      limits: { maxObservation: 10 },
    });
    expect(reply.toolCalls[0]?.output).toBe('xxxxxxxxxx\n[… 20 of 30 characters omitted]');
  });

  it('T14: without a limit of its own, an agent cuts observations at 16,000 characters', async () => {
    const lengths = { whole: 16_000, long: 16_001 };
    const tools = Object.entries(lengths).map(([name, length]) =>
      define(name, () => 'x'.repeat(length)),
    );
    const [whole, long] = await outputs(tools, ['whole'], ['long']);
    expect(whole).toBe('x'.repeat(16_000));
    expect(long).toBe(`${'x'.repeat(16_000)}\n[… 1 of 16001 characters omitted]`);
  });

  it('X12, T14: an output of 50 MB is cut, and costs no sibling its result', async () => {
    const huge = define('huge', () => ({
      list: Array.from({ length: 50 }, () => 'x'.repeat(1e6)),
    }));
    const [cut, whole] = await outputs([huge, define('f', () => 'ok')], ['huge'], ['f']);
    expect(cut).toMatch(/omitted\]$/);
    expect(cut?.length).toBeLessThan(16_100);
    expect(whole).toBe('ok');
  });

  it('T4: one tool message holds all results; details are for the user interface only', async () => {
    const memory = inProcessMemory();
    const model = scriptedModel([toolCall('f'), toolCall('g')], [text('done')]);
    const tools = [
      define('f', () => toolOutput({ content: 'a', details: { chart: [1] } })),
      define('g', () => toolOutput({ content: 'b', isError: true })),
    ];
    const session = sessions(createAgent({ model, tools }), { memory }).open('s');
    const events = await record(session.stream$('?'));
    expect(events.find(({ type }) => type === 'postActing')).toMatchObject({
      result: { details: { chart: [1] } },
    });
    expect(model.requests[1]?.messages.at(-1)).toEqual({
      id: expect.any(String),
      role: 'tool',
      content: [
        {
          type: 'tool_result',
          toolCallId: 'call_1_0',
          content: [{ type: 'text', text: 'a' }],
          isError: false,
        },
        {
          type: 'tool_result',
          toolCallId: 'call_1_1',
          content: [{ type: 'text', text: 'b' }],
          isError: true,
        },
      ],
    });
    expect((await lastValueFrom(memory('s').load$()))[2]).toMatchObject({
      content: [{ details: { chart: [1] } }, {}],
    });
  });
});

describe('the results in later requests', () => {
  it.each([
    ['details', () => toolOutput({ content: 'a', details: { chart: [1] } })],
    ['a note, because it repeats', () => 'a'],
  ])(
    'T4: one with %s is the same frozen object each time, so serializers can cache it',
    async (_, run) => {
      const uses = Array.from({ length: 4 }, () => [toolCall('f')]);
      const model = scriptedModel(...uses, [text('done')]);
      await createAgent({ model, tools: [define('f', run)] }).call('?');
      const results = model.requests.map(({ messages }) =>
        messages.filter(({ role }) => role === 'tool'),
      );
      const last = results.at(-1) ?? [];
      expect(last).toHaveLength(4);
      expect(last.every(isFrozenThrough)).toBe(true);
      results.forEach((shown) => {
        shown.forEach((message, at) => {
          expect(message).toBe(last[at]);
        });
      });
    },
  );
});

const isFrozenThrough = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Object.isFrozen(value) && Object.values(value).every(isFrozenThrough));

describe('the input of a tool', () => {
  const typed = tool({
    name: 'typed',
    description: 'Takes a city and days.',
    input: jsonSchema({
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer', minimum: 1 },
        unit: { enum: ['C', 'F'] },
      },
      required: ['city'],
    }),
    run: (input) => input,
  });

  it('T5: unknown keys are pruned', async () => {
    expect(await outputs([typed], ['typed', { city: 'Oslo', mood: 'good' }])).toEqual([
      '{"city":"Oslo"}',
    ]);
  });

  it('T5: what is wrong is an observation with the parameter, the rule and the value', async () => {
    const [problems] = await outputs([typed], ['typed', { days: 0.5, unit: 'K' }]);
    expect(problems?.split('\n')).toEqual([
      '! The arguments for typed are invalid:',
      '- city: is required, but missing',
      '- days: must be integer (received 0.5)',
      '- days: must be >= 1 (received 0.5)',
      '- unit: must be equal to one of the allowed values: ["C","F"] (received "K")',
    ]);
  });

  it('T5: nothing is coerced', async () => {
    expect(await outputs([typed], ['typed', { city: 5 }])).toEqual([
      '! The arguments for typed are invalid:\n- city: must be string (received 5)',
    ]);
  });

  it('I13: a Standard Schema validates, and run gets what it makes of the input', async () => {
    const schema = z.object({
      at: z.string().transform((day) => day.length),
      n: z.number().default(2),
    });
    const zod = tool({
      name: 'zod',
      description: 'Typed by zod.',
      input: schema,
      run: (input) => input,
    });
    expect(await outputs([zod], ['zod', { at: 'abc', x: 1 }], ['zod', { at: 1 }])).toEqual([
      '{"at":3,"n":2}',
      expect.stringMatching(
        /^! The arguments for zod are invalid:\n- at: .*expected string.*\(received 1\)/,
      ),
    ]);
  });

  it('I13: what an interceptor made of the input is what is validated', async () => {
    const model = scriptedModel([toolCall('typed', { city: 'Oslo' })], [text('done')]);
    const spoil = on(
      'preActing',
      map((event) => ({ ...event, toolCall: { ...event.toolCall, input: {} } })),
    );
    const reply = await createAgent({ model, tools: [typed], use: [spoil] }).call('?');
    expect(reply.toolCalls).toMatchObject([{ isError: true, input: {} }]);
  });

  it('T17: prototype keys never reach a prototype', async () => {
    const hostile = JSON.parse(
      '{"city":"x","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    ) as never;
    const open = tool({
      name: 'open',
      description: 'Takes anything.',
      input: jsonSchema({ type: 'object' }),
      run: (input) => Object.keys(input),
    });
    const given = await outputs([typed, open], ['typed', hostile], ['open', hostile]);
    expect(given).toEqual(['{"city":"x"}', '["city"]']);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  it('gives each run an input of its own, which it may change', async () => {
    const spoiler = tool({
      name: 'spoiler',
      description: 'Changes its input.',
      input: jsonSchema({
        type: 'object',
        properties: { list: { type: 'array', items: { type: 'number' } } },
      }),
      run: ({ list = [] }) => list.push(4),
    });
    const model = scriptedModel([toolCall('spoiler', { list: [1, 2, 3] })], [text('done')]);
    const reply = await createAgent({ model, tools: [spoiler] }).call('?');
    expect(reply.toolCalls).toMatchObject([{ output: '4', input: { list: [1, 2, 3] } }]);
  });
});

describe('a batch of tools', () => {
  const after = (name: string, ms: number, exclusive = false): Tool =>
    tool({
      name,
      description: `Takes ${ms} ms.`,
      exclusive,
      run: (_input, { scheduler }) => timer(ms, scheduler).pipe(map(() => name)),
    });

  /** When each tool begins and ends, as marbles. */
  const timeline = (tools: readonly Tool[], expected: string, parallel: boolean | number = true) =>
    marbles(({ cold, expectObservable, scheduler }) => {
      const uses = tools.map(({ name }) => toolCall(name));
      const model = scriptedModel(uses, () =>
        cold('(tf|)', { t: text('done'), f: { type: 'finish', finish: 'stop' } }),
      );
      const mark$ = createAgent({ model, tools })
        .stream$('?', { scheduler, limits: { parallel } })
        .pipe(
          only('preActing', 'postActing'),
          map(({ type, toolCall: { name } }) => (type === 'preActing' ? name : name.toUpperCase())),
        );
      expectObservable(mark$).toBe(expected);
    });

  it('T3: run at the same time, each result an event when it is ready', () => {
    timeline([after('a', 12), after('b', 6)], '(ab)--B-----(A|)');
  });

  it('T3: no more than five at the same time', () => {
    timeline(
      'abcdef'.split('').map((name) => after(name, 20)),
      '(abcde) 13ms (AfBCDE) 12ms (F|)',
    );
  });

  it('T3: one by one, where parallel is false', () => {
    timeline([after('a', 9), after('b', 9)], 'a--------(Ab)-----(B|)', false);
  });

  it('T3: an exclusive tool runs alone', () => {
    timeline(
      [after('a', 10), after('b', 10, true), after('c', 10)],
      'a---------(Ab)------(Bc)------(C|)',
    );
  });

  it('T3: results stand in call order, for any order of their ends', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const model = scriptedModel([toolCall('a'), toolCall('b')], () =>
        cold('(tf|)', { t: text('done'), f: { type: 'finish', finish: 'stop' } }),
      );
      const reply$ = createAgent({ model, tools: [after('a', 9), after('b', 3)] }).call$('?', {
        scheduler,
      });
      expectObservable(
        reply$.pipe(
          map(({ toolCalls }) => toolCalls.map(({ output, ms }) => `${output}${ms}`).join()),
        ),
      ).toBe('---------(r|)', { r: 'a9,b3' });
    });
  });

  it('T8: a tool that takes too long is an observation, its signal aborted', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const aborted: string[] = [];
      const deaf = tool({
        name: 'tool',
        description: 'Never settles.',
        run: (_input, { signal }) => {
          signal.addEventListener('abort', () => aborted.push('aborted'));
          return NEVER;
        },
      });
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [deaf] });
      const output$ = agent
        .call$('?', { scheduler })
        .pipe(map(({ toolCalls }) => `${toolCalls[0]?.output} ${aborted.join()}`));
      expectObservable(output$).toBe('60s (r|)', {
        r: "Failed: The tool 'tool' did not finish within 60000 ms. aborted",
      });
    });
  });

  it('T8: a tool that takes too long is torn down before its result is reported', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const seen: string[] = [];
      const endless = tool({
        name: 'tool',
        description: 'Never settles.',
        run: () => new Observable(() => () => seen.push('teardown')),
      });
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [endless] });
      const order$ = agent.stream$('?', { scheduler }).pipe(
        only('postActing'),
        map(() => [...seen, 'postActing'].join()),
      );
      expectObservable(order$).toBe('60s (r|)', { r: 'teardown,postActing' });
    });
  });

  it('gives all contexts of tool calls one shape, and copies of them a signal', async () => {
    const contexts: ToolContext[] = [];
    const model = scriptedModel([toolCall('slow'), toolCall('slow')], [text('Done.')]);
    const slow = tool({
      name: 'slow',
      description: 'Keeps its context.',
      run: (_input, context) => {
        contexts.push(context);
        const derived: unknown[] = [{ ...context }, Object.create(context), new Proxy(context, {})];
        for (const each of derived) expect(each).toMatchObject({ signal: context.signal });
        return 'ok';
      },
    });
    await createAgent({ model, tools: [slow] }).call('?');
    const accessors = contexts.map((it) => Object.getOwnPropertyDescriptor(it, 'signal')?.get);
    expect(accessors).toHaveLength(2);
    expect(new Set(accessors).size).toBe(1);
    expect(contexts[0]?.signal).not.toBe(contexts[1]?.signal);
  });

  it('I5: a tool that ends its own call has its signal aborted', async () => {
    const abort = new AbortController();
    let signal: AbortSignal | undefined;
    const quitter = tool({
      name: 'tool',
      description: 'Aborts the call that runs it.',
      run: (_input, context) => {
        ({ signal } = context);
        abort.abort();
        return NEVER;
      },
    });
    const agent = createAgent({ model: scriptedModel([toolCall('tool')]), tools: [quitter] });
    await expect(agent.call('?', { signal: abort.signal })).rejects.toThrow();
    expect(signal?.aborted).toBe(true);
  });

  it('T8: a tool has its own timeout by its name', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const agent = createAgent({
        model: model(['(cf|)', '(tf|)']),
        tools: [define('tool', () => NEVER)],
      });
      const ms$ = agent
        .call$('?', { scheduler, limits: { timeouts: { tools: { tool: 7 } } } })
        .pipe(map(({ toolCalls }) => toolCalls[0]?.ms));
      expectObservable(ms$).toBe('-------(m|)', { m: 7 });
    });
  });

  it('T18: every use has one preActing and one postActing, also an unknown or rejected one', async () => {
    const model = scriptedModel(
      [toolCall('nope'), toolCall('f'), toolCall('f', { x: 1 })],
      [text('done')],
    );
    const veto = on(
      'preActing',
      filter(({ toolCall: { input } }) => !('x' in input)),
    );
    const agent = createAgent({ model, tools: [define('f', () => 1)], use: [veto] });
    const events = await record(agent.stream$('?'));
    expect(events.filter(({ type }) => type === 'preActing')).toHaveLength(3);
    expect(events.filter(({ type }) => type === 'postActing')).toHaveLength(3);
  });
});
