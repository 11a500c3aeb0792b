import { describe, expect, it } from '@jest/globals';
import { type } from 'arktype';
import { concatMap, delay, lastValueFrom, map, NEVER, of, timer } from 'rxjs';
import { z } from 'zod';
import {
  acceptExtras,
  type Approver,
  createAgent,
  inProcessMemory,
  type Interceptor,
  interruptOn,
  type JsonSchema,
  on,
  prepare,
  preset,
  requireApproval,
  textOf,
  type Tool,
  tool,
  toolGroup,
  toolOutput,
  transient,
} from '../index.js';
import type { ToolPolicy } from './types.js';
import { jsonSchema } from '../schema/index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const run1 = (
  used: Tool | readonly Tool[],
  use = toolCall('t', { a: 1 }),
  interceptors: readonly Interceptor[] = [],
) => {
  const model = scriptedModel([use], [text('done')]);
  const tools = Array.isArray(used) ? used : [used];
  const memory = inProcessMemory();
  const agent = createAgent({ model, tools: tools as readonly Tool[], use: interceptors });
  return { model, memory, session: sessions(agent, { memory }).open('s') };
};

const numbers = (policy: ToolPolicy = {}, run: (input: { a: number }) => unknown = (it) => it) =>
  tool({
    name: 't',
    description: 'Takes a number.',
    input: jsonSchema({
      type: 'object',
      properties: { a: { type: 'number' }, key: { type: 'string' }, list: { type: 'array' } },
      required: ['a'],
    }),
    run,
    ...policy,
  });

describe('what the program sets for a tool', () => {
  it('I12: is nowhere to be read, also when an approver gives back all that it was shown', async () => {
    const edits: Approver = ({ input }) => ({
      approved: true,
      input: { ...(input as object), a: 2 },
    });
    const { model, memory, session } = run1(
      preset(requireApproval(numbers(), edits), { key: 'SECRET' }),
    );
    const events = await record(session.stream$('?'));
    const stored = await lastValueFrom(memory('s').load$());
    const ran = events.find(({ type: it }) => it === 'postActing');
    expect(ran).toMatchObject({ result: { content: [{ text: '{"a":2,"key":"SECRET"}' }] } });
    const told = JSON.stringify([events, stored, model.requests]).replaceAll(
      String.raw`{\"a\":2,\"key\":\"SECRET\"}`,
      '',
    );
    expect(told).not.toContain('SECRET');
    expect(told).toContain('"input":{"a":2}');
  });

  it.each([
    [
      'arktype',
      type({ a: 'number', key: 'string' }).narrow((_it, context) => context.mustBe('consistent')),
    ],
    [
      'zod',
      z.object({ a: z.number(), key: z.string() }).check((it) => {
        const message = `bad: ${it.value.key}`;
        it.issues.push({ code: 'custom', input: it.value, message });
      }),
    ],
  ])('I12: is not in what %s reports of the whole', async (_, input) => {
    const whole = tool({ name: 't', description: 'Takes both.', input, run: () => 'ran' });
    const { session } = run1(preset(whole, { key: 'SECRET' }));
    const reply = await session.call('?');
    expect(reply.toolCalls[0]?.output).toBe(
      'The arguments for t are invalid:\n- the input as a whole is not valid',
    );
  });
});

describe('I13: what is run', () => {
  it('was valid, no matter what an approver does to its copy', async () => {
    const spoils: Approver = ({ input }) => {
      Object.assign(input as object, { a: 'not a number' });
      return true;
    };
    const { session } = run1(requireApproval(numbers(), spoils));
    expect((await session.call('?')).toolCalls[0]?.output).toBe('{"a":1}');
  });

  it('is the same for each attempt, no matter what the one before has done to it', async () => {
    const seen: string[] = [];
    const spoils = numbers({ retry: { attempts: 3, backoffMs: 0 } }, (input) => {
      seen.push(JSON.stringify(input));
      input.a = 99;
      throw transient('busy');
    });
    await run1(spoils).session.call('?');
    expect(seen).toEqual(['{"a":1}', '{"a":1}', '{"a":1}']);
  });

  it('was checked: a schema that says $async is refused, and a tool that gives no verdict is not run', async () => {
    const input = { type: 'object', $async: true } as JsonSchema;
    expect(() =>
      tool({ name: 't', description: 'Is odd.', input: jsonSchema(input), run: () => 1 }),
    ).toThrow("jsonSchema(): the schema must not have '$async'.");
    const silent: Tool = { ...numbers(), validation$: () => of() };
    expect((await run1(silent).session.call('?')).toolCalls[0]?.isError).toBe(true);
  });

  it('T8: was checked in time', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const slow: Tool = { ...numbers(), name: 'tool', validation$: () => NEVER };
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [slow] });
      const output$ = agent
        .call$('?', { scheduler, limits: { timeouts: { tools: { tool: 4 } } } })
        .pipe(map(({ toolCalls }) => toolCalls[0]?.output));
      expectObservable(output$).toBe('----(o|)', {
        o: "Failed: The tool 'tool' did not finish within 4 ms.",
      });
    });
  });

  it('is an input that an interceptor gave in place of one that was broken', async () => {
    const mends = on(
      'preActing',
      map((event) => ({ ...event, toolCall: { ...event.toolCall, input: { a: 3 } } })),
    );
    const broken = { type: 'toolCall', name: 't', json: '{"a":' } as const;
    const { session } = run1(numbers(), broken, [mends]);
    expect((await session.call('?')).toolCalls[0]?.output).toBe('{"a":3}');
  });
});

