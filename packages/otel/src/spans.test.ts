import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { SpanStatusCode } from '@opentelemetry/api';
import {
  type Agent,
  approval,
  createAgent,
  fallback,
  interruptOn,
  history,
  type Layer,
  type Model,
  type ModelChunk,
  MillraceError,
  on,
  retry,
  sequential,
  suspend,
  tool,
  toolResults,
} from 'millrace';
import { sessions } from 'millrace/sessions';
import { agentTool, asAgent } from 'millrace/teams';
import {
  finish,
  type MarbleHelpers,
  marbles,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from 'millrace/testing';
import { rewriteQuestion } from 'millrace/planning';
import { cost, createSemaphore, limitCalls } from 'millrace/traffic';
import {
  concat,
  filter,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  take,
  takeWhile,
  throwError,
  timer,
} from 'rxjs';
import { otel } from './index.js';
import { inMemory } from './traces.test-support.js';

const waits = (name: string, ms: number, fail = false) =>
  tool({
    name,
    description: 'Waits.',
    run: (_, { scheduler }) =>
      timer(ms, scheduler).pipe(
        map(() => {
          if (fail) throw new Error('Broken.');
          return 'Done waiting.';
        }),
      ),
  });

/** An answer after some milliseconds. */
const after =
  (ms: number, ...chunks: readonly ModelChunk[]): ScriptedAnswer =>
  (_request, { scheduler }) =>
    timer(ms, scheduler).pipe(mergeMap(() => [...chunks, finish()]));

const failsAfter =
  (ms: number, error: MillraceError): ScriptedAnswer =>
  (_request, { scheduler }) =>
    timer(ms, scheduler).pipe(mergeMap(() => throwError(() => error)));

const named = (name: string, model: Model): Model => ({ ...model, name });

const limited = (retryAfterMs: number) =>
  new MillraceError('rateLimited', 'Too many requests.', { retryAfterMs });

/** The spans of a call in virtual time. */
const treeOf = (
  make: (memory: ReturnType<typeof inMemory>) => Agent,
  run: (agent: Agent, helpers: MarbleHelpers) => void = (agent, { scheduler }) =>
    void agent.call$('?', { scheduler }).subscribe({ error: () => undefined }),
  ...more: readonly string[]
): string[] => {
  const memory = inMemory();
  marbles((helpers) => {
    run(make(memory), helpers);
    helpers.flush();
  });
  return memory.tree(...more);
};

describe('spans', () => {
  it('tools that run in parallel are siblings that overlap', () => {
    const memory = inMemory();
    marbles(({ scheduler, flush }) => {
      const model = scriptedModel(
        after(3, toolCall('one', {}, 'a'), toolCall('two', {}, 'b')),
        after(3, text('Done.')),
      );
      const tools = [waits('one', 5), waits('two', 9)];
      createAgent({ name: 'clerk', model, tools, use: [otel(memory.providers)] })
        .call$('?', { scheduler, callId: 'c' })
        .subscribe();
      flush();
    });
    expect(memory.tree()).toEqual([
      'invoke_agent clerk 0-15 reply.reason=answer',
      '  chat scripted 0-3 CLIENT',
      '  execute_tool one 3-8',
      '  execute_tool two 3-12',
      '  chat scripted 12-15 CLIENT',
    ]);
    const [chat, one, , , call] = memory.spans();
    expect(one?.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.agent.name': 'clerk',
      'gen_ai.tool.name': 'one',
      'gen_ai.tool.call.id': 'a',
      'gen_ai.tool.type': 'function',
      'millrace.call.id': 'c',
      'millrace.step.id': '1/0',
    });
    expect(chat?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'unknown',
      'gen_ai.request.model': 'scripted',
      'gen_ai.request.stream': true,
      'gen_ai.response.finish_reasons': ['tool_call'],
      'gen_ai.response.time_to_first_chunk': 0.003,
      'millrace.call.id': 'c',
      'millrace.request.attempt': 1,
      'millrace.step.id': '1',
    });
    expect(call?.attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'clerk',
      'gen_ai.response.finish_reasons': ['stop'],
      'millrace.agent.path': 'clerk',
      'millrace.call.id': 'c',
      'millrace.root.id': 'c',
      'millrace.reply.reason': 'answer',
      'millrace.reply.iterations': 2,
    });
    expect(call?.status).toEqual({ code: SpanStatusCode.UNSET });
  });

  it('each attempt of a retried request is a span, from the end of its wait', () => {
    const model = retry(
      scriptedModel(failsAfter(2, limited(10)), failsAfter(3, limited(20)), after(4, text('Yes.'))),
    );
    expect(
      treeOf(
        ({ providers }) => createAgent({ model, use: [otel(providers)] }),
        undefined,
        'millrace.request.attempt',
      ),
    ).toEqual([
      'invoke_agent agent 0-39 reply.reason=answer',
      '  ! millrace.modelRetry 2 request.model=scripted error.type=rateLimited attempt=1 attempts=3 wait_ms=10',
      '  ! millrace.modelRetry 15 request.model=scripted error.type=rateLimited attempt=2 attempts=3 wait_ms=20',
      '  chat scripted 0-2 CLIENT ERROR request.attempt=1 error.type=rateLimited',
      '  chat scripted 12-15 CLIENT ERROR request.attempt=2 error.type=rateLimited',
      '  chat scripted 35-39 CLIENT request.attempt=3',
    ]);
  });

  it.each([
    ['before the retry', 8, []],
    ['at the very moment of the retry', 12, []],
    ['after the retry', 13, ['  chat scripted 12-13 CLIENT cut=unsubscribed']],
  ])('a call that is left %s has a span for what was sent', (_when, leaveAt, last) => {
    const model = retry(scriptedModel(failsAfter(2, limited(10)), after(9, text('Yes.'))));
    const tree = treeOf(
      ({ providers }) => createAgent({ model, use: [otel(providers)] }),
      (agent, { scheduler }) => {
        const call = agent.call$('?', { scheduler }).subscribe();
        scheduler.schedule(() => call.unsubscribe(), leaveAt);
      },
    );
    expect(tree.filter((line) => !line.includes('!'))).toEqual([
      `invoke_agent agent 0-${leaveAt} reply.reason=aborted`,
      '  chat scripted 0-2 CLIENT ERROR error.type=rateLimited',
      ...last,
    ]);
  });

  it('a fallback is a span of the other model', () => {
    const fails = named('gpt-a', scriptedModel(failsAfter(2, limited(1))));
    const model = fallback(fails, named('claude-b', scriptedModel(after(4, text('Yes.')))));
    expect(
      treeOf(
        ({ providers }) => createAgent({ model, use: [otel(providers)] }),
        undefined,
        'gen_ai.provider.name',
      ),
    ).toEqual([
      'invoke_agent agent 0-6 reply.reason=answer',
      '  ! millrace.modelFallback 2 from=gpt-a to=claude-b error.type=rateLimited',
      '  chat gpt-a 0-2 CLIENT ERROR provider.name=openai error.type=rateLimited',
      '  chat claude-b 2-6 CLIENT provider.name=anthropic',
    ]);
  });

  it('retries of a model that falls back, and the other way round', () => {
    const failing = (name: string, ...ms: number[]) =>
      named(name, scriptedModel(...ms.map((it) => failsAfter(it, limited(10)))));
    const inner = retry(
      fallback(
        named('a', scriptedModel(failsAfter(1, limited(10)), after(1, text('Yes.')))),
        failing('b', 1),
      ),
    );
    const chats = (model: Model) =>
      treeOf(({ providers }) => createAgent({ model, use: [otel(providers)] }))
        .filter((line) => line.includes('chat'))
        .map((line) => line.trim());
    expect(chats(inner)).toEqual([
      'chat a 0-1 CLIENT ERROR error.type=rateLimited',
      'chat b 1-2 CLIENT ERROR error.type=rateLimited',
      'chat a 12-13 CLIENT',
    ]);
    const outer = fallback(
      retry(failing('a', 1, 1), { attempts: 2 }),
      named('b', scriptedModel(after(1, text('Yes.')))),
    );
    expect(chats(outer)).toEqual([
      'chat a 0-1 CLIENT ERROR error.type=rateLimited',
      'chat a 11-12 CLIENT ERROR error.type=rateLimited',
      'chat b 12-13 CLIENT',
    ]);
  });

  it('the call of a sub-agent is below the tool that makes it', () => {
    const memory = inMemory();
    marbles(({ scheduler, flush }) => {
      const inner = createAgent({
        name: 'inner',
        model: scriptedModel(after(2, toolCall('look')), after(2, text('Seen.'))),
        tools: [waits('look', 3)],
      });
      const outer = createAgent({
        name: 'outer',
        model: scriptedModel(
          after(1, toolCall('inner', { user_prompt: 'Look.' }), toolCall('wait')),
          after(1, text('Done.')),
        ),
        tools: [agentTool(inner, { description: 'Looks.' }), waits('wait', 1)],
        use: [otel(memory.providers)],
      });
      outer.call$('?', { scheduler, callId: 'c' }).subscribe();
      flush();
    });
    expect(memory.tree('millrace.agent.path', 'millrace.parent.id')).toEqual([
      'invoke_agent outer 0-9 agent.path=outer reply.reason=answer',
      '  chat scripted 0-1 CLIENT',
      '  execute_tool wait 1-2',
      '  execute_tool inner 1-8',
      '    invoke_agent inner 1-8 parent.id=c agent.path=outer/inner reply.reason=answer',
      '      chat scripted 1-3 CLIENT',
      '      execute_tool look 3-6',
      '      chat scripted 6-8 CLIENT',
      '  chat scripted 8-9 CLIENT',
    ]);
  });

  it('a call that fails has an error, and so has a tool', () => {
    const model = scriptedModel(
      after(1, toolCall('break')),
      failsAfter(2, new MillraceError('auth', 'No.')),
    );
    expect(
      treeOf(({ providers }) =>
        createAgent({ model, tools: [waits('break', 3, true)], use: [otel(providers)] }),
      ),
    ).toEqual([
      'invoke_agent agent 0-6 ERROR error.type=auth',
      '  chat scripted 0-1 CLIENT',
      '  execute_tool break 1-4 ERROR error.type=tool',
      '  chat scripted 4-6 CLIENT ERROR error.type=auth',
    ]);
  });

  it('a stream without its finish is a failed request', () => {
    const model = scriptedModel(of(text('Half')));
    expect(treeOf(({ providers }) => createAgent({ model, use: [otel(providers)] }))).toEqual([
      'invoke_agent agent 0-0 ERROR error.type=invalidResponse',
      '  chat scripted 0-0 CLIENT ERROR error.type=invalidResponse',
    ]);
  });

  it('what a caller leaves ends without an error', () => {
    const model = scriptedModel(after(1, toolCall('wait')));
    expect(
      treeOf(
        ({ providers }) =>
          createAgent({ model, tools: [waits('wait', 9)], use: [otel(providers)] }),
        (agent, { scheduler }) => {
          const call = agent.stream$('?', { scheduler }).subscribe();
          scheduler.schedule(() => call.unsubscribe(), 4);
        },
      ),
    ).toEqual([
      'invoke_agent agent 0-4 reply.reason=aborted',
      '  chat scripted 0-1 CLIENT',
      '  execute_tool wait 1-4 cut=unsubscribed',
    ]);
  });

  it('an interrupt ends a tool and a request early, without an error', () => {
    const interrupted = (atMs: number) => {
      const model = scriptedModel(after(2, toolCall('wait')));
      return treeOf(
        ({ providers }) =>
          createAgent({ model, tools: [waits('wait', 9)], use: [otel(providers)] }),
        (agent, { scheduler }) =>
          void agent
            .call$('?', { scheduler, use: [interruptOn(timer(atMs, scheduler))] })
            .subscribe(),
      );
    };
    expect(interrupted(4)).toEqual([
      'invoke_agent agent 0-4 reply.reason=interrupted',
      '  ! millrace.interrupt 4',
      '  chat scripted 0-2 CLIENT',
      '  execute_tool wait 2-4 cut=interrupted',
    ]);
    expect(interrupted(1)).toEqual([
      'invoke_agent agent 0-1 reply.reason=interrupted',
      '  ! millrace.interrupt 1',
      '  chat scripted 0-1 CLIENT cut=interrupted',
    ]);
  });

  it('a tool that is approved runs, and one that is denied has no span', () => {
    const decided = (isApproved: boolean) =>
      treeOf(({ providers }) =>
        createAgent({
          model: scriptedModel(after(1, toolCall('wait', {}, 'a')), after(1, text('Done.'))),
          tools: [waits('wait', 3)],
          use: [
            otel(providers),
            approval(({ context }) => timer(5, context.scheduler).pipe(map(() => isApproved))),
          ],
        }),
      );
    expect(decided(true)).toEqual([
      'invoke_agent agent 0-10 reply.reason=answer',
      '  ! millrace.approvalRequested 1 tool.name=wait tool.call.id=a',
      '  ! millrace.approvalDecided 6 tool.name=wait tool.call.id=a approved=true',
      '  chat scripted 0-1 CLIENT',
      '  execute_tool wait 6-9',
      '  chat scripted 9-10 CLIENT',
    ]);
    expect(decided(false)).toEqual([
      'invoke_agent agent 0-7 reply.reason=answer',
      '  ! millrace.approvalRequested 1 tool.name=wait tool.call.id=a',
      '  ! millrace.approvalDecided 6 tool.name=wait tool.call.id=a approved=false',
      '  chat scripted 0-1 CLIENT',
      '  chat scripted 6-7 CLIENT',
    ]);
  });

  it('a tool call that an interceptor vetoes has an event, and no span', () => {
    const model = scriptedModel(after(1, toolCall('wait', {}, 'a')), after(1, text('Done.')));
    const veto = on(
      'preActing',
      filter(() => false),
      { name: 'strict' },
    );
    expect(
      treeOf(({ providers }) =>
        createAgent({ model, tools: [waits('wait', 3)], use: [otel(providers), veto] }),
      ),
    ).toEqual([
      'invoke_agent agent 0-2 reply.reason=answer',
      '  ! millrace.vetoed 1 of=preActing handler=strict tool.call.id=a',
      '  chat scripted 0-1 CLIENT',
      '  chat scripted 1-2 CLIENT',
    ]);
  });

  it('a suspended call and its tool have it', () => {
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: () => suspend({ who: 'a person' }),
    });
    const model = scriptedModel(after(1, toolCall('ask', {}, 'a')));
    expect(
      treeOf(({ providers }) => createAgent({ model, tools: [ask], use: [otel(providers)] })),
    ).toEqual([
      'invoke_agent agent 0-1 reply.reason=suspended suspended=true',
      '  ! millrace.suspended 1 tool.name=ask tool.call.id=a',
      '  ! millrace.warning 1',
      '  chat scripted 0-1 CLIENT',
      '  execute_tool ask 1-1 suspended=true',
    ]);
  });

  it('requests beside the loop are spans, too: a rewritten question, and the closing answer', () => {
    const model = scriptedModel(
      after(1, text('Which mill?')),
      after(1, toolCall('wait')),
      after(1, text('It closes.')),
    );
    expect(
      treeOf(
        ({ providers }) =>
          createAgent({
            model,
            tools: [waits('wait', 1)],
            limits: { maxIterations: 1 },
            use: [
              otel(providers),
              history([{ role: 'user', content: 'Hi.' }]),
              rewriteQuestion({ above: 0 }),
            ],
          }),
        undefined,
        'millrace.step.id',
      ),
    ).toEqual([
      'invoke_agent agent 0-4 reply.reason=maxIterations',
      '  chat scripted 0-1 CLIENT step.id=rewriteQuestion',
      '  chat scripted 1-2 CLIENT step.id=1',
      '  execute_tool wait 2-3 step.id=1/0',
      '  chat scripted 3-4 CLIENT step.id=summary',
    ]);
  });

  it('the wait for a slot is part of the call', () => {
    const semaphore = createSemaphore({ max: 1 });
    const agentOf = ({ providers }: ReturnType<typeof inMemory>) =>
      createAgent({
        model: scriptedModel(after(5, text('One.')), after(2, text('Two.'))),
        use: [otel(providers), limitCalls(semaphore)],
      });
    expect(
      treeOf(agentOf, (agent, { scheduler }) => {
        agent.call$('?', { scheduler }).subscribe();
        agent.call$('?', { scheduler }).subscribe();
      }),
    ).toEqual([
      'invoke_agent agent 0-5 reply.reason=answer',
      '  chat scripted 0-5 CLIENT',
      'invoke_agent agent 0-7 reply.reason=answer',
      '  ! millrace.queued 0 queue=calls ahead=0',
      '  ! millrace.admitted 5 queue=calls waited_ms=5',
      '  chat scripted 5-7 CLIENT',
    ]);
  });

  it('a layer that answers for a model makes no request', () => {
    const cached: Layer = {
      name: 'cached',
      model: () => (model) => ({ ...model, stream$: () => of(text('Known.'), finish()) }),
    };
    const model = scriptedModel();
    expect(
      treeOf(({ providers }) => createAgent({ model, use: [otel(providers), cached] })),
    ).toEqual(['invoke_agent agent 0-0 reply.reason=answer']);
  });

  it('a subscriber that leaves with the reply has not aborted the call', () => {
    const leaving = (leave: (agent: Agent, options: object) => Observable<unknown>) =>
      treeOf(
        ({ providers }) =>
          createAgent({ model: scriptedModel(after(1, text('Yes.'))), use: [otel(providers)] }),
        (agent, { scheduler }) => void leave(agent, { scheduler }).subscribe(),
      )[0];
    const ended = 'invoke_agent agent 0-1 reply.reason=answer';
    expect(leaving((agent, options) => agent.call$('?', options).pipe(take(1)))).toBe(ended);
    expect(
      leaving((agent, options) =>
        agent.stream$('?', options).pipe(takeWhile(({ type }) => type !== 'postCall')),
      ),
    ).toBe(ended);
  });

  it('requests have their options, usage with the tokens of the cache, and the attributes of the call', () => {
    const memory = inMemory();
    const usage = { inputTokens: 7, outputTokens: 3, cacheReadTokens: 2, cacheWriteTokens: 1 };
    marbles(({ scheduler, flush }) => {
      createAgent({
        model: scriptedModel([text('Yes.'), { type: 'usage', usage }]),
        request: { temperature: 0.5, maxTokens: 9, stopSequences: ['END'] },
        use: [
          otel({
            ...memory.providers,
            attributes: ({ metadata }) => ({ tenant: metadata['tenant'] ?? '' }),
            provider: () => 'mine',
          }),
        ],
      })
        .call$('?', { scheduler, metadata: { tenant: 'acme' } })
        .subscribe();
      flush();
    });
    const [chat, call] = memory.spans();
    const used = {
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 3,
      'gen_ai.usage.cache_read.input_tokens': 2,
      'gen_ai.usage.cache_creation.input_tokens': 1,
      tenant: 'acme',
    };
    expect(chat?.attributes).toMatchObject({
      ...used,
      'gen_ai.provider.name': 'mine',
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 9,
      'gen_ai.request.stop_sequences': ['END'],
    });
    expect(call?.attributes).toMatchObject(used);
  });

  it('a call has its cost, also if it fails, and an unknown one is not 0', () => {
    const memory = inMemory();
    const prices = { scripted: { input: 1e6, output: 0 } };
    const spent: ModelChunk = { type: 'usage', usage: { inputTokens: 3 } };
    const broken = concat(
      of(spent),
      throwError(() => new MillraceError('auth', 'No.')),
    );
    marbles(({ scheduler, flush }) => {
      for (const [model, known] of [
        [scriptedModel([text('Yes.'), spent]), prices],
        [scriptedModel([text('Yes.'), spent]), {}],
        [scriptedModel(broken), prices],
      ] as const) {
        const use = [
          otel(memory.providers),
          cost({ currency: 'EUR', date: '2026-11-30', prices: known }),
        ];
        createAgent({ model, use })
          .call$('?', { scheduler })
          .subscribe({ error: () => undefined });
      }
      flush();
    });
    const calls = memory.spans().filter(({ name }) => name.startsWith('invoke_agent'));
    expect(
      calls.map(({ attributes }) =>
        ['total', 'at_least', 'currency'].map((name) => attributes[`millrace.cost.${name}`]),
      ),
    ).toEqual([
      [3, 3, 'EUR'],
      [undefined, 0, 'EUR'],
      [3, 3, 'EUR'],
    ]);
  });
});

