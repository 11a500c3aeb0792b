import { describe, expect, it } from '@jest/globals';
import {
  concat,
  map,
  type Observable,
  of,
  lastValueFrom,
  throwError,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  answerTool,
  createAgent,
  fallback,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelReport,
  type ModelRequest,
  retry,
  timeouts,
  tool,
  type Usage,
} from '../index.js';
import type { MillraceErrorOptions } from '../values/errors.js';
import type { RetryOptions } from './retry.js';
import {
  finish,
  lentContext,
  marbles,
  record,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from '../testing/index.js';

const request: ModelRequest = { messages: [] };
const busy = (options?: MillraceErrorOptions): MillraceError =>
  new MillraceError('rateLimited', 'Too many requests.', options);
const fails = (error: Error, ...before: readonly ModelChunk[]): Observable<ModelChunk> =>
  concat(
    of(...before),
    throwError(() => error),
  );
const answers = [text('t'), finish()];
const noJitter = { random: () => 0.5 };

describe('retry', () => {
  it('C4: sends three requests in all, after one second and after two', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const reports: ModelReport[] = [];
      const attempts = [
        cold<ModelChunk>('5ms #', {}, busy()),
        cold<ModelChunk>('5ms #', {}, busy()),
        cold('5ms (tf|)', { t: text('t'), f: finish() }),
      ];
      const model = retry(scriptedModel(...attempts));
      const context = lentContext({
        scheduler,
        ...noJitter,
        report: (event) => reports.push(event),
      });
      expectObservable(model.stream$(request, context)).toBe('3015ms (tf|)', {
        t: text('t'),
        f: finish(),
      });
      expectSubscriptions(attempts[0]?.subscriptions ?? []).toBe('^ 4ms !');
      expectSubscriptions(attempts[1]?.subscriptions ?? []).toBe('1005ms ^ 4ms !');
      expectSubscriptions(attempts[2]?.subscriptions ?? []).toBe('3010ms ^ 4ms !');
      scheduler.flush();
      expect(reports).toEqual([
        {
          type: 'modelRetry',
          model: 'scripted',
          attempt: 1,
          attempts: 3,
          waitMs: 1000,
          error: busy(),
        },
        {
          type: 'modelRetry',
          model: 'scripted',
          attempt: 2,
          attempts: 3,
          waitMs: 2000,
          error: busy(),
        },
      ]);
    });
  });

  it('C4: gives up after the last attempt, with its error', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const last = busy();
      const model = retry(
        scriptedModel(
          cold<ModelChunk>('#', {}, busy()),
          cold<ModelChunk>('#', {}, busy()),
          cold<ModelChunk>('#', {}, last),
        ),
      );
      const answer$ = model.stream$(request, lentContext({ scheduler, ...noJitter }));
      expectObservable(answer$).toBe('3s #', {}, last);
    });
  });

  it('C4: doubles the wait up to its longest, and spreads it by a quarter either way', () => {
    const waits = (random: number): readonly number[] => {
      const found: number[] = [];
      marbles(({ scheduler, flush }) => {
        const model: Model = { name: 'busy', stream$: () => fails(busy()) };
        retry(model, { attempts: 7 })
          .stream$(
            request,
            lentContext({
              scheduler,
              random: () => random,
              report: (event) => event.type === 'modelRetry' && found.push(event.waitMs),
            }),
          )
          .subscribe({ error: () => undefined });
        flush();
      });
      return found;
    };
    expect(waits(0.5)).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000]);
    expect(waits(0)).toEqual([750, 1500, 3000, 6000, 7500, 7500]);
    expect(waits(0.999999)).toEqual([1250, 2500, 5000, 10_000, 12_500, 12_500]);
  });

  it('C4: a hundred calls that are refused at the same time do not come back at the same time', () => {
    const scheduler = new VirtualTimeScheduler();
    const asked: number[] = [];
    const model = retry({
      name: 'busy',
      stream$: () => {
        asked.push(scheduler.now());
        return fails(busy());
      },
    });
    const agent = createAgent({ model });
    for (let call = 0; call < 100; call += 1) {
      agent.call$('?', { scheduler }).subscribe({ error: () => undefined });
    }
    scheduler.flush();
    expect(asked).toHaveLength(300);
    const second = asked.slice(100, 200).sort((a, b) => a - b);
    const inOneWindow = second.map(
      (from) => second.filter((at) => at >= from && at < from + 50).length,
    );
    expect(Math.max(...inOneWindow)).toBeLessThan(30);
    expect(Math.max(...second) - Math.min(...second)).toBeGreaterThan(400);
  });

  it('X4: waits as long as the provider asks, and not longer than it is allowed', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const patient = retry(
        scriptedModel(cold<ModelChunk>('#', {}, busy({ retryAfterMs: 42_000 })), answers),
      );
      const answer$ = patient.stream$(request, lentContext({ scheduler }));
      expectObservable(answer$).toBe('42s (tf|)', { t: text('t'), f: finish() });
    });
    marbles(({ cold, scheduler, expectObservable }) => {
      const impatient = retry(
        scriptedModel(cold<ModelChunk>('#', {}, busy({ retryAfterMs: 120_000 }))),
      );
      const error = busy({ retryAfterMs: 120_000 });
      error.message += ' It asks to wait 120000 ms, which is more than maxRetryWait (60000 ms).';
      expectObservable(impatient.stream$(request, lentContext({ scheduler }))).toBe('#', {}, error);
    });
  });

  it.each([
    ['auth', undefined],
    ['invalidRequest', undefined],
    ['contextTooLong', undefined],
    ['rateLimited', false],
  ] as const)('C4: does not send %s again (retryable: %s)', async (code, retryable) => {
    const error = new MillraceError(code, 'No.', retryable === undefined ? {} : { retryable });
    const model = scriptedModel(fails(error));
    const answer$ = retry(model).stream$(request, lentContext());
    await expect(lastValueFrom(answer$)).rejects.toBe(error);
    expect(model.requests).toHaveLength(1);
  });

  it('C4: waits are left immediately by a subscriber that leaves', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions, flush }) => {
      const [first, second] = [cold<ModelChunk>('#', {}, busy()), cold('t', { t: text('t') })];
      const answer$ = retry(scriptedModel(first, second)).stream$(
        request,
        lentContext({ scheduler, ...noJitter }),
      );
      expectObservable(answer$, '^ 500ms !').toBe('-');
      expectSubscriptions(second.subscriptions).toBe([]);
      flush();
      expect(scheduler.actions).toHaveLength(0);
    });
  });

  it.each([[text('x')], [thinking('x')], [toolCall('x')]])(
    'I4: a request that has shown something is not sent again: %j',
    async (shown) => {
      const error = new MillraceError('connection', 'Reset.');
      const model = scriptedModel(fails(error, shown), answers);
      const answer$ = retry(model, { minMs: 0 }).stream$(request, lentContext());
      await expect(lastValueFrom(answer$)).rejects.toBe(error);
      expect(model.requests).toHaveLength(1);
    },
  );

  it('I4: usage, empty deltas and the finish of nothing are not something shown', async () => {
    const model = scriptedModel(
      fails(busy(), { type: 'usage', usage: { inputTokens: 3 } }, text(''), thinking('')),
      answers,
    );
    const answer$ = retry(model, { minMs: 0 }).stream$(request, lentContext());
    expect((await lastValueFrom(answer$.pipe(toArray()))).slice(-2)).toEqual(answers);
  });

  it('I4: with retryPartial what was shown is void, and the text is that of the last attempt', async () => {
    const reset = new MillraceError('connection', 'Reset.');
    const model = retry(scriptedModel(fails(reset, text('Half a')), [text('Whole.')]), {
      retryPartial: true,
      minMs: 0,
    });
    const events = await record(createAgent({ model }).stream$('?', { callId: 'c' }));
    const told = events.flatMap((event) => {
      if (event.type === 'reasoningChunk') return [`${event.messageId} ${event.delta}`];
      return event.type === 'messageDiscarded' ? [`${event.messageId} void: ${event.why}`] : [];
    });
    expect(told).toEqual(['c/1 Half a', 'c/1 void: Retrying the request: Reset.', 'c/1#2 Whole.']);
    expect(events.at(-1)).toMatchObject({ reply: { id: 'c/1#2', content: [text('Whole.')] } });
  });

  it('I4: each broken attempt voids what it showed, however many there are', async () => {
    const reset = new MillraceError('connection', 'Reset.');
    const model = retry(
      scriptedModel(fails(reset, text('a')), fails(reset, text('b')), fails(reset), [text('c')]),
      { attempts: 4, retryPartial: true, minMs: 0 },
    );
    const chunks = await lastValueFrom(
      model.stream$(request, lentContext()).pipe(
        map((chunk) => (chunk.type === 'text' ? chunk.text : chunk.type)),
        toArray(),
      ),
    );
    expect(chunks).toEqual(['a', 'restart', 'b', 'restart', 'c', 'finish']);
  });

  it('I4: a complete answer is not requested again, no matter what comes after it', async () => {
    const reset = new MillraceError('connection', 'Reset.');
    const model = scriptedModel(fails(reset, text('a'), finish()), answers);
    const answer$ = retry(model, { retryPartial: true, minMs: 0 }).stream$(request, lentContext());
    await expect(lastValueFrom(answer$)).rejects.toBe(reset);
    expect(model.requests).toHaveLength(1);
  });

  it('I9: a pause that is followed by a broken response loses nothing of what stood before it', async () => {
    const reset = new MillraceError('connection', 'Reset.');
    const script = scriptedModel(
      [thinking('Hm.'), text('A '), toolCall('x', {}, 'u1'), text('and '), finish('pause')],
      fails(reset, text('B'), toolCall('y', {}, 'u2')),
      [text('B2.'), finish('length')],
    );
    const agent = createAgent({ model: retry(script, { retryPartial: true, minMs: 0 }) });
    const events = await record(agent.stream$('?', { callId: 'c' }));
    const told = events.flatMap((event) =>
      event.type === 'reasoningChunk' && event.messageId === 'c/1#2' && event.kind !== 'toolInput'
        ? [event.delta]
        : [],
    );
    expect(told).toEqual(['Hm.', 'A ', 'and ', 'B2.']);
    expect(events.at(-1)).toMatchObject({
      reply: {
        id: 'c/1#2',
        content: [thinking('Hm.'), text('A '), text('and B2.')],
      },
    });
  });

  it('L3: what broken attempts cost is counted, and not mixed', async () => {
    const cost = (usage: Partial<Usage>): ModelChunk => ({ type: 'usage', usage });
    const model = retry(
      scriptedModel(fails(busy(), cost({ inputTokens: 100, cacheReadTokens: 50 })), [
        cost({ inputTokens: 10 }),
        text('x'),
      ]),
      { minMs: 0 },
    );
    const events = await record(createAgent({ model }).stream$('?'));
    expect(events.at(-1)).toMatchObject({
      reply: { usage: { inputTokens: 110, cacheReadTokens: 50 } },
    });
    expect(events.some(({ type }) => type === 'messageDiscarded')).toBe(false);
  });

  it('H1: sub-agents draw on the budget of the call that they are a part of', async () => {
    const below = scriptedModel(fails(busy()), fails(busy()), answers);
    const helper = createAgent({ model: retry(below, { minMs: 0 }) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, context) => helper.call$('?', { parent: context, limits: { retryBudget: 9 } }),
    });
    const model = scriptedModel([toolCall('ask')], [text('done')]);
    const { toolCalls } = await createAgent({ model, tools: [ask] }).call('?', {
      limits: { retryBudget: 1 },
    });
    expect(toolCalls[0]).toMatchObject({ isError: true });
    expect(below.requests).toHaveLength(2);
  });

  it('C4: an option that is undefined is the same as an absent one', () => {
    const nothing = { attempts: undefined, minMs: undefined, maxMs: undefined } as never;
    const waits: number[] = [];
    marbles(({ cold, scheduler, expectObservable }) => {
      const refused = cold<ModelChunk>('#', {}, busy());
      const model = retry(scriptedModel(refused, refused, refused), nothing);
      const report = (event: ModelReport) =>
        event.type === 'modelRetry' && waits.push(event.waitMs);
      const answer$ = model.stream$(request, lentContext({ scheduler, report, ...noJitter }));
      expectObservable(answer$).toBe('3s #', {}, busy());
    });
    expect(waits).toEqual([1000, 2000]);
    expect(() => timeouts(scriptedModel(), { chunkMs: undefined } as never)).toThrow('or busyMs');
  });

  it('X4: the longest wait that is allowed is waited for', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const refused = cold<ModelChunk>('#', {}, busy({ retryAfterMs: 60_000 }));
      const answer$ = retry(scriptedModel(refused, answers)).stream$(
        request,
        lentContext({ scheduler }),
      );
      expectObservable(answer$).toBe('60s (tf|)', { t: text('t'), f: finish() });
    });
  });

  it('C4: a policy around another replaces it, with anything between them', async () => {
    const counts = async (wrap: (model: Model) => Model): Promise<number> => {
      const model = scriptedModel(...Array.from({ length: 20 }, () => fails(busy())));
      const answer$ = wrap(model).stream$(request, lentContext());
      await expect(lastValueFrom(answer$)).rejects.toThrow('Too many');
      return model.requests.length;
    };
    const two: RetryOptions = { attempts: 2, minMs: 0, jitter: 0 };
    expect(await counts((model) => retry(retry(model), two))).toBe(2);
    expect(await counts((model) => retry(timeouts(retry(model), { chunkMs: 9 }), two))).toBe(2);
    expect(await counts((model) => retry(fallback(retry(model), model), two))).toBe(4);
  });

  it('C4: the requests of one call are sent again so often, and no more', async () => {
    const model = scriptedModel(
      fails(busy()),
      [toolCall('none')],
      fails(busy()),
      fails(busy()),
      answers,
    );
    const agent = createAgent({ model: retry(model, { minMs: 0 }) });
    await expect(agent.call('?', { limits: { retryBudget: 2 } })).rejects.toMatchObject({
      code: 'rateLimited',
    });
    expect(model.requests).toHaveLength(4);
  });

  it('C4: an error of another kind is passed on as it is, in our own form', async () => {
    const answer$ = retry(scriptedModel(fails(new TypeError('no')))).stream$(
      request,
      lentContext(),
    );
    await expect(lastValueFrom(answer$)).rejects.toMatchObject({ code: 'unknown' });
  });

  it('refuses options that it does not have', () => {
    const model = scriptedModel();
    expect(() => retry(model, { tries: 3 } as never)).toThrow("retry() has no option 'tries'");
    for (const wrap of [retry, fallback, timeouts, answerTool]) {
      const misused = wrap as (model: unknown, more?: unknown) => Model;
      expect(() => misused('gpt', { chunkMs: 1 })).toThrow(
        "takes a model, such as openai('gpt-5-mini')",
      );
    }
    expect(() => fallback([model, model] as never)).toThrow('not as a list');
    expect(() => retry(model, { attempts: 0 })).toThrow('a whole number of at least 1');
    expect(() => retry(model, { jitter: 2 })).toThrow('a number from 0 to 1');
  });
});