describe('the time of a tool', () => {
  it('T8: is looked for among own names only', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const deaf = tool({ name: 'constructor', description: 'Hangs.', run: () => NEVER });
      const model = scriptedModel([toolCall('constructor')], () =>
        cold('(tf|)', { t: text('done'), f: { type: 'finish', finish: 'stop' } }),
      );
      const ms$ = createAgent({ model, tools: [deaf] })
        .call$('?', { scheduler, limits: { timeouts: { toolMs: 4, tools: {} } } })
        .pipe(map(({ toolCalls }) => toolCalls[0]?.ms));
      expectObservable(ms$).toBe('----(m|)', { m: 4 });
    });
  });

  it('T8: ends without an abort if the tool has ended by itself', async () => {
    let kept: AbortSignal | undefined;
    const keeps = tool({
      name: 't',
      description: 'Keeps its signal.',
      run: (_input, { signal }) => {
        kept = signal;
        return 'ran';
      },
    });
    await run1(keeps).session.call('?');
    expect(kept?.aborted).toBe(false);
  });

  it('S1, T9: that its failure is kept back is cut by an interrupt', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const fails = tool({
        name: 'tool',
        description: 'Fails.',
        run: () => {
          throw new Error('no');
        },
      });
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [fails] });
      const reason$ = agent
        .call$('?', {
          scheduler,
          limits: { toolBackoffMs: 50 },
          use: [interruptOn(timer(3, scheduler))],
        })
        .pipe(map(({ reason, toolCalls }) => `${reason}: ${toolCalls[0]?.output}`));
      expectObservable(reason$).toBe('---(r|)', { r: 'interrupted: Failed: no' });
    });
  });
});

