import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type CallOptions, createAgent, MillraceError, type Reply, tool, watch } from 'millrace';
import { marbles, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { cost } from 'millrace/traffic';
import {
  concat,
  firstValueFrom,
  lastValueFrom,
  map,
  NEVER,
  Observable,
  of,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import {
  type CaseResult,
  type EvalEvent,
  evalTable,
  type EvalTarget,
  evaluate,
  type EvaluateOptions,
  exactAnswer,
  summary,
} from './index.js';

const agent = createAgent({ model: scriptedModel([text('x')]) });
const reply = await agent.call('x');
const says = (answer: string, changes: Partial<Reply> = {}): Reply => ({
  ...reply,
  text: answer,
  ...changes,
});

/** A target that answers with the input, after as many milliseconds as the input says. */
const echo =
  (log: string[] = []) =>
  (input: unknown, { scheduler }: CallOptions): Observable<Reply> =>
    new Observable((subscriber) => {
      log.push(`${String(input)} begins`);
      subscriber.add(() => log.push(`${String(input)} ends`));
      subscriber.add(
        timer(Number(String(input).slice(1)), scheduler)
          .pipe(map(() => says(String(input))))
          .subscribe(subscriber),
      );
    });

const fine = { fine: () => true };
const short = (event: EvalEvent): string => (event.type === 'case' ? event.id : 'summary');
const summaryOf = (...args: Parameters<typeof evaluate>) =>
  lastValueFrom(evaluate(...args).pipe(summary()));
const onlyCase = async (...args: Parameters<typeof evaluate>): Promise<CaseResult> => {
  const [first] = (await summaryOf(...args)).cases;
  if (first === undefined) throw new Error('There is no case.');
  return first;
};

describe('evaluate', () => {
  it('emits each case when it has ended, then the summary, in the order of the list', () => {
    marbles(({ expectObservable, scheduler }) => {
      const cases = ['a5', 'b2', 'c9'].map((input) => ({ input }));
      const event$ = evaluate(echo(), cases, fine, { scheduler });
      expectObservable(event$.pipe(map(short))).toBe('--b--a---(cs|)', {
        ...{ a: 'a5', b: 'b2', c: 'c9', s: 'summary' },
      });
      const ids$ = event$.pipe(
        summary(),
        map((it) => [it.cases.map(({ id, ms }) => [id, ms]), it.ms]),
      );
      const rows = [
        ['a5', 5],
        ['b2', 2],
        ['c9', 9],
      ];
      expectObservable(ids$).toBe('---------(s|)', { s: [rows, 16] });
    });
  });

  it('runs up to four trials at the same time, and all repeats of a case make one result', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const calls = Array.from({ length: 6 }, () => cold('---(r|)', { r: reply }));
      let count = 0;
      const next$ = () => calls[count++] ?? NEVER;
      const event$ = evaluate(next$, [{ input: 'a' }, { input: 'b' }], fine, {
        ...{ repeats: 3, scheduler },
      });
      expectObservable(event$.pipe(map(short))).toBe('---a--(bs|)', {
        a: 'a',
        b: 'b',
        s: 'summary',
      });
      for (const call of calls.slice(0, 4)) expectSubscriptions(call.subscriptions).toBe('^--!');
      for (const call of calls.slice(4)) expectSubscriptions(call.subscriptions).toBe('---^--!');
    });
  });

  it('aborts the running calls and scorers when it is unsubscribed, and starts no others', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const slow = cold('-----(r|)', { r: reply });
      const judge = cold('-----(s|)', { s: 1 });
      let started = 0;
      const target = (input: unknown) => {
        started += 1;
        return input === 'a' ? of(reply) : slow;
      };
      const signals: AbortSignal[] = [];
      const scorers = {
        judge: (_trial: unknown, { signal }: { signal: AbortSignal }) => {
          signals.push(signal);
          return judge;
        },
      };
      const cases = ['a', 'b', 'c', 'd'].map((input) => ({ input }));
      const event$ = evaluate(target, cases, scorers, { concurrency: 2, scheduler });
      expectObservable(event$, '---!').toBe('');
      expectSubscriptions(slow.subscriptions).toBe('^--!');
      expectSubscriptions(judge.subscriptions).toBe('^--!');
      scheduler.schedule(
        () => expect([started, signals.map(({ aborted }) => aborted)]).toEqual([2, [true]]),
        4,
      );
    });
  });

  it('is cold: each subscription is an evaluation', async () => {
    const log: string[] = [];
    const event$ = evaluate(echo(log), [{ input: 'a0' }], fine);
    expect(log).toEqual([]);
    await lastValueFrom(event$);
    await lastValueFrom(event$);
    expect(log).toEqual(['a0 begins', 'a0 ends', 'a0 begins', 'a0 ends']);
  });

  it('passes the scheduler and the options of a case to the call, and measures in its time', () => {
    marbles(({ expectObservable, scheduler, model }) => {
      const slow = createAgent({ model: model('-----t----(f|)') });
      const event$ = evaluate(slow, [{ input: 'Hi', options: { metadata: { a: 'b' } } }], fine, {
        scheduler,
      });
      expectObservable(
        event$.pipe(
          summary(),
          map(({ ms }) => ms),
        ),
      ).toBe('----------(s|)', { s: 10 });
    });
  });

  it('makes a result of a call that throws, errors, emits nothing or emits no reply', async () => {
    const failures: readonly (readonly [() => unknown, string])[] = [
      [
        () => {
          throw new TypeError('a bug');
        },
        'unknown',
      ],
      [() => throwError(() => new MillraceError('rateLimited', 'slow down')), 'rateLimited'],
      [() => of<Reply[]>(), 'config'],
      [() => of('a string'), 'config'],
      [() => Promise.reject(new Error('no')), 'unknown'],
    ];
    for (const [fail, code] of failures) {
      const target = (input: unknown) =>
        (input === 'bad' ? fail() : of(reply)) as Observable<Reply>;
      const result = await summaryOf(target, [{ input: 'bad' }, { input: 'good' }], fine);
      const [bad, good] = result.cases;
      expect(bad?.trials[0]).toMatchObject({ passed: false, error: { code }, scores: {} });
      expect([bad?.scores['fine']?.mean, bad?.errors, good?.scores['fine']?.mean]).toEqual([
        0, 1, 1,
      ]);
      expect([result.errors, result.passRate, result.scores['fine']?.mean]).toEqual([1, 0.5, 0.5]);
    }
  });

  it.each([
    ['throws', () => 0, /failed/u],
    ['NaN', () => NaN, /returned NaN/u],
    ['above 1', () => 1.01, /returned 1.01/u],
    ['below 0', () => ({ score: -1 }), /returned -1/u],
    ['undefined', () => undefined, /returned a value of type undefined/u],
    ['a string that may be secret', () => 'sk-123', /returned a value of type string/u],
    ['null', () => ({ score: null }), /returned null/u],
    ['nothing', () => of<number[]>(), /completed without a score/u],
    ['a rejection', () => Promise.reject(new Error('down')), /failed: down/u],
  ])('makes an error of a score that is wrong: %s', async (_name, scorer, message) => {
    const throws = () => {
      throw new Error('oops');
    };
    const scorers = { wrong: (_name === 'throws' ? throws : scorer) as never, right: () => 1 };
    const { scores, trials, errors, passRate } = await onlyCase(
      agentOf('x'),
      [{ input: 'a' }],
      scorers,
    );
    const result = trials[0]?.scores['wrong'];
    expect(result?.status).toBe('failed');
    expect(result?.status === 'failed' ? [result.error.name, result.error.message] : []).toEqual([
      'MillraceError',
      expect.stringMatching(message),
    ]);
    expect(String(JSON.stringify(result))).not.toContain('sk-123');
    expect([scores['wrong'], scores['right']?.mean]).toEqual([
      { mean: undefined, spread: 0, errors: 1 },
      1,
    ]);
    expect([errors, passRate]).toEqual([1, 0]);
  });

  it('ends a scorer at its time-out, and aborts its signal', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const never = cold<number>('-----');
      const signals: AbortSignal[] = [];
      const scorers = {
        slow: (_trial: unknown, { signal }: { signal: AbortSignal }) => {
          signals.push(signal);
          return never;
        },
      };
      const options = { scorerMs: 3, scheduler };
      const outcome$ = evaluate(() => of(reply), [{ input: 'a' }], scorers, options).pipe(
        summary(),
        map(({ cases }) => cases[0]?.trials[0]?.scores['slow']),
        map((it) => [it?.status === 'failed' && it.error.code, signals[0]?.aborted]),
      );
      expectObservable(outcome$).toBe('---(s|)', { s: ['timeout', true] });
      expectSubscriptions(never.subscriptions).toBe('^--!');
    });
  });

  it('computes mean, sample deviation and pass rate of repeats', async () => {
    const scores = [1, 0.5, 0];
    const { trials, ...result } = await onlyCase(
      () => of(reply),
      [{ input: 'a' }],
      { quality: ({ trial }) => scores[trial - 1] ?? NaN },
      { repeats: 3 },
    );
    expect(result.scores['quality']).toEqual({ mean: 0.5, spread: 0.5, errors: 0 });
    expect(result.passRate).toBeCloseTo(2 / 3);
    expect(trials.map(({ trial, passed }) => [trial, passed])).toEqual([
      [1, true],
      [2, true],
      [3, false],
    ]);
  });

  it('adds up tokens, iterations and costs, those of scorers apart', async () => {
    const usage = { inputTokens: 3, outputTokens: 2, cacheReadTokens: 1, cacheWriteTokens: 0 };
    const result = await summaryOf(
      () => of(says('x', { usage, iterations: 2 })),
      [{ input: 'a' }, { input: 'b' }],
      { judged: () => ({ score: true, usage }), odd: () => ({ score: 1, usage: 'no' as never }) },
      { cost: (it) => it.usage.inputTokens / 100 },
    );
    expect(result).toMatchObject({
      ...{ usage: { inputTokens: 6, cacheReadTokens: 2 }, scorerUsage: { outputTokens: 4 } },
      ...{ iterations: 4, cost: 0.06, trialCount: 2 },
    });
    expect(await onlyCase(() => of(reply), [{ input: 'a' }], fine)).not.toHaveProperty('cost');
    expect(await onlyCase(() => of(reply), [{ input: 'a' }], fine)).not.toHaveProperty(
      'costAtLeast',
    );
    const broken = await onlyCase(() => of(reply), [{ input: 'a' }], fine, { cost: () => NaN });
    expect(broken.trials[0]?.error?.message).toContain("'cost' must return a number");
  });

  it('counts failed calls, and has no total if a price is missing or a call reports no cost', async () => {
    const used = { type: 'usage', usage: { inputTokens: 1_000_000 } } as const;
    const layer = cost({
      currency: 'USD',
      date: '2026-11-30',
      prices: { priced: { input: 2, output: 2 } },
    });
    const agentWith = (name: string, ...script: readonly ScriptedAnswer[]) =>
      createAgent({ model: { ...scriptedModel(...script), name }, use: [layer] });
    const failing = () =>
      concat(
        [used],
        throwError(() => new MillraceError('auth', 'No.')),
      );
    const costOf = async (...inputs: string[]) => {
      const agents = new Map([
        ['priced', agentWith('priced', [text('a'), used])],
        ['failing', agentWith('priced', failing)],
        ['free', agentWith('free', [text('b'), used])],
      ]);
      const target: EvalTarget = (input, options) =>
        agents.get(String(input))?.call$(input, options) ?? throwError(() => new Error('No call.'));
      const result = await summaryOf(
        target,
        inputs.map((input) => ({ input })),
        fine,
      );
      const line = evalTable(result, { time: false }).split('\n')[inputs.length + 1];
      return [result.cost, result.costAtLeast, /(?:at least )?\S+$/u.exec(line ?? '')?.[0]];
    };
    expect(await costOf('priced', 'failing')).toEqual([4, 4, '4.00']);
    expect(await costOf('priced', 'free')).toEqual([undefined, 2, 'at least 2.00']);
    expect(await costOf('priced', 'broken')).toEqual([undefined, 2, 'at least 2.00']);
  });

  it('keeps the layers of a case beside its own', async () => {
    const seen: string[] = [];
    const use = [watch(({ type }) => seen.push(type))];
    const cases = [{ input: 'a', options: { use } }];
    await summaryOf(createAgent({ model: scriptedModel([text('x')]) }), cases, fine);
    expect(seen).toContain('postCall');
  });

  it('evaluates an agent with tools, and an Observable that emits more than one reply by its last', async () => {
    const clock = tool({ name: 'clock', description: 'Time.', run: () => '12:00' });
    const model = scriptedModel([toolCall('clock')], [text('Noon.')]);
    const cases = [{ id: 'noon', input: 'What time is it?', expected: 'Noon.' }];
    const result = await onlyCase(createAgent({ model, tools: [clock] }), cases, {
      right: exactAnswer(),
    });
    expect(result.trials[0]?.reply?.toolCalls.map(({ name }) => name)).toEqual(['clock']);
    expect([result.id, result.passRate, result.iterations]).toEqual(['noon', 1, 2]);
    const last = await onlyCase(() => of(says('a'), says('b')), [{ input: 'x', expected: 'b' }], {
      right: exactAnswer(),
    });
    expect(last.passRate).toBe(1);
  });

  it('has no limit of depth when thousands of calls end synchronously after a slow one', async () => {
    const cases = Array.from({ length: 5_000 }, (_, index) => ({ input: `case ${index}` }));
    const gate = new Promise<void>((resolve) => setImmediate(resolve));
    const target = (input: unknown) => (input === 'case 0' ? gate.then(() => reply) : of(reply));
    const { trialCount, passRate } = await summaryOf(target, cases, fine, { concurrency: 1 });
    expect([trialCount, passRate]).toEqual([5_000, 1]);
  });

  it('never runs more than the limit, and scores every trial once, in any order of ends', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(9), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 5 }),
        async (delays, repeats, concurrency) => {
          let [running, most] = [0, 0];
          const target = (input: unknown) =>
            new Observable<Reply>((subscriber) => {
              most = Math.max(most, (running += 1));
              subscriber.add(() => (running -= 1));
              const ticks = Number(String(input).split('/')[1]);
              const wait = async () => {
                for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
                subscriber.next(says(String(input)));
                subscriber.complete();
              };
              void wait();
            });
          const cases = delays.map((ticks, at) => ({
            input: `${at}/${ticks}`,
            expected: `${at}/${ticks}`,
          }));
          const events = await firstValueFrom(
            evaluate(target, cases, { right: exactAnswer() }, { repeats, concurrency }).pipe(
              toArray(),
            ),
          );
          const last = events.at(-1);
          expect(events.filter(({ type }) => type === 'case')).toHaveLength(cases.length);
          expect(last?.type === 'summary' && last.cases.map(({ id }) => id)).toEqual(
            cases.map(({ input }) => input),
          );
          expect([last?.trialCount, last?.passRate]).toEqual([cases.length * repeats, 1]);
          expect(most).toBeLessThanOrEqual(concurrency);
          expect(running).toBe(0);
        },
      ),
    );
  });

  it.each<readonly [string, () => unknown]>([
    [
      "has no option 'repeat'. Did you mean 'repeats'?",
      () => evaluate(agent, [{ input: 'a' }], fine, { repeat: 2 } as never),
    ],
    [
      "'concurrency' must be a whole number of at least 1",
      () => evaluate(agent, [{ input: 'a' }], fine, { concurrency: 0 }),
    ],
    [
      "'passAt' must be a number from 0 to 1",
      () => evaluate(agent, [{ input: 'a' }], fine, { passAt: NaN }),
    ],
    ['a list of at least one case', () => evaluate(agent, [], fine)],
    ['a list of at least one case', () => evaluate(agent, 'a' as never, fine)],
    ["case 2 has no 'input'", () => evaluate(agent, [{ input: 'a' }, null as never], fine)],
    [
      "two cases have the id 'a'",
      () => evaluate(agent, [{ input: 'a' }, { input: 'b', id: ' a' }], fine),
    ],
    ["case 1 needs an 'id'", () => evaluate(agent, [{ input: [] }], fine)],
    ["case 1 needs an 'id'", () => evaluate(agent, [{ input: 'a', id: 7 as never }], fine)],
    ['an object of functions', () => evaluate(agent, [{ input: 'a' }], {})],
    [
      "the scorer 'x' must be a function",
      () => evaluate(agent, [{ input: 'a' }], { x: 1 as never }),
    ],
    ['must be an agent', () => evaluate(undefined as never, [{ input: 'a' }], fine)],
  ])('is misused: %s', (message, misuse) => {
    expect(misuse).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringContaining(message) }),
    );
  });

  const wrong: Readonly<Record<keyof EvaluateOptions, readonly unknown[]>> = {
    name: [null, 5, {}],
    repeats: [null, 0, 1.5, '2', NaN, Infinity],
    concurrency: [null, 0, 1.5, '2', NaN, Infinity],
    passAt: [null, -0.1, 1.1, '0.5', '', true, [], NaN],
    scorerMs: [null, -1, '5', NaN, Infinity, 2 ** 31],
    cost: [null, 1, {}],
    scheduler: [null, 1, {}],
  };
  it.each(
    Object.entries(wrong).flatMap(([name, values]) =>
      values.map((value) => [name, value] as const),
    ),
  )('refuses the option %s: %p', (name, value) => {
    expect(() => evaluate(agent, [{ input: 'a' }], fine, { [name]: value })).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringContaining(`'${name}'`) }),
    );
  });

  it('takes the text of messages and blocks as the id', async () => {
    const input = [
      { role: 'user' as const, content: 'One' },
      { role: 'user' as const, content: [{ type: 'text' as const, text: 'two' }] },
    ];
    const event = await firstValueFrom(evaluate(() => concat(of(reply)), [{ input }], fine));
    expect(short(event)).toBe('One two');
  });
});

const agentOf = (answer: string) => () => of(says(answer));
