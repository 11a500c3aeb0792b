import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type Agent,
  type AgentEvent,
  createAgent,
  createDemand,
  type Demand,
  type DemandGate,
  type Embedder,
  guardOutput,
  type Layer,
  MillraceError,
  type Model,
  type ModelChunk,
  noUsage,
  only,
  textOf,
  tool,
} from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { finish, marbles, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import { budget } from 'millrace/traffic';
import {
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  EMPTY,
  filter,
  firstValueFrom,
  ignoreElements,
  map,
  NEVER,
  type Observable,
  of,
  take,
  throwError,
} from 'rxjs';
import { type CacheResponsesOptions, cacheResponses, inProcessResponses } from './index.js';

const ada = { metadata: { userId: 'ada' } };
const bob = { metadata: { userId: 'bob' } };
const usage = { ...noUsage, inputTokens: 10, outputTokens: 5 };
const used: ModelChunk = { type: 'usage', usage };
const chunks = { t: text('t'), u: used, f: finish() };

const hitsOf = (agent: Pick<Agent, 'events$'>): AgentEvent[] => {
  const hits: AgentEvent[] = [];
  agent.events$.pipe(only('cacheHit')).subscribe((event) => hits.push(event));
  return hits;
};

const agentOf = (model: Model, options?: CacheResponsesOptions, ...use: readonly Layer[]): Agent =>
  createAgent({ name: 'desk', model, use: [...use, cacheResponses(options)] });

describe('C13: cacheResponses', () => {
  it('answers the same request once, at no cost, for the same user and agent only', async () => {
    const spent = budget({ tokens: 1_000 });
    const model = scriptedModel([text('1'), used], [text('2'), used], [text('3'), used]);
    const cache = cacheResponses();
    const agent = createAgent({ name: 'desk', model, use: [spent, cache] });
    const hits = hitsOf(agent);
    const say = async (it: string, whose: object, by: Agent = agent): Promise<string> =>
      textOf(await by.call(it, whose));
    expect(await say('?', ada)).toBe('1');
    expect(await say('?', ada)).toBe('1');
    expect(await say('?', bob)).toBe('2');
    expect(await say('!', ada)).toBe('3');
    expect(await say('?', ada)).toBe('1');
    expect(model.requests.length).toBe(3);
    expect(hits).toMatchObject([
      { by: 'exact', saved: usage, iteration: 1 },
      { by: 'exact', saved: usage },
    ]);
    expect(spent.spent.tokens).toBe(45);
    const other = createAgent({ name: 'other', model: scriptedModel([text('4')]), use: [cache] });
    expect(await say('?', ada, other)).toBe('4');
  });

  it('caches nothing for a call without a user, and reports it once per call; its own scope decides', async () => {
    const warnings: string[] = [];
    const model = scriptedModel([text('1')], [text('2')], [text('3')]);
    const agent = agentOf(model);
    agent.events$.pipe(only('warning')).subscribe(({ message }) => warnings.push(message));
    expect([textOf(await agent.call('?')), textOf(await agent.call('?'))]).toEqual(['1', '2']);
    expect(warnings.length).toBe(2);
    expect(warnings[0]).toContain('Pass { metadata: { userId } } with the call');
    const nobody = agentOf(scriptedModel([text('a')], [text('b')]));
    const said = [{ userId: '' }, { userId: '' }].map((metadata) => nobody.call('?', { metadata }));
    expect((await Promise.all(said)).map(textOf)).toEqual(['a', 'b']);
    const open = agentOf(model, { scope: () => 'everyone' });
    expect([textOf(await open.call('?')), textOf(await open.call('?', bob))]).toEqual(['3', '3']);
    const off = agentOf(scriptedModel([text('4')], [text('5')]), { scope: () => undefined });
    expect([textOf(await off.call('?')), textOf(await off.call('?'))]).toEqual(['4', '5']);
  });

  it('shares a request under way: one pays, demand of one suffices, the last to leave aborts it', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const source$ = cold('---t---(tuf|)', chunks);
      const agent = agentOf(scriptedModel(source$));
      const call$ = agent.call$('?', { scheduler, ...ada });
      const told$ = call$.pipe(map((reply) => [textOf(reply), reply.usage.outputTokens]));
      expectObservable(told$).toBe('-------(a|)', { a: ['tt', 5] });
      expectObservable(told$, '-----^').toBe('-------(a|)', { a: ['tt', 0] });
      expectObservable(call$, '--^--!').toBe('-');
      expectObservable(
        agent.events$.pipe(
          only('cacheHit'),
          map(({ by, saved }) => [by, saved.outputTokens]),
        ),
      ).toBe('-------h', { h: ['shared', 5] });
      expectSubscriptions(source$.subscriptions).toBe('^------!');
    });
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const source$ = cold('---t---(tuf|)', chunks);
      const agent = agentOf(scriptedModel(source$, source$));
      const call$ = agent.call$('?', { scheduler, ...ada });
      expectObservable(call$, '^--!').toBe('-');
      expectObservable(call$, '-^---!').toBe('-');
      // The request was aborted: another one is sent.
      const told$ = call$.pipe(map((reply) => reply.usage.outputTokens));
      expectObservable(told$, '------^').toBe('13ms (a|)', { a: 5 });
      expectSubscriptions(source$.subscriptions).toBe(['^----!', '------^------!']);
    });
  });

  it('lets the next reader pay when the first has left', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const source$ = cold('---t---(tuf|)', chunks);
      const agent = agentOf(scriptedModel(source$));
      const call$ = agent.call$('?', { scheduler, ...ada });
      expectObservable(call$, '^---!').toBe('-');
      const told$ = call$.pipe(map((reply) => reply.usage.outputTokens));
      expectObservable(told$, '-^').toBe('-------(a|)', { a: 5 });
      expectSubscriptions(source$.subscriptions).toBe('^------!');
    });
  });

  it('makes no reader pay again who continues after the first one has read all', () => {
    marbles(({ cold, scheduler, expectObservable, flush }) => {
      const spent = budget({ tokens: 1_000 });
      const agent = agentOf(scriptedModel(cold('--t--(tuf|)', chunks)), {}, spent);
      const demand = createDemand(1);
      demand.backlog(1);
      cold('20ms x').subscribe(() => demand.backlog(0));
      const told$ = (options: object) =>
        agent
          .call$('?', { scheduler, ...ada, ...options })
          .pipe(map((reply) => [textOf(reply), reply.usage.outputTokens]));
      expectObservable(told$({})).toBe('-----(a|)', { a: ['tt', 5] });
      expectObservable(told$({ demand })).toBe('20ms (a|)', { a: ['tt', 0] });
      const hit$ = agent.events$.pipe(only('cacheHit'));
      expectObservable(hit$.pipe(map(({ by }) => by))).toBe('20ms h', { h: 'shared' });
      flush();
      expect(spent.spent.tokens).toBe(15);
    });
  });

  it('shares a request only with the same time-outs: those of another reader end nothing', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const source$ = cold('20ms (tf|)', chunks);
      const agent = agentOf(scriptedModel(source$, source$));
      const told$ = (firstChunkMs: number) =>
        agent.call$('?', { scheduler, ...ada, limits: { timeouts: { firstChunkMs } } }).pipe(
          map(textOf),
          catchError((it: MillraceError) => of(it.code)),
        );
      expectObservable(told$(9)).toBe('9ms (e|)', { e: 'timeout' });
      expectObservable(told$(99), '-^').toBe('21ms (t|)');
      expectObservable(told$(99), '--^').toBe('21ms (t|)');
      expectSubscriptions(source$.subscriptions).toBe(['^ 8ms !', '-^ 19ms !']);
    });
  });

  it('does not keep a failure, and gives it to all who share the request', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const error = new MillraceError('auth', 'No key.');
      const agent = agentOf(scriptedModel(cold('--#', chunks, error), cold('-(tf|)', chunks)));
      const call$ = agent.call$('?', { scheduler, ...ada }).pipe(map(textOf));
      expectObservable(call$).toBe('--#', {}, error);
      expectObservable(call$, '-^').toBe('--#', {}, error);
      expectObservable(call$, '---^').toBe('----(t|)');
      expectObservable(call$, '-----^').toBe('-----(t|)');
    });
  });

  it('forgets an answer when its time is over, by the clock of the call', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const model = scriptedModel(cold('(af|)', { ...chunks, a: text('a') }), [text('b')]);
      const agent = agentOf(model, { ttlMs: 10 });
      const call$ = agent.call$('?', { scheduler, ...ada }).pipe(map(textOf));
      expectObservable(call$).toBe('(a|)');
      expectObservable(call$, '9ms ^').toBe('9ms (a|)');
      expectObservable(call$, '10ms ^').toBe('10ms (b|)');
    });
  });

  it('forgets an answer that a clock has dated more than a minute too late', async () => {
    const hour = 3_600_000;
    const at = (now: number) => ({
      scheduler: { now: () => now, schedule: asyncScheduler.schedule.bind(asyncScheduler) },
    });
    const agent = agentOf(scriptedModel([text('a')], [text('b')]), { ttlMs: hour });
    const ask = async (now: number) => textOf(await agent.call('?', { ...ada, ...at(now) }));
    expect(await ask(10 * hour)).toBe('a');
    expect(await ask(10 * hour - 60_000)).toBe('a');
    expect(await ask(5 * hour)).toBe('b');

    const store = inProcessResponses();
    const question = { place: 'here', vector: [1] };
    const times = { storedAt: 10 * hour, expiresAt: 11 * hour };
    store.set$('k', { chunks: [text('a')], usage: noUsage, question, ...times }).subscribe();
    const nearest = (now: number) => firstValueFrom(store.nearest$(question, now));
    expect(await nearest(10 * hour)).toMatchObject({ similarity: 1 });
    expect(await nearest(5 * hour)).toBeUndefined();
  });

  it('holds a cached answer back while demand is closed, and frees it with its reader', () => {
    marbles(({ scheduler, expectObservable }) => {
      const model = scriptedModel([thinking('h'), text('t')]);
      const agent = agentOf(model);
      const [gate, forgotten] = [closedGate(), closedGate()];
      scheduler.schedule(() => gate.backlog(0), 5);
      const ask$ = (demand?: Demand): Observable<string> =>
        agent.call$('?', { scheduler, ...ada, ...(demand && { demand }) }).pipe(map(textOf));
      expectObservable(ask$()).toBe('(t|)');
      expectObservable(ask$(gate), '-^').toBe('-----(t|)');
      expectObservable(ask$(forgotten), '-^-!').toBe('-');
      expectObservable(ask$(), '--^').toBe('--(t|)');
    });
  });

  it('reads on for one reader while another one is paused', () => {
    marbles(({ scheduler, expectObservable }) => {
      const model: Model = {
        name: 'pulled',
        stream$: (_, { demand }) =>
          demand.open$.pipe(
            filter((isOpen) => isOpen),
            take(1),
            concatMap(() => of(text('t'), finish())),
          ),
      };
      const agent = agentOf(model);
      const gate = closedGate();
      scheduler.schedule(() => gate.backlog(0), 6);
      const ask$ = (demand?: Demand): Observable<string> =>
        agent.call$('?', { scheduler, ...ada, ...(demand && { demand }) }).pipe(map(textOf));
      expectObservable(ask$(gate)).toBe('------(t|)');
      expectObservable(ask$(), '--^').toBe('--(t|)');
    });
  });

  it('gives back the whole message: thinking with its signature, and tool calls, which run again', async () => {
    let runs = 0;
    const look = tool({
      name: 'look',
      description: 'Looks.',
      input: jsonSchema({ type: 'object' }),
      run: () => `seen ${(runs += 1)}`,
    });
    const answer: readonly ModelChunk[] = [
      thinking('Hm'),
      { type: 'thinking', text: '.', signature: 'sig' },
      text('I '),
      text('look.'),
      { type: 'toolCall', index: 0, id: 'x', name: 'look', json: '{"at":' },
      { type: 'toolCall', index: 0, json: '"mill"}' },
      used,
      finish(),
    ];
    const model = scriptedModel(answer, [text('Done.')], [text('Again.')]);
    const agent = createAgent({ model, tools: [look], use: [cacheResponses()] });
    const hits = hitsOf(agent);
    const messages: unknown[] = [];
    agent.events$
      .pipe(only('postReasoning'))
      .subscribe(({ message }) => messages.push(message.content));
    expect(textOf(await agent.call('?', ada))).toBe('Done.');
    // Requests after a tool result are not cached.
    expect(textOf(await agent.call('?', ada))).toBe('Again.');
    expect([runs, hits.length, model.requests.length]).toEqual([2, 1, 3]);
    expect(messages[2]).toEqual(messages[0]);
    expect(messages[0]).toMatchObject([
      { type: 'thinking', text: 'Hm.', signature: 'sig' },
      { type: 'text', text: 'I look.' },
      { type: 'tool_call', name: 'look', input: { at: 'mill' } },
    ]);
  });

  it('stores only whole answers that ended by themselves, and only requests that may be cached', async () => {
    const partial: readonly (readonly ModelChunk[])[] = [
      [text('x'), finish('length')],
      [text('x'), finish('refusal')],
      [text('x'), { type: 'malformed', feedback: 'Again.', isAnswer: true }],
    ];
    for (const answer of partial) {
      const agent = agentOf(scriptedModel(answer, [text('2')], [text('3')]));
      await agent.call('?', ada);
      const hits = hitsOf(agent);
      await agent.call('?', ada);
      expect(hits).toEqual([]);
    }
    const varied = createAgent({
      model: scriptedModel([text('1')], [text('2')]),
      request: { temperature: 0.7 },
      use: [cacheResponses()],
    });
    expect([await varied.call('?', ada), await varied.call('?', ada)].map(textOf)).toEqual([
      '1',
      '2',
    ]);
    const restarted = scriptedModel([text('no'), { type: 'restart', why: 'x' }, text('yes')]);
    const agent = agentOf(restarted);
    expect([await agent.call('?', ada), await agent.call('?', ada)].map(textOf)).toEqual([
      'yes',
      'yes',
    ]);
    // A guard sees a cached answer like any other.
    const stopped = agentOf(scriptedModel([text('1 secret 2')]), {}, guardOutput(['secret']));
    expect([await stopped.call('?', ada), await stopped.call('?', ada)].map(textOf)).toEqual([
      '1 ',
      '1 ',
    ]);
  });

  it('asks the model again if a layer does', async () => {
    const again: Layer = {
      name: 'again',
      step: () => (next) => (step) =>
        step.kind === 'model' ? concat(next(step).pipe(ignoreElements()), next(step)) : next(step),
    };
    const model = scriptedModel([text('1')], [text('2')]);
    const cache = cacheResponses();
    const agent = createAgent({ model, use: [again, cache] });
    expect(textOf(await agent.call('?', ada))).toBe('2');
    const calm = createAgent({ model, use: [cache] });
    expect(textOf(await calm.call('?', ada))).toBe('2');
  });

  it('is not asked for a replayed step', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const store = inProcessResponses();
    const model = scriptedModel(
      [toolCall('look')],
      throwError(() => new MillraceError('auth', 'No key.')),
    );
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
    const build = (by: Model): Agent =>
      createAgent({ model: by, tools: [look], use: [durable, cacheResponses({ store })] });
    await expect(build(model).call('?', { callId: 'c', ...ada })).rejects.toThrow('No key.');
    const agent = build(scriptedModel([text('Done.')]));
    const hits = hitsOf(agent);
    expect(textOf(await durable.resume(agent, 'c'))).toBe('Done.');
    expect(hits).toEqual([]);
  });

  it('continues without a store that fails or is too slow', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const broken = cold<undefined>('-#', {}, new Error('Gone.'));
      const stuck = cold<undefined>('-');
      const agent = agentOf(scriptedModel([text('1')], [text('2')]), {
        store: { get$: () => broken, set$: () => stuck },
        lookupMs: 5,
      });
      const warned$ = agent.events$.pipe(
        only('warning'),
        map(({ message }) => message),
      );
      expectObservable(warned$).toBe('-r----s', {
        r: 'cacheResponses() could not read the cache: Gone.',
        s: "cacheResponses() could not store an answer: it took more than 5 ms ('lookupMs').",
      });
      expectObservable(agent.call$('?', { scheduler, ...ada }).pipe(map(textOf))).toBe(
        '------(1|)',
      );
      expectSubscriptions(stuck.subscriptions).toBe('-^----!');
    });
  });

  it('asks the model if the store or the embedder emits nothing', async () => {
    const nothing = { get$: () => EMPTY, set$: () => EMPTY, nearest$: () => EMPTY };
    const embedder: Embedder = { embed$: () => EMPTY };
    const model = scriptedModel([text('1')], [text('2')]);
    expect(textOf(await agentOf(model, { store: nothing }).call('?', ada))).toBe('1');
    const similar = agentOf(model, { store: nothing, meaning: { embedder } });
    expect(textOf(await similar.call('?', ada))).toBe('2');
  });

  it('answers a question that means the same, of the same user, in the same conversation, without tools', async () => {
    const model = scriptedModel([text('1'), used], [text('2')], [text('3')], [text('4')]);
    const options = { meaning: { embedder: words, threshold: 0.8 } };
    const cache = cacheResponses(options);
    const agent = createAgent({ model, instructions: 'Be kind.', use: [cache] });
    const hits = hitsOf(agent);
    const ask = async (it: string, whose: object, by = agent): Promise<string> =>
      textOf(await by.call(it, whose));
    expect(await ask('where is the old mill', ada)).toBe('1');
    expect(await ask('where is the old old mill', ada)).toBe('1');
    expect(hits).toMatchObject([{ by: 'meaning', saved: usage }]);
    expect(hits[0]).toHaveProperty('similarity', expect.closeTo(0.94, 1));
    expect(await ask('where is the old old mill', bob)).toBe('2');
    expect(await ask('who owns a wheel', ada)).toBe('3');
    const strict = createAgent({ model, instructions: 'Be strict.', use: [cache] });
    expect(await ask('where is the old mill', ada, strict)).toBe('4');
    const tools = [tool({ name: 'look', description: 'Looks.', run: () => 'seen' })];
    const acting = scriptedModel([text('5')], [text('6')]);
    const able = createAgent({ model: acting, tools, use: [cacheResponses(options)] });
    expect(await ask('pay 100 to the old mill', ada, able)).toBe('5');
    expect(await ask('pay 900 to the old mill', ada, able)).toBe('6');
  });

  it('drops the answer that was used least recently', async () => {
    const model = scriptedModel(...['1', '2', '3', '4'].map((it) => [text(it)]));
    const agent = agentOf(model, { store: inProcessResponses({ maxEntries: 2 }) });
    const asked: string[] = [];
    for (const it of ['a', 'b', 'a', 'c', 'a', 'b']) asked.push(textOf(await agent.call(it, ada)));
    expect(asked).toEqual(['1', '2', '1', '3', '1', '4']);
  });

  it('gives the answer that the model gave, however its chunks were cut (property)', async () => {
    const chunk = fc.oneof(
      fc.string().map(text),
      fc.string().map(thinking),
      fc
        .string({ minLength: 1 })
        .map((signature): ModelChunk => ({ type: 'thinking', text: '', signature })),
      fc.record({ index: fc.nat(2), at: fc.string() }).map(({ index, at }): ModelChunk => ({
        type: 'toolCall',
        index,
        id: `${index}`,
        name: 'look',
        input: { at },
      })),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(chunk, { minLength: 1, maxLength: 12 }), async (answer) => {
        const contents: unknown[] = [];
        const agent = agentOf(scriptedModel([text('.'), ...answer], [text('end')], [text('end')]));
        agent.events$
          .pipe(only('postReasoning'))
          .subscribe(({ message: { content }, iteration }) => {
            if (iteration === 1) contents.push(content);
          });
        const hits = hitsOf(agent);
        await agent.call('?', ada);
        await agent.call('?', ada);
        expect(contents[1]).toEqual(contents[0]);
        expect(hits.length).toBeGreaterThan(0);
      }),
      { numRuns: 40 },
    );
  });

  it('rejects what it cannot use, and names the fix', () => {
    const store = { get$: () => NEVER, set$: () => NEVER };
    expect(() => cacheResponses({ meaning: { embedder: words }, store })).toThrow(
      "'meaning' needs a store with nearest$(), such as inProcessResponses().",
    );
    expect(() => cacheResponses({ ttlMs: 0 })).toThrow(
      "'ttlMs' must be a number of milliseconds above 0",
    );
    // @ts-expect-error: no store
    expect(() => cacheResponses({ store: {} })).toThrow('a store with get$() and set$()');
  });
});

const closedGate = (): DemandGate => {
  const gate = createDemand(1);
  gate.backlog(1);
  return gate;
};

/** Counts words, so that texts with the same words are similar. */
const words: Embedder = {
  embed$: (texts) =>
    of(
      texts.map((it) => {
        const vector = Array.from({ length: 64 }, () => 0);
        for (const word of it.split(' ')) {
          const place = [...word].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 64;
          vector[place] = (vector[place] ?? 0) + 1;
        }
        return vector;
      }),
    ),
};
