import { describe, expect, it, jest } from '@jest/globals';
import {
  concatWith,
  EMPTY,
  filter,
  last,
  map,
  NEVER,
  of,
  type SchedulerLike,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { z } from 'zod';
import {
  type AgentEvent,
  approval,
  type ApprovalRequest,
  type Approver,
  createAgent,
  interruptOn,
  only,
  preset,
  requireApproval,
  type Tool,
  tool,
  toolGroup,
  transient,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from './sessions/index.js';

/** What became of a use of a tool that deletes a file. */
const deletes = async (approve: boolean | Approver = true, own?: Approver) => {
  const run = jest.fn(({ path }: { readonly path: string }) => `deleted ${path}`);
  const remove = requireApproval(
    tool({
      name: 'remove',
      description: 'Deletes a file.',
      input: jsonSchema({
        type: 'object',
        properties: { path: { type: 'string', minLength: 2 } },
        required: ['path'],
        additionalProperties: false,
      }),
      run,
    }),
    approve,
  );
  const model = scriptedModel([toolCall('remove', { path: '/tmp' })], [text('done')]);
  const agent = createAgent({ model, tools: [remove] });
  const events = await record(
    agent.stream$('?', own === undefined ? {} : { use: [approval(own)] }),
  );
  const said = events.flatMap((event) =>
    event.type === 'approvalDecided'
      ? [`${event.approved} ${JSON.stringify(event.toolCall.input)} ${event.reason ?? ''}`.trim()]
      : [],
  );
  const reply = events.at(-1);
  return {
    events,
    output: reply?.type === 'postCall' ? reply.reply.toolCalls[0]?.output : undefined,
    ran: run.mock.calls.length,
    types: events.map(({ type }) => type),
    said,
  };
};

const no = (why = '') => `Not run: this call to remove was not approved.${why && ` ${why}`}`;

describe('T12: an approval', () => {
  it.each<[string, boolean | Approver | undefined, string]>([
    ['true', true, 'deleted /tmp'],
    [
      'a predicate that agrees',
      ({ input }) => JSON.stringify(input) === '{"path":"/tmp"}',
      'deleted /tmp',
    ],
    ['an Observable', () => of(true), 'deleted /tmp'],
    ['a Promise', () => Promise.resolve({ approved: true }), 'deleted /tmp'],
    ['the first of several verdicts', () => of(true, false), 'deleted /tmp'],
    ['false', false, no()],
    ['a predicate that refuses', () => false, no()],
    ['a reason', () => ({ approved: false, reason: 'Not this one.' }), no('Not this one.')],
    ['an Observable that is empty', () => EMPTY, no('No decision was made.')],
    ['an error', () => throwError(() => new Error('no line')), no('The approver failed.')],
    [
      'a throw',
      () => {
        throw new Error('no line');
      },
      no('The approver failed.'),
    ],
  ])('by %s', async (_, approve, output) => {
    const { output: given, ran } = await deletes(approve);
    expect(given).toContain(output);
    expect(ran).toBe(output.startsWith('deleted') ? 1 : 0);
  });

  const nested: unknown = JSON.parse(`{"path":${'['.repeat(101)}${']'.repeat(101)}}`);
  it.each<[string, () => unknown, string]>([
    ['a word for yes', () => 'yes', 'true, false or { approved'],
    ['a number', () => 1, 'true, false or { approved'],
    ['what only looks like a yes', () => ({ approved: 'true' }), 'true, false or { approved'],
    ['a misspelt yes', () => of({ aproved: true }), 'true, false or { approved'],
    ['null', () => of(null), 'true, false or { approved'],
    ['nothing, as a function without a return does', () => undefined, 'true, false or { approved'],
    ['a Promise of nothing', () => Promise.resolve(), 'true, false or { approved'],
    ['an input that is no object', () => ({ approved: true, input: ['/'] }), "'input'"],
    ['an input that is nested too deeply', () => ({ approved: true, input: nested }), "'input'"],
    ['a reason that is no string', () => ({ approved: false, reason: 5 }), "'reason'"],
  ])(
    'I23: fails the call by %s: it is no decision, and no model can correct it',
    async (_, by, why) => {
      const run = jest.fn(() => 'done');
      const remove = tool({ name: 'remove', description: 'Deletes.', run });
      const approver = by as Approver;
      const model = () => scriptedModel([toolCall('remove')], [text('done')]);
      for (const agent of [
        createAgent({ model: model(), tools: [requireApproval(remove, approver)] }),
        createAgent({ model: model(), tools: [remove], use: [approval(approver)] }),
      ]) {
        await expect(agent.call('?')).rejects.toMatchObject({
          code: 'config',
          message: expect.stringContaining(why),
        });
      }
      expect(run).not.toHaveBeenCalled();
    },
  );

  it('T18: is asked after preActing and the validation, and before the run; each side is an event', async () => {
    const { types } = await deletes(() => true);
    expect(types.filter((type) => /Acting|approval/.test(type))).toEqual([
      'preActing',
      'approvalRequested',
      'approvalDecided',
      'postActing',
    ]);
  });

  it('is not asked for invalid arguments, or for a tool without an approver', async () => {
    const approve = jest.fn(() => true);
    const strict = requireApproval(
      tool({
        name: 'strict',
        description: 'Wants a number.',
        input: jsonSchema({
          type: 'object',
          properties: { n: { type: 'number' } },
          required: ['n'],
        }),
        run: () => 'ran',
      }),
      approve,
    );
    const model = scriptedModel([toolCall('strict'), toolCall('nope')], [text('done')]);
    await createAgent({ model, tools: [strict] }).call('?');
    expect(approve).not.toHaveBeenCalled();
    expect((await deletes(undefined)).types).not.toContain('approvalRequested');
  });

  it('reports that a person has decided, by the word of the approver', async () => {
    for (const by of ['user', undefined] as const) {
      const { events } = await deletes(() => ({
        approved: false,
        reason: 'No.',
        ...(by && { by }),
      }));
      expect(events.find(({ type }) => type === 'approvalDecided')).toMatchObject({
        reason: 'No.',
      });
      expect(events.map((event) => 'by' in event && event.by).filter(Boolean)).toEqual(
        by === undefined ? [] : [by],
      );
    }
    await expect(
      deletes(() => ({ approved: false, by: 'program' }) as unknown as boolean),
    ).rejects.toMatchObject({ code: 'config', message: expect.stringContaining("'by'") });
  });

  it('may change the input, which is validated again', async () => {
    const edited = await deletes(() => ({ approved: true, input: { path: '/tmp/a' } }));
    expect(edited).toMatchObject({ output: 'deleted /tmp/a', said: ['true {"path":"/tmp/a"}'] });
    const spoilt = await deletes(() => ({ approved: true, input: { path: '/' } }));
    expect(spoilt.output).toMatch(
      /approved with a different input, which is not valid:\n- path: must NOT have fewer than 2 characters/,
    );
    expect(spoilt.ran).toBe(0);
  });

  it('that fails is reported to the program, and to the model without the reason', async () => {
    const failing: readonly [Approver, string][] = [
      [() => throwError(() => new Error('postgres://root:pw@db')), 'postgres://root:pw@db'],
      [
        () => {
          throw new Error('no line');
        },
        'no line',
      ],
    ];
    for (const [approve, message] of failing) {
      const { output, events } = await deletes(approve);
      expect(output).toBe(no('The approver failed.'));
      const [failure] = events.flatMap((event) => (event.type === 'handlerError' ? [event] : []));
      expect(failure).toMatchObject({ of: 'approve', name: 'remove' });
      expect(failure?.error.message).toContain(message);
    }
  });

  it('I13: what was approved is what runs: a schema makes one value of one input', async () => {
    let keys = 0;
    const seen: unknown[] = [];
    const pay = requireApproval(
      tool({
        name: 'pay',
        description: 'Pays.',
        input: z.object({ euros: z.number(), key: z.string().default(() => `key ${(keys += 1)}`) }),
        retry: { backoffMs: 0 },
        run: (given) => {
          seen.push({ ...given });
          given.euros = 0;
          throw transient('busy');
        },
      }),
      ({ value, input }) => {
        seen.push(structuredClone({ value, input }));
        // Nothing that is done to it reaches the run.
        Object.assign(value, { euros: 1_000_000 });
        return true;
      },
    );
    const model = scriptedModel([toolCall('pay', { euros: 5 })], [text('done')]);
    await createAgent({ model, tools: [pay] }).call('?');
    const { value: first } = seen[0] as { readonly value: { readonly key: string } };
    const value = { euros: 5, key: first.key };
    expect(seen).toEqual([{ value, input: { euros: 5 } }, value, value, value]);
  });

  it('I13: an edit replaces the input of the model, and goes through the schema once', async () => {
    const pay = requireApproval(
      tool({
        name: 'pay',
        description: 'Pays.',
        input: z.object({ euros: z.number().transform((euros) => euros * 100) }),
        run: ({ euros }) => `${euros} cents`,
      }),
      ({ input, value }) => ({
        approved: value.euros === 500,
        input: { ...input, note: 'ok' },
      }),
    );
    const model = scriptedModel([toolCall('pay', { euros: 5 })], [text('done')]);
    const { toolCalls } = await createAgent({ model, tools: [pay] }).call('?');
    expect(toolCalls).toMatchObject([{ input: { euros: 5, note: 'ok' }, output: '500 cents' }]);
  });

  it('can ask what would be wrong with another input', async () => {
    const problems: (readonly string[])[] = [];
    await deletes((request) =>
      request.problems$({ path: '/' }).pipe(
        concatWith(request.problems$('/'), request.problems$({ path: '/tmp' })),
        tap((given) => problems.push(given)),
        last(),
        map(({ length }) => length === 0),
      ),
    );
    expect(problems).toEqual([
      ['path: must NOT have fewer than 2 characters (received "/")'],
      ['The input must be an object.'],
      [],
    ]);
  });

  it('T10: does not bring back a tool that was taken away meanwhile', async () => {
    const session = sessions(
      createAgent({
        model: scriptedModel([toolCall('late')], [text('done')]),
        tools: [
          requireApproval(
            tool({
              name: 'late',
              description: 'Is taken away.',
              run: () => 'ran',
            }),
            ({ context }) => {
              context.toolkit.remove('late');
              return true;
            },
          ),
        ],
      }),
    ).open('s');
    const { toolCalls } = await session.call('?');
    expect(toolCalls[0]?.output).toBe('Not run: the tool late no longer exists.');
  });

  it('of a call decides on the tools of the calls below it, too', async () => {
    const asked: string[] = [];
    const danger = tool({ name: 'danger', description: 'Dangerous.', run: () => 'boom' });
    const inner = createAgent({
      model: scriptedModel([toolCall('danger')], [text('inner done')]),
      tools: [danger],
    });
    const ask = tool({
      name: 'ask',
      description: 'Asks the other one.',
      run: (_input, parent) =>
        inner.call$('?', { parent }).pipe(map(({ toolCalls }) => toolCalls[0]?.output)),
    });
    const model = scriptedModel([toolCall('ask')], [text('done')]);
    const { toolCalls } = await createAgent({ model, tools: [ask] }).call('?', {
      use: [approval(({ tool: name }) => asked.push(name) === 1)],
    });
    expect(asked).toEqual(['ask', 'danger']);
    expect(toolCalls[0]?.output).toBe('Not run: this call to danger was not approved.');
  });

  it('that is a no is no failure of the tool', async () => {
    const turns = [1, 2, 3, 4].map((n) => [toolCall('remove', { path: `/tmp/${n}` })]);
    const model = scriptedModel(...turns, [text('done')]);
    const remove = requireApproval(
      tool({
        name: 'remove',
        description: 'Deletes a file.',
        input: jsonSchema({ type: 'object' }),
        run: () => 'deleted',
      }),
      false,
    );
    await createAgent({ model, tools: [remove] }).call('?');
    expect(JSON.stringify(model.requests.at(-1))).not.toContain('Do not call it again');
  });

  it('I11: that changed the input reaches memory: the model sees what was run', async () => {
    const remove = requireApproval(
      tool({
        name: 'remove',
        description: 'Deletes a file.',
        input: jsonSchema({ type: 'object', properties: { path: { type: 'string' } } }),
        run: ({ path }) => `deleted ${String(path)}`,
      }),
      () => ({ approved: true, input: { path: '/tmp/a' } }),
    );
    const model = scriptedModel([toolCall('remove', { path: '/' })], [text('done')]);
    const reply = await createAgent({ model, tools: [remove] }).call('?');
    expect(reply.toolCalls).toMatchObject([
      { input: { path: '/tmp/a' }, output: 'deleted /tmp/a' },
    ]);
    expect(model.requests[1]?.messages.at(-2)?.content).toMatchObject([
      { input: { path: '/tmp/a' } },
    ]);
  });

  it('I12: cannot change what the program has set', async () => {
    const remove = requireApproval(
      tool({
        name: 'remove',
        description: 'Deletes a file.',
        input: jsonSchema({
          type: 'object',
          properties: { root: { type: 'string' }, path: { type: 'string' } },
        }),
        run: (input) => input,
      }),
      () => ({ approved: true, input: { root: '/', path: 'b' } }),
    );
    const model = scriptedModel([toolCall('remove', { path: 'a' })], [text('done')]);
    const reply = await createAgent({ model, tools: [preset(remove, { root: '/tmp' })] }).call('?');
    expect(reply.toolCalls[0]?.output).toBe('{"path":"b","root":"/tmp"}');
  });

  it('is asked of the tool first, then of the call: both must agree', async () => {
    const order: string[] = [];
    const by =
      (name: string, verdict: boolean): Approver =>
      ({ input }) => {
        order.push(`${name} ${JSON.stringify(input)}`);
        const { path } = input;
        if (!verdict || String(path).includes(name)) return verdict;
        return { approved: true, input: { path: `${String(path)}/${name}` } };
      };
    expect((await deletes(by('tool', true), by('call', true))).output).toBe(
      'deleted /tmp/tool/call',
    );
    expect(order).toEqual([
      'tool {"path":"/tmp"}',
      'call {"path":"/tmp/tool"}',
      'tool {"path":"/tmp/tool/call"}',
    ]);
    const { said } = await deletes(by('tool', true), by('call', true));
    expect(said).toEqual([
      'true {"path":"/tmp/tool"}',
      'true {"path":"/tmp/tool/call"}',
      'true {"path":"/tmp/tool/call"}',
    ]);
    order.length = 0;
    expect((await deletes(by('tool', false), by('call', true))).ran).toBe(0);
    expect(order).toHaveLength(1);
    expect((await deletes(undefined, by('call', false))).ran).toBe(0);
  });

  it('of an agent is asked after that of the call, and both must agree', async () => {
    const order: string[] = [];
    const by = (name: string) => approval(() => order.push(name) > 0);
    const run = tool({ name: 'run', description: 'Runs.', run: () => 'ran' });
    const model = scriptedModel([toolCall('run')], [text('done')]);
    const agent = createAgent({ model, tools: [run], use: [by('agent')] });
    const { toolCalls } = await agent.call('?', { use: [by('call')] });
    expect(order).toEqual(['call', 'agent']);
    expect(toolCalls[0]?.output).toBe('ran');
  });

  it('is a layer, and no option of a call or agent', async () => {
    const model = scriptedModel([text('done')]);
    const option = { approval: () => true } as object;
    const place = "has no option 'approval'. Add approval(approver) to 'use'.";
    await expect(createAgent({ model }).call('?', option)).rejects.toThrow(place);
    expect(() => createAgent({ model, ...option })).toThrow(place);
    expect(() => approval(true as never)).toThrow('approval() takes an approver function');
  });

  const slow = (approve: Approver, options?: { timeoutMs: number }) =>
    requireApproval(
      tool({
        name: 'tool',
        description: 'Takes 5 ms.',
        timeoutMs: 8,
        run: (_input, { scheduler }) => timer(5, scheduler).pipe(map(() => 'ran')),
      }),
      approve,
      options,
    );

  it('waits as long as it takes, outside of the time of the tool', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const approve: Approver = ({ context }) => timer(50, context.scheduler).pipe(map(() => true));
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [slow(approve)] });
      const output$ = agent
        .call$('?', { scheduler })
        .pipe(map((reply) => reply.toolCalls[0]?.output));
      expectObservable(output$).toBe('55ms (o|)', { o: 'ran' });
    });
  });

  it('that takes longer than timeoutMs denies', () => {
    marbles(({ model, expectObservable, expectSubscriptions, cold, scheduler }) => {
      const asked = cold<boolean>('-');
      const agent = createAgent({
        model: model(['(cf|)', '(tf|)']),
        tools: [slow(() => asked, { timeoutMs: 7 })],
      });
      const output$ = agent
        .call$('?', { scheduler })
        .pipe(map((reply) => reply.toolCalls[0]?.output));
      expectObservable(output$).toBe('-------(o|)', {
        o: 'Not run: this call to tool was not approved. No decision was made in time.',
      });
      expectSubscriptions(asked.subscriptions).toBe('^------!');
    });
  });

  it('I5: is left immediately when the call is left or interrupted', () => {
    marbles(({ model, expectObservable, expectSubscriptions, cold, scheduler }) => {
      const asked = cold<boolean>('-');
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools: [slow(() => asked)] });
      const type$ = agent.stream$('?', { scheduler }).pipe(
        only('approvalRequested'),
        map(({ type }) => type),
      );
      expectObservable(type$, '^---!').toBe('r', { r: 'approvalRequested' });
      expectSubscriptions(asked.subscriptions).toBe('^---!');
    });
    marbles(({ model, expectObservable, expectSubscriptions, cold, scheduler }) => {
      const asked = cold<boolean>('-');
      const agent = createAgent({ model: model(['(cf|)']), tools: [slow(() => asked)] });
      const reason$ = agent
        .call$('?', { scheduler, use: [interruptOn(timer(4, scheduler))] })
        .pipe(map(({ reason, toolCalls }) => `${reason}: ${toolCalls[0]?.output}`));
      expectObservable(reason$).toBe('----(r|)', {
        r: 'interrupted: Interrupted before it finished.',
      });
      expectSubscriptions(asked.subscriptions).toBe('^---!');
    });
  });

  it('T12: that were added one after the other all have to agree, the first one first', async () => {
    const asked: string[] = [];
    const by =
      (name: string, verdict: boolean): Approver =>
      () => (asked.push(name), verdict);
    const plain = tool({ name: 'run', description: 'Runs.', run: () => 'ran' });
    const outputOf = async (...approvers: readonly (boolean | Approver)[]) => {
      const wrapped = approvers.reduce<Tool>(
        (it, approver) => requireApproval(it, approver),
        plain,
      );
      const model = scriptedModel([toolCall('run')], [text('done')]);
      return (await createAgent({ model, tools: [wrapped] }).call('?')).toolCalls[0]?.output;
    };
    expect(await outputOf(by('a', true), true, by('b', true))).toBe('ran');
    expect(await outputOf(by('c', false), by('d', true))).toContain('not approved');
    expect(await outputOf(by('e', true), false)).toContain('not approved');
    expect(asked).toEqual(['a', 'b', 'c', 'e']);
  });

  it('T12: a tool with its own option for approval is refused, because it would run unasked', () => {
    const plain = tool({ name: 'run', description: 'Runs.', run: () => 'ran' });
    const odd = { ...plain, approve: () => false };
    expect(() => createAgent({ model: scriptedModel(), tools: [odd] })).toThrow(
      /'run' has a property 'approve', .* Use requireApproval/,
    );
    const group = toolGroup({ name: 'group', description: 'A group.', tools: [plain] });
    expect(() => requireApproval(group as never, false)).toThrow(/takes a tool/);
    expect(() => requireApproval(plain, 'yes' as never)).toThrow(
      /takes true, false or an approver function/,
    );
  });

  it('I2: of one tool holds up no other', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const answers = scriptedModel([toolCall('a'), toolCall('b')], () =>
        cold('(tf|)', { t: text('done'), f: { type: 'finish', finish: 'stop' } }),
      );
      const tools = [() => NEVER, true].map((approve, index) =>
        requireApproval(
          tool({ name: 'ab'.charAt(index), description: 'Runs.', run: () => 'ran' }),
          approve,
          { timeoutMs: 4 },
        ),
      );
      const done$ = createAgent({ model: answers, tools })
        .stream$('?', { scheduler })
        .pipe(
          only('postActing'),
          map(({ toolCall: { name }, result }) => (result.isError ? `no ${name}` : name)),
        );
      expectObservable(done$).toBe('b---(a|)', { b: 'b', a: 'no a' });
    });
  });

  describe('of several tool calls', () => {
    const act = (approver: Approver, options: { readonly parallel?: boolean } = {}) =>
      requireApproval(
        tool({
          name: 'act',
          description: 'Acts.',
          input: z.object({ n: z.number() }),
          run: ({ n }) => `acted ${n}`,
        }),
        approver,
        options,
      );
    const asked = (event: AgentEvent): string =>
      event.type === 'approvalRequested'
        ? `ask ${String(event.toolCall.input['n'])}`
        : event.type === 'postActing'
          ? `${event.toolCall.name} ${event.result.isError ? 'no' : 'yes'}`
          : '';
    const seen = (tools: readonly Tool[], after = 0) => {
      const uses = [1, 2, 3].map((n) => toolCall('act', { n }));
      const model = scriptedModel([...uses, toolCall('look')], [text('done')]);
      return (scheduler: SchedulerLike) =>
        createAgent({ model, tools })
          .stream$('?', {
            scheduler,
            use: after === 0 ? [] : [interruptOn(timer(after, scheduler))],
          })
          .pipe(map(asked), filter(Boolean));
    };
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });

    it('is asked for one after the other, while other tools run', () => {
      marbles(({ expectObservable, scheduler }) => {
        const tools = [
          act(({ context }) => timer(10, context.scheduler).pipe(map(() => true))),
          look,
        ];
        // The next question and the result before it belong to parallel branches: their order is open.
        const asks$ = seen(tools)(scheduler).pipe(filter((it) => it.startsWith('ask')));
        expectObservable(asks$).toBe('a 9ms b 9ms c 9ms |', {
          a: 'ask 1',
          b: 'ask 2',
          c: 'ask 3',
        });
        const results$ = seen(tools)(scheduler).pipe(filter((it) => !it.startsWith('ask')));
        expectObservable(results$).toBe('a 9ms b 9ms b 9ms (b|)', {
          a: 'look yes',
          b: 'act yes',
        });
      });
    });

    it('is asked for at the same time on demand', () => {
      marbles(({ expectObservable, scheduler }) => {
        const approver: Approver = ({ context }) =>
          timer(10, context.scheduler).pipe(map(() => true));
        const tools = [act(approver, { parallel: true }), look];
        const queue = Object.assign((request: ApprovalRequest) => approver(request), {
          parallel: true,
        });
        expectObservable(seen([act(queue), look])(scheduler)).toBe('(abcd) 4ms (eee|)', {
          a: 'ask 1',
          b: 'ask 2',
          c: 'ask 3',
          d: 'look yes',
          e: 'act yes',
        });
        expectObservable(seen(tools)(scheduler)).toBe('(abcd) 4ms (eee|)', {
          a: 'ask 1',
          b: 'ask 2',
          c: 'ask 3',
          d: 'look yes',
          e: 'act yes',
        });
      });
    });

    it('leaves the line when the call is interrupted, and asks no further question', () => {
      marbles(({ expectObservable, scheduler }) => {
        const approver = jest.fn<Approver>(() => NEVER);
        const seen$ = seen(
          [act(approver), look],
          5,
        )(scheduler).pipe(tap({ complete: () => expect(approver).toHaveBeenCalledTimes(1) }));
        expectObservable(seen$).toBe('(ab) 1ms (ccc|)', { a: 'ask 1', b: 'look yes', c: 'act no' });
      });
    });

    it('asks about thousands of tool calls without nesting', async () => {
      const uses = Array.from({ length: 3_000 }, (_, n) => toolCall('act', { n }));
      const model = scriptedModel(uses, [text('done')]);
      const sync: Approver = ({ input }) =>
        input['n'] === 0 ? timer(1).pipe(map(() => true)) : true;
      const agent = createAgent({ model, tools: [act(sync)] });
      const { toolCalls } = await agent.call('?', { limits: { parallel: true } });
      expect(toolCalls.filter(({ isError }) => isError)).toEqual([]);
    });
  });
});
