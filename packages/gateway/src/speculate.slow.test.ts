import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  type AgentOptions,
  approval,
  createAgent,
  interruptOn,
  type Layer,
  type ModelChunk,
  on,
  requireApproval,
  stopMessage,
  tool,
  type Tool,
  toolGroup,
  type ToolDefinition,
  transformChunks,
  transient,
} from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import {
  finish,
  type MarbleHelpers,
  marbles,
  record,
  scriptedModel,
  text,
  toolCall,
} from 'millrace/testing';
import fc from 'fast-check';
import {
  catchError,
  concat,
  concatMap,
  delay,
  EMPTY,
  filter,
  from,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  take,
  takeWhile,
  throwError,
  toArray,
} from 'rxjs';
import { liveInstructions, liveTools, speculate } from './index.js';

const word = jsonSchema({
  type: 'object',
  properties: { word: { type: 'string' } },
  required: ['word'],
});

/** `n` and `o` are the halves of a call of the tool `look`, `p` is a whole call of it, `v` has invalid arguments. */
const chunks: Readonly<Record<string, ModelChunk>> = {
  n: { type: 'toolCall', index: 0, id: 'one', name: 'look', json: '{"word":' },
  o: { type: 'toolCall', index: 0, id: 'one', json: '"}mill"}' },
  p: { type: 'toolCall', index: 1, id: 'two', name: 'look', input: { word: 'race' } },
  v: { type: 'toolCall', index: 0, id: 'one', name: 'look', json: '{"word":5}' },
  r: { type: 'restart', why: 'again' },
  t: text('t'),
  f: finish(),
  l: finish('length'),
  s: finish('pause'),
};

const look = (
  run: (input: { readonly word: string }, signal: AbortSignal) => unknown,
  policy: Partial<Pick<ToolDefinition<typeof word>, 'exclusive' | 'retry' | 'timeoutMs'>> = {},
): Tool =>
  tool({
    name: 'look',
    description: 'Looks up a word.',
    input: word,
    ...policy,
    run: (input, { signal }) => run(input, signal),
  });

interface Seen extends MarbleHelpers {
  readonly event$: Observable<AgentEvent>;
  /** The subscriptions to each run of the tool. */
  readonly runs: readonly ReturnType<MarbleHelpers['cold']>[];
  readonly signals: readonly AbortSignal[];
}

/** An agent whose tool answers with a marble diagram, and whose messages are diagrams. */
const speculated = (
  messages: readonly string[],
  tools: string,
  check: (seen: Seen) => void,
  {
    use = [],
    edit = (plain: Tool) => plain,
    policy = {},
    max = 4,
  }: {
    readonly use?: readonly Layer[] | ((helpers: MarbleHelpers) => readonly Layer[]);
    readonly edit?: (plain: Tool) => Tool;
    readonly policy?: Parameters<typeof look>[1];
    readonly max?: number;
  } = {},
): void => {
  marbles((helpers) => {
    const runs: ReturnType<MarbleHelpers['cold']>[] = [];
    const signals: AbortSignal[] = [];
    const own = look((_input, signal) => {
      const run = helpers.cold(tools, { a: 'A', z: 'Z' });
      runs.push(run);
      signals.push(signal);
      return run;
    }, policy);
    const layers = typeof use === 'function' ? use(helpers) : use;
    const agent = createAgent({
      model: helpers.model(messages, chunks),
      tools: [edit(own)],
      use: [speculate({ tools: ['look'], max }), ...layers],
    });
    const event$ = agent.stream$('?', { scheduler: helpers.scheduler });
    check({ ...helpers, event$, runs, signals });
  });
};

const news: Readonly<Record<string, string>> = {
  S: 'started',
  U: 'used',
  C: 'cancelled',
  g: 'actingChunk',
  A: 'postActing',
  Z: 'postCall',
};

/** What becomes of an early run, as a letter each. */
const fates = (event$: Observable<AgentEvent>): Observable<string> =>
  event$.pipe(
    map((event) => (event.type === 'speculation' ? event.status : event.type)),
    filter((type) => Object.values(news).includes(type)),
  );

