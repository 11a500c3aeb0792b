import { describe, expect, it, jest } from '@jest/globals';
import { concat, defer, map, of, throwError, timer } from 'rxjs';
import {
  acceptExtras,
  type CallOptions,
  createAgent,
  only,
  requireApproval,
  textOf,
  type Tool,
  tool,
  toolOutput,
  transient,
} from '../index.js';
import type { ToolPolicy } from './types.js';
import { jsonSchema } from '../schema/index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';

type Uses = readonly (readonly [name: string, input?: Record<string, unknown>])[];

/** Plays turns of tool uses, and tells what the model was told of each. */
const outputs = async (
  tools: readonly Tool[],
  turns: readonly Uses[],
  options: CallOptions<undefined> = {},
) => {
  const model = scriptedModel(
    ...turns.map((uses) => uses.map(([name, input]) => toolCall(name, input))),
    [text('done')],
  );
  const events = await record(
    createAgent({ model, tools }).stream$('?', { limits: { maxIterations: 50 }, ...options }),
  );
  const told = model.requests
    .at(-1)
    ?.messages.flatMap((message) =>
      message.role === 'tool' ? message.content.map((result) => textOf(result)) : [],
    );
  return {
    outputs: told ?? [],
    warnings: events.flatMap((event) => (event.type === 'warning' ? [event.message] : [])),
    events,
    model,
  };
};

const simple = (name: string, run: () => unknown, policy: ToolPolicy = {}): Tool =>
  tool({
    name,
    description: `Does ${name}.`,
    input: jsonSchema({ type: 'object' }),
    run,
    ...policy,
  });

const fails = () => {
  throw new Error('no');
};

describe('T8: a tool with retry', () => {
  /** A tool that fails so often before it succeeds, and at what times it is run. */
  const flaky = (failures: number, error: Error, retry?: ToolPolicy['retry']) => {
    const at: number[] = [];
    const run = tool({
      name: 'tool',
      description: 'Fails at first.',
      run: (_input, { scheduler }) =>
        defer(() => {
          at.push(scheduler.now());
          return at.length <= failures
            ? concat(
                of({ begun: at.length }),
                throwError(() => error),
              )
            : of('at last');
        }),
      ...(retry !== undefined && { retry }),
    });
    return { run, at };
  };

  it.each([
    ['linearly, where nothing is said', {}, [0, 800, 2400]],
    ['linearly', { attempts: 4, backoffMs: 10 }, [0, 10, 30, 60]],
    ['exponentially', { attempts: 4, backoffMs: 10, growth: 'exponential' }, [0, 10, 30, 70]],
  ] as const)('waits longer each time, %s, and gives up in the end', (_, retry, expected) => {
    marbles(({ model, expectObservable, scheduler, flush }) => {
      const { run, at } = flaky(9, transient('busy'), retry);
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [run] });
      const output$ = agent
        .call$('?', { scheduler })
        .pipe(map(({ toolCalls }) => toolCalls[0]?.output));
      expectObservable(output$).toBe(`${expected.at(-1)}ms (o|)`, { o: 'Failed: busy' });
      flush();
      expect(at).toEqual(expected);
    });
  });

  it('succeeds when an attempt does; what an attempt emitted is seen', async () => {
    const { run, at } = flaky(2, transient(new Error('busy')), { backoffMs: 0 });
    const { outputs: given, events } = await outputs([run], [[['tool']]]);
    expect(given).toEqual(['at last']);
    expect(at).toHaveLength(3);
    expect(events.filter(({ type }) => type === 'actingChunk')).toHaveLength(3);
  });

  it('runs once after an error that is not marked, and so does one without retry', async () => {
    const unmarked = flaky(2, new Error('for good'), { backoffMs: 0 });
    await outputs([unmarked.run], [[['tool']]]);
    const without = flaky(2, transient('busy'));
    await outputs([without.run], [[['tool']]]);
    expect([unmarked.at.length, without.at.length]).toEqual([1, 1]);
  });

  it('has its time for all attempts together', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const { run } = flaky(9, transient('busy'), { attempts: 9, backoffMs: 10 });
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [run] });
      const output$ = agent
        .call$('?', { scheduler, limits: { timeouts: { tools: { tool: 25 } } } })
        .pipe(map(({ toolCalls }) => toolCalls[0]?.output));
      expectObservable(output$).toBe('25ms (o|)', {
        o: "Failed: The tool 'tool' did not finish within 25 ms.",
      });
    });
  });

  it.each([
    [{}, 5],
    [{ tools: { slow: 3 } }, 3],
    [{ toolMs: 2 }, 5],
  ])(
    'T8: a time of its own takes precedence over toolMs, and what the call sets by name over both: %j',
    (timeouts, ms) => {
      marbles(({ cold, expectObservable, scheduler }) => {
        const slow = tool({
          name: 'slow',
          description: 'Takes 9 ms.',
          timeoutMs: 5,
          run: (_input, lent) => timer(9, lent.scheduler),
        });
        const model = scriptedModel([toolCall('slow')], () =>
          cold('(tf|)', { t: text('done'), f: { type: 'finish', finish: 'stop' } }),
        );
        const ms$ = createAgent({ model, tools: [slow] })
          .call$('?', { scheduler, limits: { timeouts } })
          .pipe(map(({ toolCalls }) => toolCalls[0]?.ms));
        expectObservable(ms$).toBe(`${ms}ms (m|)`, { m: ms });
      });
    },
  );
});