describe('spans of sessions and teams', () => {
  it('have the id of the conversation, also in a call that resumes a suspended one', async () => {
    const memory = inMemory();
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend({}) });
    const agent = createAgent({
      model: scriptedModel([toolCall('ask', {}, 'a')], [text('Yes.')]),
      tools: [ask],
      use: [otel(memory.providers)],
    });
    const session = sessions(agent).open('s');
    await session.call('?');
    await session.call(toolResults({ a: 'A person.' }));
    const spans = memory.spans();
    expect(spans.map(({ name }) => name)).toEqual([
      'chat scripted',
      'execute_tool ask',
      'invoke_agent agent',
      'chat scripted',
      'invoke_agent agent',
    ]);
    expect(new Set(spans.map(({ attributes }) => attributes['gen_ai.conversation.id']))).toEqual(
      new Set(['s']),
    );
  });

  it('calls of an agent that is made of others are below it', () => {
    const memory = inMemory();
    const step = (name: string) =>
      createAgent({ name, model: scriptedModel(after(2, text(`${name}.`))) });
    marbles(({ scheduler, flush }) => {
      const both = asAgent(sequential(step('first'), step('second')), {
        name: 'both',
        use: [otel(memory.providers)],
      });
      both.call$('?', { scheduler }).subscribe();
      flush();
    });
    expect(memory.tree()).toEqual([
      'invoke_agent both 0-4 reply.reason=answer',
      '  invoke_agent first 0-2 reply.reason=answer',
      '    chat scripted 0-2 CLIENT',
      '  invoke_agent second 2-4 reply.reason=answer',
      '    chat scripted 2-4 CLIENT',
    ]);
  });

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['refusal', 'content_filter'],
    ['filtered', 'content_filter'],
  ] as const)('a finish of %s is reported as %s', async (reported, expected) => {
    const memory = inMemory();
    const model = scriptedModel([text('Yes.'), finish(reported)]);
    await createAgent({ model, use: [otel(memory.providers)] })
      .call('?')
      .catch(() => undefined);
    const reasons = memory.spans().map((span) => span.attributes['gen_ai.response.finish_reasons']);
    expect(reasons).toEqual([[expected], [expected]]);
  });

  it('a request that calls tools finishes with tool_call, unless it was restarted without them', async () => {
    const memory = inMemory();
    const model = scriptedModel(
      [toolCall('one'), finish('stop')],
      [toolCall('one'), { type: 'restart', why: 'Repeated.' }, text('Yes.'), finish('stop')],
    );
    const one = tool({ name: 'one', description: 'Waits.', run: () => 'Done.' });
    await createAgent({ model, tools: [one], use: [otel(memory.providers)] }).call('?');
    const chats = memory.spans().filter(({ name }) => name.startsWith('chat'));
    expect(chats.map((span) => span.attributes['gen_ai.response.finish_reasons'])).toEqual([
      ['tool_call'],
      ['stop'],
    ]);
  });

  it('a model whose provider is not known has one all the same', async () => {
    const providerOf = async (name: string, provider?: (model: string) => string | undefined) => {
      const memory = inMemory();
      const model = named(name, scriptedModel([text('Yes.')]));
      const traced = otel({ ...memory.providers, ...(provider && { provider }) });
      await createAgent({ model, use: [traced] }).call('?');
      return memory.spans()[0]?.attributes['gen_ai.provider.name'];
    };
    expect(await providerOf('llama3.1:8b')).toBe('unknown');
    expect(await providerOf('llama3.1:8b', () => 'ollama')).toBe('ollama');
    expect(await providerOf('gpt-5', () => undefined)).toBe('openai');
  });

  it('spans have the version of the package', async () => {
    const memory = inMemory();
    const model = scriptedModel([text('Yes.')]);
    await createAgent({ model, use: [otel(memory.providers)] }).call('?');
    const path = new URL(import.meta.resolve('@millrace/otel/package.json'));
    const { version } = JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string };
    const [{ scope } = {}] = await memory.scopeMetrics();
    expect(memory.spans()[0]?.instrumentationScope).toMatchObject({ version });
    expect(scope).toMatchObject({ name: '@millrace/otel', version });
  });

  it('a call that is refused in a queue has a span', async () => {
    const memory = inMemory();
    const agent = createAgent({
      model: scriptedModel(NEVER),
      use: [otel(memory.providers)],
    });
    const session = sessions(agent).open('s');
    const first = session.call$('?').subscribe();
    await session.call('?', { onBusy: 'reject' }).catch(() => undefined);
    first.unsubscribe();
    const calls = memory.spans().filter(({ name }) => name.startsWith('invoke_agent'));
    expect(
      calls.map(
        ({ attributes }) => attributes['error.type'] ?? attributes['millrace.reply.reason'],
      ),
    ).toEqual(['busy', 'aborted']);
  });
});