describe('T19: speculate', () => {
  it('starts a tool as soon as its arguments are closed; the tool call takes it over', () => {
    speculated(['n-o 10ms t 10ms (f|)', '(tf|)'], '20ms (a|)', (seen) => {
      seen.expectObservable(fates(seen.event$)).toBe('--S 21ms (UgAZ|)', news);
      seen.flush();
      expect(seen.runs).toHaveLength(1);
      seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('--^ 19ms !');
      expect(seen.signals.map(({ aborted }) => aborted)).toEqual([false]);
    });
  });

  it('loses no progress: it waits for the tool call, then passes as it comes', () => {
    speculated(['no 10ms (f|)', '(tf|)'], 'a 20ms a 5ms (z|)', (seen) => {
      seen.expectObservable(fates(seen.event$)).toBe('-S 10ms (Ug) 6ms g 5ms (gAZ|)', news);
      seen.flush();
      seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^ 26ms !');
    });
  });

  it('starts several, but no more than max', () => {
    speculated(['no p 5ms (f|)', '(tf|)'], '3ms (a|)', (seen) => {
      seen.expectObservable(fates(seen.event$)).toBe('-SS 5ms (UgAUgAZ|)', news);
    });
    speculated(
      ['no p 5ms (f|)', '(tf|)'],
      '9ms (a|)',
      (seen) => seen.expectObservable(fates(seen.event$)).toBe('-S 6ms U-(gA) 3ms (gAZ|)', news),
      { max: 1 },
    );
  });

  it.each<[string, string]>([
    ['a restart', 'no-r 9ms (tf|)'],
    ['a message that is cut off', 'no-(l|)'],
  ])('cancels in the same tick: %s', (_what, message) => {
    speculated([message], '20ms (a|)', (seen) => {
      seen.expectObservable(fates(seen.event$).pipe(take(2))).toBe('-S-(C|)', news);
      seen.flush();
      seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^-!');
      expect(seen.signals.map(({ aborted }) => aborted)).toEqual([true]);
    });
  });

  it('I5: unsubscribing and an interrupt cancel in the same tick', () => {
    speculated(['no 20ms (f|)'], '-', (seen) => {
      seen.expectObservable(fates(seen.event$), '^ 9ms !').toBe('-S', news);
      seen.flush();
      seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^ 8ms !');
      expect(seen.signals.map(({ aborted }) => aborted)).toEqual([true]);
    });
    speculated(
      ['no 20ms (f|)'],
      '-',
      (seen) => {
        seen.expectObservable(fates(seen.event$)).toBe('-S 7ms (CZ|)', news);
        seen.flush();
        seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^ 7ms !');
      },
      { use: ({ cold }) => interruptOn(cold('9ms x')) },
    );
  });

  it('I5: an interrupt while the tool call waits for its run cancels it', () => {
    speculated(
      ['no(f|)'],
      '-',
      (seen) => {
        seen.expectObservable(fates(seen.event$)).toBe('-SU 6ms (AZ|)', news);
        seen.flush();
        seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^ 7ms !');
        expect(seen.signals.map(({ aborted }) => aborted)).toEqual([true]);
      },
      { use: ({ cold }) => interruptOn(cold('9ms x')) },
    );
  });

  it('I5: the time-out of its tool call cancels it', () => {
    speculated(
      ['no(f|)', '10ms (tf|)'],
      '-',
      (seen) => {
        seen.expectObservable(fates(seen.event$)).toBe('-SU 4ms A 9ms (Z|)', news);
        seen.flush();
        seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^ 5ms !');
      },
      { policy: { timeoutMs: 5 } },
    );
  });

  it('an error of the model cancels it', () => {
    speculated(['no-#'], '-', (seen) => {
      seen.expectObservable(fates(seen.event$).pipe(catchError(() => EMPTY))).toBe('-S-(C|)', news);
      seen.flush();
      seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^-!');
    });
  });

  it.each<[string, Layer]>([
    [
      'a veto',
      on(
        'postReasoning',
        filter(() => false),
      ),
    ],
    [
      'a stop',
      on(
        'postReasoning',
        map((event) => ({ ...event, stop: true })),
      ),
    ],
    [
      'a transform',
      transformChunks((chunk$) =>
        concat(chunk$.pipe(takeWhile(({ type }) => type !== 'text')), of(stopMessage())),
      ),
    ],
  ])('the end of the message by %s cancels it', (_what, layer) => {
    speculated(
      ['no-(tf|)'],
      '-',
      (seen) => {
        seen.expectObservable(fates(seen.event$).pipe(take(2))).toBe('-S-(C|)', news);
        seen.flush();
        seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^-!');
      },
      { use: [layer] },
    );
  });

  it('an edit of the message cancels it: the tool runs as edited', () => {
    const edits = on(
      'postReasoning',
      map((event) => ({
        ...event,
        message: {
          ...event.message,
          content: event.message.content.map((block) =>
            block.type === 'tool_call' ? { ...block, input: { word: 'other' } } : block,
          ),
        },
      })),
    );
    speculated(
      ['no-(f|)', '(tf|)'],
      '9ms (a|)',
      (seen) => {
        seen.expectObservable(fates(seen.event$)).toBe('-S-C 8ms (gAZ|)', news);
        seen.flush();
        seen.expectSubscriptions(seen.runs[0]?.subscriptions ?? []).toBe('-^-!');
        seen.expectSubscriptions(seen.runs[1]?.subscriptions ?? []).toBe('---^ 8ms !');
      },
      { use: [edits] },
    );
  });

  it('another attempt of a layer cancels it', () => {
    let attempts = 0;
    const twice: Layer = {
      name: 'twice',
      step: () => (next) => (step) =>
        step.kind === 'model' && attempts++ === 0
          ? concat(next(step).pipe(filter(() => false)), next(step))
          : next(step),
    };
    speculated(
      ['no-(f|)', 'p 4ms (f|)', '(tf|)'],
      '9ms (a|)',
      (seen) => {
        seen.expectObservable(fates(seen.event$)).toBe('-S-(CS) 1ms U 3ms (gAZ|)', news);
      },
      { use: [twice] },
    );
  });

  it('a paused message continues', () => {
    speculated(['no-(s|)', '2ms (tf|)', '(tf|)'], '9ms (a|)', (seen) => {
      seen.expectObservable(fates(seen.event$)).toBe('-S 3ms U 4ms (gAZ|)', news);
    });
  });

  it.each<[string, Parameters<typeof speculated>[3]]>([
    ['needs approval', { edit: (own) => requireApproval(own, () => true) }],
    ['may be rejected by an approver', { use: [approval(() => true)] }],
    [
      'may be rejected by an approver of a layer with another name and priority',
      { use: [{ ...approval(() => true), name: 'mine', priority: 120 }] },
    ],
    [
      'may be edited by an interceptor',
      {
        use: [
          on(
            'preActing',
            map((event) => event),
          ),
        ],
      },
    ],
    ['runs alone', { policy: { exclusive: true } }],
    ['is not chosen', { edit: (own) => ({ ...own, name: 'other' }) }],
  ])('does not start a tool that %s', (_what, options) => {
    speculated(
      ['no 4ms (f|)', '(tf|)'],
      '3ms (a|)',
      (seen) => {
        seen
          .expectObservable(fates(seen.event$))
          .toBe(
            options?.edit !== undefined && _what === 'is not chosen' ? '6ms (AZ|)' : '9ms (gAZ|)',
            news,
          );
      },
      options,
    );
  });

  it('does not start a tool with invalid arguments, nor more tools than the limit', () => {
    speculated(['v 4ms (f|)', '(tf|)'], '3ms (a|)', (seen) => {
      seen.expectObservable(fates(seen.event$)).toBe('5ms (AZ|)', news);
      seen.flush();
      expect(seen.runs).toEqual([]);
    });
    const limits: Layer = {
      name: 'limits',
      call: () => (next) => (call) =>
        next({ ...call, options: { ...call.options, limits: { maxToolCalls: 1 } } }),
    };
    speculated(
      ['no p 4ms (f|)', '(tf|)'],
      '3ms (a|)',
      (seen) => {
        seen.expectObservable(fates(seen.event$)).toBe('-S 5ms (UgAAZ|)', news);
      },
      { use: [limits] },
    );
  });

  it('reports the error of an early run as any other, and retries it', async () => {
    const model = () => scriptedModel([toolCall('look', { word: 'a' })], [text('Done.')]);
    for (const [retry, expected] of [
      [undefined, /Lost/],
      [{ backoffMs: 1 }, /Found/],
    ] as const) {
      let runs = 0;
      const shaky = look(
        () => {
          runs += 1;
          return runs === 1 ? throwError(() => transient('Lost.')) : 'Found.';
        },
        retry === undefined ? {} : { retry },
      );
      const use = [speculate({ tools: ({ name }) => name === 'look' })];
      const reply = await createAgent({ model: model(), tools: [shaky], use }).call('?');
      expect(JSON.stringify(reply.toolCalls[0])).toMatch(expected);
      expect(runs).toBe(retry === undefined ? 1 : 2);
    }
  });

  it('warns once per call of names that no tool has, not even one of an inactive group', async () => {
    const sleeping = toolGroup({
      name: 'later',
      description: 'Later.',
      tools: [{ ...look(() => ''), name: 'find' }],
    });
    const warningsOf = async (tools: readonly string[], use: readonly Layer[] = []) => {
      const model = scriptedModel([toolCall('look', { word: 'a' })], [text('Done.')]);
      const agent = createAgent({
        model,
        tools: [look(() => 'Found.'), sleeping],
        use: [speculate({ tools }), ...use],
      });
      const events = await record(agent.stream$('?'));
      return events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));
    };
    expect(await warningsOf(['look', 'find'])).toEqual([]);
    expect(await warningsOf(['lok', 'buy', 'look'], [approval(() => true)])).toEqual([
      "The tool 'lok' of speculate() does not exist. Did you mean 'look'?",
      "The tool 'buy' of speculate() does not exist.",
    ]);
  });

  it('works with live tools and instructions', async () => {
    const model = scriptedModel([toolCall('look', { word: 'a' })], [text('Done.')]);
    const own = look(() => 'Found.');
    const use = [
      speculate({ tools: ['look'] }),
      liveTools(merge(of([own]), NEVER), { at: 'turn' }),
      liveInstructions(merge(of('Be brief.'), NEVER), { at: 'turn' }),
    ];
    const events = await record(createAgent({ model, use }).stream$('?'));
    const statuses = events.flatMap((event) =>
      event.type === 'speculation' ? [event.status] : [],
    );
    expect(statuses).toEqual(['started', 'used']);
  });

  it('S6: replayed messages start nothing', async () => {
    const driver = inProcessCalls();
    let runs = 0;
    const own = look(() => {
      runs += 1;
      return `Run ${runs}.`;
    });
    const agentOf = (options: Pick<AgentOptions, 'model'>, durable: Layer) =>
      createAgent({ ...options, tools: [own], use: [speculate({ tools: ['look'] }), durable] });
    const before = journal(createCallStore(driver));
    const dying = agentOf(
      { model: scriptedModel([toolCall('look', { word: 'a' })], NEVER) },
      before,
    );
    const events$ = dying.stream$('?', { callId: 'c' });
    await lastValueFrom(events$.pipe(takeWhile(({ iteration }) => iteration < 2)));
    const after = journal(createCallStore(driver));
    const agent = agentOf({ model: scriptedModel([text('Done.')]) }, after);
    const seen$ = agent.events$.pipe(
      takeWhile(({ type }) => type !== 'postCall'),
      filter(({ type }) => type === 'speculation'),
      toArray(),
    );
    const [seen, reply] = await Promise.all([
      lastValueFrom(seen$),
      lastValueFrom(after.resume$(agent, 'c')),
    ]);
    expect(seen).toEqual([]);
    expect(reply.text).toBe('Done.');
    expect(runs).toBe(1);
  });

  it('changes nothing but the time: same results, in any pieces', async () => {
    const input = fc.record({
      word: fc.string({ unit: fc.constantFrom('{', '}', '"', '\\', 'a', 'é', '\n') }),
    });
    const call = fc.record({ input, cuts: fc.array(fc.nat({ max: 20 }), { maxLength: 4 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 4 }), async (calls) => {
        const message = calls.flatMap(({ input: { word: said }, cuts }, index): ModelChunk[] => {
          const json = JSON.stringify({ word: said });
          const places = [
            0,
            ...cuts.map((cut) => Math.min(cut, json.length)).sort((a, b) => a - b),
            json.length,
          ];
          return places.slice(1).map((end, nth) => ({
            type: 'toolCall',
            index,
            id: `id${index}`,
            ...(nth === 0 && { name: 'look' }),
            json: json.slice(places[nth], end),
          }));
        });
        const run = async (use: readonly Layer[]) => {
          const model = scriptedModel(
            from([...message, finish()]).pipe(concatMap((chunk) => of(chunk).pipe(delay(0)))),
            [text('Done.')],
          );
          const own = look(({ word: said }) =>
            from([said, '!']).pipe(concatMap((part) => of(part).pipe(delay(0)))),
          );
          const events = await record(
            createAgent({ model, tools: [own], use }).stream$('?', { callId: 'c' }),
          );
          const early = events.filter(({ type }) => type === 'speculation');
          const results = events
            .filter(({ type }) => type === 'postActing' || type === 'actingChunk')
            .map((event) =>
              'value' in event ? event.value : 'result' in event ? event.result : '',
            )
            .map((it) => JSON.stringify(it))
            .sort();
          return { results, early: early.length };
        };
        const plain = await run([]);
        const ahead = await run([speculate({ tools: ['look'] })]);
        expect(ahead.results).toEqual(plain.results);
        expect(ahead.early).toBe(2 * calls.length);
      }),
      { numRuns: 25 },
    );
  });

  it.each([
    ['other', { word: 'b' }, 'b'],
    ['the same', { word: 'a' }, 'a'],
  ])('X31: counts only if the end names the same: %s arguments', async (_, input, output) => {
    const ran: string[] = [];
    const call = (given: object): ModelChunk => ({
      type: 'toolCall',
      index: 0,
      id: 'one',
      name: 'look',
      input: given,
    });
    const restart: ModelChunk = { type: 'restart', why: 'The end differs.', isSameRequest: true };
    const message = [call({ word: 'a' }), restart, call(input), finish()];
    const model = scriptedModel(
      from(message).pipe(concatMap((chunk) => of(chunk).pipe(delay(0)))),
      [text('Done.')],
    );
    const own = look(({ word: said }) => {
      ran.push(said);
      return of(said).pipe(delay(5));
    });
    const events = await record(
      createAgent({ model, tools: [own], use: [speculate({ tools: ['look'] })] }).stream$('?'),
    );
    const statuses = events.flatMap((event) =>
      event.type === 'speculation' ? [event.status] : [],
    );
    expect(statuses).toEqual(['started', 'cancelled', 'started', 'used']);
    expect(ran).toEqual(['a', output]);
    const results = events.flatMap((event) => (event.type === 'postActing' ? [event.result] : []));
    expect(results).toMatchObject([{ content: [{ text: output }], isError: false }]);
  });

  it('I10: names a wrong option', () => {
    // @ts-expect-error -- missing
    expect(() => speculate({})).toThrow(/speculate\(\) needs 'tools'/);
    expect(() => speculate({ tools: [], max: 0 })).toThrow(/'max' must be a whole number/);
  });
});