describe('T9: a tool that fails', () => {
  it('is discouraged the third time in a row; a success in between counts again', async () => {
    let count = 0;
    const odd = simple('odd', () => {
      count += 1;
      return count === 3 ? 'fine' : fails();
    });
    const turns = [1, 2, 3, 4, 5, 6].map((n): Uses => [['odd', { n }]]);
    const { outputs: given } = await outputs([odd], turns);
    expect(given.map((output) => output.includes('Do not call it again'))).toEqual([
      ...[false, false, false],
      ...[false, false, true],
    ]);
    expect(given[5]).toBe(
      'The tool odd has failed 3 times in a row. Do not call it again: continue without it, or say what is missing.\nFailed: no',
    );
  });

  it('does so as often as maxToolErrors says, each tool for itself', async () => {
    const tools = [simple('a', fails), simple('b', fails)];
    const turns = [1, 2].map((n): Uses => [
      ['a', { n }],
      ['b', { n }],
    ]);
    const { outputs: given } = await outputs(tools, turns, { limits: { maxToolErrors: 0 } });
    expect(given.map((output) => /failed (\d)/.exec(output)?.[1])).toEqual(['1', '1', '2', '2']);
  });

  it('is reported later each time, if toolBackoffMs is set', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const agent = createAgent({
        model: model(['(cf|)', '(cf|)', '(tf|)']),
        tools: [simple('tool', fails)],
      });
      const told$ = agent.stream$('?', { scheduler, limits: { toolBackoffMs: 4 } }).pipe(
        only('postActing'),
        map(({ ms }) => ms),
      );
      expectObservable(told$).toBe('----a-------(b|)', { a: 0, b: 0 });
    });
  });
});