describe('X12, I2: an output with content blocks', () => {
  const blocks: readonly (readonly [string, () => unknown])[] = [
    [
      'too much beside them',
      (): unknown => JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`),
    ],
    ['something that throws', () => undefined],
  ];

  it.each(blocks)('that have %s costs no sibling its result', async (what, more) => {
    const odd = tool({
      name: 'odd',
      description: 'Says too much.',
      run: () => {
        const block = { type: 'text' as const, text: 'said', meta: more() };
        if (what === 'something that throws') {
          Object.defineProperty(block, 'text', {
            enumerable: true,
            get: () => {
              throw new Error('no');
            },
          });
        }
        return toolOutput({ content: [block] });
      },
    });
    const send = tool({ name: 'send', description: 'Sends.', run: () => 'sent' });
    const model = scriptedModel([toolCall('odd'), toolCall('send')], [text('done')]);
    const reply = await createAgent({ model, tools: [odd, send] }).call('?');
    expect(reply).toMatchObject({ reason: 'answer', toolCalls: [{}, { output: 'sent' }] });
    expect(reply.toolCalls[0]?.output).toMatch(/^said$|^The tool's output is invalid: no/);
  });
});

describe('limits and notes', () => {
  const count = tool({ name: 'x', description: 'Counts.', run: () => 'ran' });
  const late = toolGroup({ name: 'late', description: 'Comes later.', tools: [count] });

  it('T16: hold also for tools that come while their batch runs: these are for the next turn', async () => {
    const uses = [0, 1, 2].map((n) => toolCall('x', { n }));
    const model = scriptedModel(
      [toolCall('manage_tools', { activate: ['late'] }), ...uses],
      [text('done')],
    );
    const reply = await createAgent({ model, tools: [late] }).call('?', {
      limits: { maxToolCalls: 1 },
    });
    expect(reply.toolCalls.map(({ output }) => output.split('.')[0])).toEqual([
      'Active groups: late',
      ...[1, 2, 3].map(() => 'Not run: the tool x is available from your next step on'),
    ]);
  });

  it('T6, T15: are not for the user: a final answer is given as it is, and whole', async () => {
    let runs = 0;
    const answers = tool({
      name: 't',
      description: 'Answers in the end.',
      run: () => toolOutput({ content: 'A'.repeat(30), finalAnswer: (runs += 1) === 2 }),
    });
    const model = scriptedModel([toolCall('t')], [toolCall('t')]);
    const reply = await createAgent({ model, tools: [answers] }).call('?', {
      limits: { maxObservation: 10 },
    });
    expect(reply).toMatchObject({ reason: 'toolFinal', content: [{ text: 'A'.repeat(30) }] });
  });

  it('T15: see the very same call also if an interceptor edits it each time', async () => {
    let runs = 0;
    const counts = numbers({ dedupe: true }, () => `run ${(runs += 1)}`);
    const model = scriptedModel(...[1, 2, 3, 4].map(() => [toolCall('t', { a: 1 })]), [
      text('done'),
    ]);
    const edits = on(
      'preActing',
      map((event) => ({ ...event, toolCall: { ...event.toolCall, input: { a: 1, at: runs } } })),
    );
    const agent = createAgent({ model, tools: [counts], use: [edits] });
    const { toolCalls } = await agent.call('?');
    expect(runs).toBe(1);
    // What the model is told of it is no part of what the tool gave.
    expect(toolCalls.map(({ output }) => output)).toEqual(['run 1', 'run 1', 'run 1', 'run 1']);
    const told = model.requests[4]?.messages.flatMap((message) =>
      message.role === 'tool' ? [textOf(message.content[0] ?? message).split('\n').length] : [],
    );
    // One note each, however often it is answered.
    expect(told).toEqual([1, 2, 2, 2]);
  });

  it('T7: give extras to no tool that does not accept them', async () => {
    const gives = tool({
      name: 'gives',
      description: 'Gives.',
      run: () => toolOutput({ content: 'given', extras: { path: '/etc' } }),
    });
    const takes = (name: string, accepts: readonly string[]) =>
      acceptExtras(
        tool({
          name,
          description: 'Takes.',
          input: jsonSchema({ type: 'object', properties: { path: { type: 'string' } } }),
          run: (input) => input,
        }),
        ...(accepts as readonly 'path'[]),
      );
    const model = scriptedModel([toolCall('gives')], [toolCall('takes')], [text('done')]);
    const renames = on(
      'preActing',
      map((event) =>
        event.toolCall.name === 'takes'
          ? { ...event, toolCall: { ...event.toolCall, name: 'other' } }
          : event,
      ),
    );
    const tools = [gives, takes('takes', ['path']), takes('other', [])];
    const reply = await createAgent({ model, tools, use: [renames] }).call('?');
    expect(reply.toolCalls[1]?.output).toBe('{}');
  });

  it('T5: leave tuples as their items say', async () => {
    const rows = tool({
      name: 't',
      description: 'Takes a table.',
      input: jsonSchema({
        type: 'object',
        properties: {
          rows: {
            type: 'array',
            prefixItems: [{ type: 'object', properties: { head: { type: 'string' } } }],
            items: { type: 'object', properties: { row: { type: 'number' } } },
          },
        },
      }),
      run: (input) => input,
    });
    const use = toolCall('t', {
      rows: [
        { head: 'h', x: 1 },
        { row: 1, x: 1 },
      ],
    });
    expect((await run1(rows, use).session.call('?')).toolCalls[0]?.output).toBe(
      '{"rows":[{"head":"h"},{"row":1}]}',
    );
  });
});

describe('T10: the tools of a session', () => {
  const group = toolGroup({ name: 'g', description: 'A group.', tools: [numbers()] });
  const one = () => scriptedModel([text('done')], [text('done')], [text('done')]);

  it('are its own, for any objects of a memory', () => {
    const fresh = createAgent({
      model: one(),
      tools: [group],
    });
    const each = sessions(fresh, { memory: () => inProcessMemory()('s') });
    each.open('1').toolkit.activate('g');
    expect(each.open('1').toolkit.names).toContain('t');
    const shared = inProcessMemory()('all');
    const same = createAgent({ model: one(), tools: [group] });
    const all = sessions(same, { memory: () => shared });
    all.open('1').toolkit.activate('g');
    expect(all.open('2').toolkit.names).not.toContain('t');
    const none = createAgent({ model: one() });
    expect(() => sessions(none, { memory: () => undefined as never }).open('1')).toThrow(
      /'memory' must return an object with load\$\(\)/,
    );
  });

  it('are those of now, also for a call that takes time to prepare', () => {
    marbles(({ scheduler, expectObservable }) => {
      const model = one();
      const session = sessions(
        createAgent({
          model,
          tools: [group],
          use: [prepare(concatMap((it) => of(it).pipe(delay(5, scheduler))))],
        }),
      ).open('s');
      const names$ = session
        .call$('?', { scheduler })
        .pipe(map(() => model.requests[0]?.tools?.map(({ name }) => name).join()));
      timer(2, scheduler).subscribe(() => session.toolkit.activate('g'));
      expectObservable(names$).toBe('-----(n|)', { n: 't,manage_tools' });
    });
  });

  it('L2: begin again for each subscription to a call without a session', async () => {
    const model = scriptedModel(
      [toolCall('manage_tools', { activate: ['g'] })],
      [text('done')],
      [text('done')],
    );
    const call$ = createAgent({ model, tools: [group] }).call$('?');
    await lastValueFrom(call$);
    await lastValueFrom(call$);
    expect(model.requests[2]?.tools?.map(({ name }) => name)).toEqual(['manage_tools']);
  });
});
