import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  createAgent,
  fallback,
  isMillraceError,
  MillraceError,
  type Model,
  only,
  retry,
  textOf,
} from 'millrace';
import {
  finish,
  lentContext,
  type MarbleHelpers,
  marbles,
  scriptedModel,
  text,
} from 'millrace/testing';
import {
  catchError,
  concatMap,
  finalize,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  throwError,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { circuitBreaker, type CircuitBreakerOptions, type CircuitState } from './index.js';

const request = { messages: [] };
const chunks = { t: text('t'), f: finish() };
const overloaded = new MillraceError('server', 'Overloaded.');
const failed$ = throwError(() => overloaded);

/** Opens after two failures, for 10 ms. */
const quick: CircuitBreakerOptions = { minRequests: 2, failureShare: 1, openMs: 10 };

/** Asks a model at a time; a refusal becomes its text. */
const asking =
  ({ cold, scheduler }: MarbleHelpers, model: Model) =>
  (ms: number): Observable<string> =>
    cold(`${ms}ms (a|)`).pipe(
      concatMap(() => model.stream$(request, lentContext({ scheduler }))),
      map(({ type }) => type),
      catchError((error: unknown) =>
        of(isMillraceError(error) ? `${error.code}:${error.retryAfterMs ?? ''}` : 'unknown'),
      ),
    );

describe('C12: circuitBreaker', () => {
  it('opens after enough failures, refuses immediately, and closes after a probe that succeeds', () => {
    marbles((helpers) => {
      const { cold, expectObservable, expectSubscriptions } = helpers;
      const answers = ['-#', '-#', '--(tf|)', '-(tf|)'].map((it) => cold(it, chunks, overloaded));
      const breaker = circuitBreaker(quick);
      const ask = asking(helpers, breaker(scriptedModel(...answers)));
      expectObservable(merge(ask(0), ask(2), ask(5), ask(13), ask(14), ask(20))).toBe(
        '-x-x-r 8ms b(tf) 2ms (tf|)',
        { x: 'server:', r: 'server:8', b: 'server:', t: 'text', f: 'finish' },
      );
      expectObservable(breaker.changes$).toBe('---o 9ms h-c', {
        o: { model: 'scripted', state: 'open', requests: 2, failures: 2, retryAt: 13 },
        h: { model: 'scripted', state: 'halfOpen', requests: 0, failures: 0 },
        c: { model: 'scripted', state: 'closed', requests: 0, failures: 0 },
      });
      ['^!', '--^!', '13ms ^-!', '20ms ^!'].forEach((log, n) => {
        expectSubscriptions(answers[n]?.subscriptions ?? []).toBe(log);
      });
    });
  });

  it('opens again if a probe fails, and needs as many successes as it lets through', () => {
    marbles((helpers) => {
      const { cold, expectObservable } = helpers;
      const late$ = cold('--(tf|)', chunks);
      const breaker = circuitBreaker({ ...quick, probes: 2 });
      const model = scriptedModel(failed$, failed$, failed$, late$, late$, late$);
      const ask = asking(helpers, breaker(model));
      const failed = { x: 'server:' };
      const answered = { t: 'text', f: 'finish' };
      expectObservable(ask(0)).toBe('(x|)', failed);
      expectObservable(ask(1)).toBe('-(x|)', failed);
      expectObservable(ask(11)).toBe('11ms (x|)', failed);
      expectObservable(ask(20)).toBe('20ms (x|)', { x: 'server:1' });
      expectObservable(ask(21)).toBe('23ms (tf|)', answered);
      expectObservable(ask(22)).toBe('24ms (tf|)', answered);
      expectObservable(ask(22)).toBe('22ms (x|)', failed);
      expectObservable(ask(23)).toBe('23ms (x|)', failed);
      expectObservable(ask(25)).toBe('27ms (tf|)', answered);
      const states = { o: 'open', h: 'halfOpen', c: 'closed' };
      expectObservable(breaker.changes$.pipe(map(({ state }) => state))).toBe(
        '-o 9ms (ho) 6ms h--c',
        states,
      );
    });
  });

  it.each([3_600_000, 11, 1])(
    'asks again if the clock is set back by %d ms, and forgets what it counted since',
    async (backMs) => {
      const scheduler = new VirtualTimeScheduler();
      const setTo = (ms: number): void => {
        scheduler.frame = ms;
      };
      const breaker = circuitBreaker({ ...quick, minRequests: 3, windowMs: 10 });
      const answers = [failed$, failed$, failed$, failed$, failed$, [text('t'), finish()]];
      const model = breaker(scriptedModel(...answers));
      const ask = (): Promise<string> =>
        lastValueFrom(
          model.stream$(request, lentContext({ scheduler })).pipe(
            map(({ type }) => type),
            catchError(({ retryAfterMs }: MillraceError) => of(`waits ${retryAfterMs ?? 0} ms`)),
          ),
        );
      const at = 36_000_000;
      setTo(at);
      for (const _ of [1, 2]) await ask();
      setTo(at - backMs);
      await ask();
      expect(breaker.stateOf(model, scheduler.now())).toBe('closed');
      for (const _ of [1, 2]) await ask();
      expect(breaker.stateOf(model, scheduler.now())).toBe('open');
      setTo(at - 2 * backMs);
      expect(breaker.stateOf(model, scheduler.now())).toBe('halfOpen');
      expect(await ask()).toBe('finish');
      expect(breaker.stateOf(model, scheduler.now())).toBe('closed');
    },
  );

  it('counts neither cancelled requests nor errors of the caller, and frees the place of a cancelled probe', () => {
    marbles((helpers) => {
      const { cold, scheduler, expectObservable, expectSubscriptions } = helpers;
      const wrong$ = throwError(() => new MillraceError('invalidRequest', 'Wrong.'));
      const slow = [cold('---#', chunks, overloaded), cold('----(tf|)', chunks)] as const;
      const model = scriptedModel(wrong$, slow[0], failed$, failed$, slow[1], [text('t')]);
      const breaker = circuitBreaker(quick);
      const ask = asking(helpers, breaker(model));
      const cut$ = breaker(model).stream$(request, lentContext({ scheduler }));
      expectObservable(ask(0)).toBe('(x|)', { x: 'invalidRequest:' });
      expectObservable(cut$, '-^-!').toBe('-');
      expectObservable(ask(4)).toBe('----(x|)', { x: 'server:' });
      expectObservable(ask(5)).toBe('-----(x|)', { x: 'server:' });
      expectObservable(cut$, '15ms ^-!').toBe('-');
      expectObservable(ask(16)).toBe('16ms (b|)', { b: 'server:' });
      expectObservable(ask(18)).toBe('18ms (tf|)', { t: 'text', f: 'finish' });
      expectSubscriptions(slow[0].subscriptions).toBe('-^-!');
      expectSubscriptions(slow[1].subscriptions).toBe('15ms ^-!');
    });
  });

  it('lets a paused reader of a probe block no other', () => {
    marbles((helpers) => {
      const { cold, expectObservable } = helpers;
      const endless$ = cold('-t', chunks);
      const breaker = circuitBreaker(quick);
      const model = scriptedModel(failed$, failed$, endless$, [text('t')]);
      const ask = asking(helpers, breaker(model));
      expectObservable(merge(ask(0), ask(0))).toBe('(xx|)', { x: 'server:' });
      expectObservable(ask(10)).toBe('11ms t', { t: 'text' });
      expectObservable(ask(12)).toBe('12ms (tf|)', { t: 'text', f: 'finish' });
    });
  });

  it('takes a stream without a finish for no success, and an isFailure that throws for no endless probe', () => {
    marbles((helpers) => {
      const { cold, expectObservable, expectSubscriptions } = helpers;
      const empty$ = cold('-|', chunks);
      const isFailure = (): boolean => {
        failures += 1;
        if (failures === 3) throw new Error('No idea.');
        return true;
      };
      let failures = 0;
      const breaker = circuitBreaker({ ...quick, isFailure });
      const model = scriptedModel(failed$, failed$, empty$, failed$, [text('t')]);
      const ask = asking(helpers, breaker(model));
      expectObservable(merge(ask(0), ask(0))).toBe('(xx|)', { x: 'server:' });
      expectObservable(ask(10)).toBe('11ms |');
      const state$ = cold('12ms (s|)').pipe(
        map(() => breaker.stateOf(model, helpers.scheduler.now())),
      );
      expectObservable(state$).toBe('12ms (s|)', { s: 'halfOpen' });
      expectObservable(ask(13)).toBe('13ms (x|)', { x: 'unknown' });
      expectObservable(ask(14)).toBe('14ms (tf|)', { t: 'text', f: 'finish' });
      expectSubscriptions(empty$.subscriptions).toBe('10ms ^!');
    });
  });

  it('learns nothing from a request that began before the circuit opened', () => {
    marbles((helpers) => {
      const { cold, expectObservable } = helpers;
      const late$ = cold('12ms (tf|)', chunks);
      const probe$ = cold('-----(tf|)', chunks);
      const breaker = circuitBreaker(quick);
      const ask = asking(helpers, breaker(scriptedModel(late$, failed$, failed$, probe$)));
      expectObservable(ask(0)).toBe('12ms (tf|)', { t: 'text', f: 'finish' });
      expectObservable(merge(ask(1), ask(1))).toBe('-(xx|)', { x: 'server:' });
      expectObservable(ask(11)).toBe('16ms (tf|)', { t: 'text', f: 'finish' });
      expectObservable(ask(13)).toBe('13ms (x|)', { x: 'server:' });
    });
  });

  it('forgets failures that have left the window', () => {
    marbles((helpers) => {
      const { expectObservable } = helpers;
      const breaker = circuitBreaker({ ...quick, windowMs: 10 });
      const ask = asking(helpers, breaker(scriptedModel(failed$, failed$, failed$)));
      for (const ms of [0, 12, 24]) {
        expectObservable(ask(ms)).toBe(`${ms}ms (x|)`, { x: 'server:' });
      }
      expectObservable(breaker.changes$).toBe('-');
    });
  });

  it('hands over to the next model of a fallback, also for agents that come later', async () => {
    const breaker = circuitBreaker({ minRequests: 1 });
    const down = { ...scriptedModel(failed$), name: 'down' };
    const spare = scriptedModel([text('1')], [text('2')]);
    const agents = ['a', 'b'].map((name) =>
      createAgent({ name, model: fallback(breaker(down), spare) }),
    );
    const why: string[] = [];
    for (const agent of agents) {
      agent.events$.pipe(only('modelFallback')).subscribe(({ error }) => why.push(error.message));
      await agent.call('?');
    }
    expect(down.requests.length).toBe(1);
    expect(why[0]).toBe('Overloaded.');
    expect(why[1]).toMatch(/^The model 'down' was not asked: .* possible in \d+ ms\. Use fallback/);
    expect(breaker.stateOf(down)).toBe('open');
    expect(breaker.stateOf(down, Date.now() + 30_000)).toBe('halfOpen');
    expect(breaker.stateOf(spare)).toBe('closed');
  });

  it('within retry, makes it wait until a request may go through', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const answers = [cold('#', chunks, overloaded), cold('(tf|)', chunks)] as const;
      const breaker = circuitBreaker({ minRequests: 1, openMs: 10 });
      const model = retry(breaker(scriptedModel(...answers)), { minMs: 2, jitter: 0 });
      const reply$ = createAgent({ model }).call$('?', { scheduler });
      expectObservable(reply$.pipe(map(textOf))).toBe('10ms (t|)');
      expectSubscriptions(answers[0].subscriptions).toBe('(^!)');
      expectSubscriptions(answers[1].subscriptions).toBe('10ms (^!)');
    });
  });

  it('asks no more than its probes before it has seen a success, in every case (property)', () => {
    const outcome = fc.record({
      startMs: fc.nat(60),
      lengthMs: fc.nat(8),
      end: fc.constantFrom<'ok' | 'fails' | 'leaves'>('ok', 'fails', 'leaves'),
    });
    fc.assert(
      fc.property(
        fc.array(outcome, { maxLength: 40 }),
        fc.integer({ min: 1, max: 3 }),
        (plan, probes) => {
          const scheduler = new VirtualTimeScheduler();
          const breaker = circuitBreaker({ ...quick, probes });
          const states: CircuitState[] = ['closed'];
          breaker.changes$.subscribe(({ state }) => states.push(state));
          const running = { probes: 0, most: 0 };
          const model: Model = {
            name: 'probed',
            keepsTime: true,
            stream$: (_, { stepId }) => {
              const { lengthMs, end } = plan[Number(stepId)] ?? { lengthMs: 0, end: 'ok' };
              const isProbe = states.at(-1) === 'halfOpen';
              // An open circuit asks nobody.
              expect(states.at(-1)).not.toBe('open');
              if (isProbe) running.probes += 1;
              running.most = Math.max(running.most, running.probes);
              const done$ = of(finish()).pipe(
                concatMap((it) => (end === 'fails' ? failed$ : of(it))),
              );
              return timer(lengthMs, scheduler).pipe(
                concatMap(() => (end === 'leaves' ? NEVER : done$)),
                finalize(() => {
                  if (isProbe) running.probes -= 1;
                }),
              );
            },
          };
          plan.forEach(({ startMs, lengthMs, end }, n) => {
            scheduler.schedule(() => {
              const call = breaker(model)
                .stream$(request, lentContext({ scheduler, stepId: String(n) }))
                .subscribe({ error: () => undefined });
              if (end === 'leaves') scheduler.schedule(() => call.unsubscribe(), lengthMs);
            }, startMs);
          });
          scheduler.flush();
          expect(running.most).toBeLessThanOrEqual(probes);
          expect(running.probes).toBe(0);
          // The states follow each other as they must.
          const next = { closed: ['open'], open: ['halfOpen'], halfOpen: ['open', 'closed'] };
          states
            .slice(1)
            .forEach((state, n) => expect(next[states[n] ?? 'closed']).toContain(state));
        },
      ),
    );
  });

  it('rejects what it cannot use, and names the fix', () => {
    expect(() => circuitBreaker({ failureShare: 2 })).toThrow(
      "circuitBreaker(): 'failureShare' must be a number above 0, up to 1, not 2.",
    );
    // @ts-expect-error: another library's name of the option
    expect(() => circuitBreaker({ threshold: 2 })).toThrow("has no option 'threshold'");
    // @ts-expect-error: no model
    expect(() => circuitBreaker()({})).toThrow("wraps a model, such as openai('gpt-5-mini')");
  });
});