describe('T15: the very same call', () => {
  it('is reported to the model, and the third time in a row by a warning, too', async () => {
    const turns = [{ n: 1 }, { n: 1 }, { n: 1 }, { n: 2 }, { n: 1 }].map((input): Uses => [
      ['look', input],
    ]);
    const { outputs: given, warnings } = await outputs([simple('look', () => 'same')], turns);
    expect(given.map((output) => /arguments (\d) times/.exec(output)?.[1])).toEqual([
      undefined,
      ...['2', '3'],
      ...[undefined, undefined],
    ]);
    expect(given[1]).toMatch(/^You have called look .* Use its result.*\nsame$/);
    expect(warnings).toEqual([
      "The model called the tool 'look' with the same arguments 3 times in a row.",
    ]);
  });

  it('is one in any order of its keys', async () => {
    const turns: Uses[] = [[['look', { a: 1, b: [2] }]], [['look', { b: [2], a: 1 }]]];
    const { outputs: given } = await outputs([simple('look', () => 'same')], turns);
    expect(given.map((output) => output.includes('the same arguments'))).toEqual([false, true]);
  });

  it('does not count within one message, which has seen no result: dice are rolled three times', async () => {
    const roll = ['look', { sides: 6 }] as const;
    const other = ['look', { sides: 8 }] as const;
    const turns: Uses[] = [[roll, roll, roll], [roll], [other, roll], [other]];
    const { outputs: given, warnings } = await outputs([simple('look', () => 'same')], turns);
    expect(given.map((output) => /arguments (\d) times/.exec(output)?.[1])).toEqual([
      ...[undefined, undefined, undefined],
      '2',
      ...[undefined, undefined],
      undefined,
    ]);
    expect(warnings).toEqual([]);
  });

  const counted = (policy: ToolPolicy) => {
    const run = jest.fn(() => `run ${run.mock.calls.length}`);
    return { run, tool: simple('look', run, policy) };
  };

  it('is answered without a run where dedupe is set, later and within a batch', async () => {
    const { run, tool: look } = counted({ dedupe: true });
    const turns: Uses[] = [
      [
        ['look', { n: 1 }],
        ['look', { n: 1 }],
        ['look', { n: 2 }],
      ],
      [['look', { n: 1 }]],
    ];
    const { outputs: given, events } = await outputs([look], turns);
    expect(run).toHaveBeenCalledTimes(2);
    expect(given.map((output) => output.split('\n').at(-1))).toEqual([
      ...['run 1', 'run 1', 'run 2'],
      'run 1',
    ]);
    // T18: each use has its events all the same.
    expect(events.filter(({ type }) => type === 'postActing')).toHaveLength(4);
  });

  it('is run again if it had failed, or by default', async () => {
    const run = jest.fn(fails);
    const turns: Uses[] = [[['look', { n: 1 }]], [['look', { n: 1 }]]];
    await outputs([simple('look', run, { dedupe: true })], turns);
    expect(run).toHaveBeenCalledTimes(2);
    const { run: plain, tool: look } = counted({});
    await outputs([look], turns);
    expect(plain).toHaveBeenCalledTimes(2);
  });

  it('keeps blocks that are no text, and does not reach over to another call', async () => {
    const image = {
      type: 'image',
      source: { kind: 'url', url: 'https://a.example/i.png' },
    } as const;
    const run = jest.fn(() => toolOutput({ content: [image] }));
    const look = simple('look', run, { dedupe: true });
    const turns: Uses[] = [[['look', { n: 1 }]], [['look', { n: 1 }]]];
    const { model } = await outputs([look], turns);
    expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain('i.png');
    await outputs([look], turns);
    expect(run).toHaveBeenCalledTimes(2);
  });
});

describe('T16: maxToolCalls', () => {
  const look = simple('look', () => 'found');

  it('refuses more, in call order, and asks the model to answer without tools', async () => {
    const turns: Uses[] = [
      [['look', { n: 1 }]],
      [
        ['look', { n: 2 }],
        ['look', { n: 3 }],
      ],
    ];
    const { outputs: given, model } = await outputs([look], turns, { limits: { maxToolCalls: 2 } });
    expect(given).toEqual(['found', 'found', 'Not run: the limit of tool calls (2) is reached.']);
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual([
      ...[undefined, undefined],
      'none',
    ]);
  });

  it('counts what was run, and nothing else', async () => {
    const strict = tool({
      name: 'strict',
      description: 'Wants a number.',
      input: jsonSchema({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }),
      run: () => 'ran',
    });
    const denied = requireApproval(
      simple('denied', () => 'ran'),
      false,
    );
    const turns: Uses[] = [[['strict']], [['nope']], [['denied']], [['strict', { n: 1 }]]];
    const { outputs: given } = await outputs([strict, denied], turns, {
      limits: { maxToolCalls: 1 },
    });
    expect(given.at(-1)).toBe('ran');
  });

  it('of 0 runs nothing', async () => {
    const { outputs: given, model } = await outputs([look], [[['look']]], {
      limits: { maxToolCalls: 0 },
    });
    expect(given).toEqual(['Not run: the limit of tool calls (0) is reached.']);
    expect(model.requests[0]?.toolChoice).toBe('none');
  });
});

describe('T7: extras', () => {
  const rows = { big: 12n };
  const query = simple('query', () => toolOutput({ content: '2 rows', extras: { rows } }));
  const seen: unknown[] = [];
  const plot = acceptExtras(
    tool({
      name: 'plot',
      description: 'Draws rows.',
      input: jsonSchema({
        type: 'object',
        properties: { title: { type: 'string' }, rows: {} },
        required: ['title', 'rows'],
      }),
      run: (input) => {
        seen.push(input);
        return input.title === 'fail' ? fails() : 'drawn';
      },
    }),
    'rows',
  );

  it('go past the model to the first use from the next turn on whose tool accepts them', async () => {
    seen.length = 0;
    const turns: Uses[] = [
      [['query'], ['plot', { title: 'too early' }]],
      [
        ['plot', { title: 'a', rows: 'mine' }],
        ['plot', { title: 'too late', rows: 'mine' }],
      ],
    ];
    const { outputs: given, model, events } = await outputs([query, plot], turns);
    expect(seen).toEqual([{ title: 'a', rows }]);
    expect(seen[0]).toHaveProperty('rows', rows);
    expect(given.map((output) => output.split('\n').at(-1))).toEqual([
      '2 rows',
      '- rows: is required, but missing',
      'drawn',
      '- rows: is required, but missing',
    ]);
    // I12: the model has never heard of them.
    expect(model.requests[0]?.tools?.[1]?.inputSchema).toEqual({
      type: 'object',
      properties: { title: { type: 'string' } },
      required: ['title'],
    });
    expect(() => JSON.stringify([model.requests, events])).not.toThrow();
  });

  it('wait for it, and are gone with it, also when it fails', async () => {
    seen.length = 0;
    const turns: Uses[] = [
      [['query']],
      [['query']],
      [['plot', { title: 'fail' }]],
      [['plot', { title: 'again' }]],
    ];
    const { outputs: given } = await outputs([query, plot], turns);
    expect(seen).toHaveLength(1);
    expect(given.at(-1)).toContain('rows: is required');
  });

  it('of a batch add up in call order', async () => {
    const give = (name: string, extras: Record<string, unknown>, ms: number) =>
      tool({
        name,
        description: name,
        run: async () => {
          for (let turn = 0; turn < ms; turn += 1) await Promise.resolve();
          return toolOutput({ content: name, extras });
        },
      });
    const takes = acceptExtras(
      tool({
        name: 'takes',
        description: 'Takes both.',
        input: jsonSchema({ type: 'object', properties: { a: {}, b: {} } }),
        run: (input) => JSON.stringify(input),
      }),
      'a',
      'b',
    );
    const tools = [give('first', { a: 1, b: 1 }, 9), give('second', { b: 2 }, 1), takes];
    const { outputs: given } = await outputs(tools, [[['first'], ['second']], [['takes']]]);
    expect(given.at(-1)).toBe('{"a":1,"b":2}');
  });

  it('must be parameters of the tool that accepts them', () => {
    const bare = tool({ name: 'a', description: 'a', run: () => 1 });
    expect(() => acceptExtras(bare, 'rows')).toThrow(
      "acceptExtras() of the tool 'a' has no parameter 'rows'. Its parameters are: none.",
    );
  });
});
