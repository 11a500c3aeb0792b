import { describe, expect, it } from '@jest/globals';
import { map, Observable, of } from 'rxjs';
import {
  createAgent,
  fallback,
  MillraceError,
  type Model,
  type ModelChunk,
  retry,
  textOf,
  timeouts,
  tool,
} from '../../index.js';
import {
  finish,
  lentContext,
  marbles,
  scriptedModel,
  text,
  toolCall,
} from '../../testing/index.js';
import type { Subscriptions } from '../../testing/marbles.js';
import { limitConcurrency } from './limit-concurrency.js';

const request = { messages: [] };
const values = { t: text('t'), f: finish() };
const busy = new MillraceError('rateLimited', 'Too many.');

type Log = Exclude<Subscriptions, string | string[]>[number];

/** When the n-th of several calls is asked and left again. */
const logOf = (all: readonly Subscriptions[]): readonly (Log | undefined)[] =>
  all.map((log) => (typeof log[0] === 'string' ? undefined : log[0]));

const most = (logs: readonly Log[]): number =>
  Math.max(
    ...logs.map(
      ({ subscribedFrame: now }) =>
        logs.filter((it) => it.subscribedFrame <= now && now < it.unsubscribedFrame).length,
    ),
  );

/** When each of several works begins and ends that come at once, by slots that are free at some time. */
const schedule = (
  slots: number,
  lengths: readonly number[],
): readonly (readonly [number, number])[] => {
  const free = Array.from({ length: slots }, () => 0);
  return lengths.map((ms) => {
    const from = Math.min(...free);
    free[free.indexOf(from)] = from + ms;
    return [from, from + ms];
  });
};

describe('limitConcurrency', () => {
  it('C6: of 500 concurrent calls 20 run at a time, in the order in which they came', () => {
    const lengths = Array.from({ length: 500 }, (_, n) => 2 + ((n * 37) % 83));
    const expected = schedule(20, lengths);
    const logs: Subscriptions[] = [];
    const limited = limitConcurrency(20, { maxQueue: 480 });
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      lengths.forEach((ms, n) => {
        const [from, to] = expected[n] ?? [0, 0];
        const answer$ = cold(`${ms}ms (tf|)`, values);
        logs.push(answer$.subscriptions);
        const agent = createAgent({ model: limited(scriptedModel(answer$)) });
        const said$ = agent.call$('?', { scheduler }).pipe(map(textOf));
        expectObservable(said$).toBe(`${to}ms (t|)`);
        expectSubscriptions(answer$.subscriptions).toBe(
          from === 0 ? `^ ${to - 1}ms !` : `${from}ms ^ ${to - from - 1}ms !`,
        );
      });
      const late = createAgent({ model: limited(scriptedModel()) }).call$('?', { scheduler });
      const full = `20 are running, and 480 requests are already waiting ('maxQueue'). Try again when some have ended.`;
      expectObservable(late).toBe(
        '#',
        {},
        new MillraceError('queueFull', full, { retryable: true }),
      );
    });
    expect(most(logOf(logs).filter((log) => log !== undefined))).toBe(20);
    expect([limited.semaphore.held, limited.semaphore.waiting]).toEqual([0, 0]);
  });

  it('C6, I5: of 500 calls those that are cancelled leave immediately, and no other waits for them', () => {
    const limited = limitConcurrency(20, { maxQueue: 480 });
    const cancelledAt = (n: number): number | undefined =>
      n % 3 === 1 ? 1 + ((n * 29) % 200) : undefined;
    const logs: Subscriptions[] = [];
    const begun: number[] = [];
    const wrongs: number[] = [];
    marbles(({ cold, scheduler }) => {
      for (let n = 0; n < 500; n += 1) {
        const answer$ = cold(`${5 + ((n * 37) % 31)}ms (tf|)`, values);
        logs.push(answer$.subscriptions);
        const said = scriptedModel(() => {
          begun.push(n);
          return answer$;
        });
        const call = createAgent({ model: limited(said) })
          .call$('?', { scheduler })
          .subscribe();
        const at = cancelledAt(n);
        if (at === undefined) continue;
        scheduler.schedule(() => {
          const { held, waiting } = limited.semaphore;
          const isRunning = begun.includes(n) && !call.closed;
          const isWaiting = !begun.includes(n);
          call.unsubscribe();
          const next = isRunning && waiting > 0;
          const left = [held - (isRunning && !next ? 1 : 0), waiting - (isWaiting || next ? 1 : 0)];
          const now = limited.semaphore;
          if (now.held !== left[0] || now.waiting !== left[1]) wrongs.push(n);
        }, at);
      }
    });
    const all = logOf(logs);
    const known = all.filter((log) => log !== undefined);
    expect(most(known)).toBe(20);
    expect(wrongs).toEqual([]);
    expect(begun).toEqual([...begun].sort((a, b) => a - b));
    const ends = new Set(known.map(({ unsubscribedFrame }) => unsubscribedFrame));
    all.forEach((log, n) => {
      const at = cancelledAt(n) ?? Infinity;
      // Whoever never began was cancelled; whoever began later than at once did so when another one ended.
      if (log === undefined) expect(at).toBeLessThan(Infinity);
      else {
        expect(log.subscribedFrame).toBeLessThanOrEqual(at);
        expect(log.unsubscribedFrame).toBeLessThanOrEqual(at);
        expect(log.subscribedFrame === 0 || ends.has(log.subscribedFrame)).toBe(true);
      }
    });
    expect([limited.semaphore.held, limited.semaphore.waiting]).toEqual([0, 0]);
  });

  it('C5, C6: the wait counts into the time of the call, and who waits too long is never asked', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model(['60ms (tf|)', '60ms (tf|)', '60ms (tf|)']);
      const limited = limitConcurrency(1);
      const agent = createAgent({ model: limited(slow) });
      const timed = { scheduler, limits: { timeouts: { callMs: 100 } } };
      const late = new MillraceError('timeout', 'The call did not finish within 100 ms (callMs).');
      const ends = ['60ms (t|)', '100ms #', '100ms #'];
      ends.forEach((end) => {
        expectObservable(agent.call$('?', timed).pipe(map(textOf))).toBe(end, { t: 't' }, late);
      });
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^ 59ms !');
      expectSubscriptions(slow.subscriptions[1] ?? []).toBe('60ms ^ 39ms !');
      // The third got the slot of the second in the tick in which its own time was over.
      const third = limited.semaphore;
      scheduler.schedule(() => expect([third.held, third.waiting]).toEqual([0, 0]), 101);
    });
  });

  it('C5, C6: the time to the first chunk begins with the request', () => {
    const outcomes = (wrap: (model: Model) => Model): void => {
      marbles(({ model, scheduler, expectObservable }) => {
        const slow = wrap(model(['80ms (tf|)', '80ms (tf|)', '-']));
        const given = { scheduler, timeouts: { firstChunkMs: 100 } };
        const said$ = slow.stream$(request, lentContext(given));
        const silent = `The model 'scripted' did not start to answer within 100 ms (firstChunkMs).`;
        expectObservable(said$).toBe('80ms (tf|)', values);
        expectObservable(said$).toBe('160ms (tf|)', values);
        expectObservable(said$).toBe('260ms #', values, new MillraceError('timeout', silent));
      });
    };
    outcomes(limitConcurrency(1));
    const limited = limitConcurrency(1);
    outcomes((model) => timeouts(limited(model), { firstChunkMs: 500 }));
    marbles(({ model, scheduler, expectObservable }) => {
      const agent = createAgent({
        model: limitConcurrency(1)(model(['80ms (tf|)', '80ms (tf|)'])),
      });
      const timed = { scheduler, limits: { timeouts: { firstChunkMs: 100 } } };
      expectObservable(agent.call$('?', timed).pipe(map(textOf))).toBe('80ms (t|)');
      expectObservable(agent.call$('?', timed).pipe(map(textOf))).toBe('160ms (t|)');
    });
  });

  it('C4, C6: a retry outside gives its slot back while it waits, one inside keeps it', () => {
    const second = (wrap: (model: Model) => Model, begins: string): void => {
      marbles(({ cold, scheduler, expectSubscriptions }) => {
        const [refused, next] = [cold<never>('10ms #', {}, busy), cold<ModelChunk>('-')];
        const again = cold('10ms (tf|)', values);
        const model = wrap(
          scriptedModel(refused, ...(begins === '10ms ^' ? [next, again] : [again, next])),
        );
        const context = lentContext({ scheduler });
        model.stream$(request, context).subscribe();
        model.stream$(request, context).subscribe();
        expectSubscriptions(next.subscriptions).toBe(begins);
      });
    };
    const policy = { minMs: 100, jitter: 0 };
    second((model) => retry(limitConcurrency(1)(model), policy), '10ms ^');
    second((model) => limitConcurrency(1)(retry(model, policy)), '120ms ^');
    // A vendor's model retries by itself, unless a retry stands outside.
    second((model) => retry(limitConcurrency(1)(retry(model)), policy), '10ms ^');
  });

  it('C6, C8: what has no room goes to another model', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const limited = limitConcurrency(1, { maxQueue: 0 });
      const agent = createAgent({ model: fallback(limited(model('-----(tf|)')), model('-(tf|)')) });
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('-----(t|)');
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('-(t|)');
    });
  });

  it('C6: models and agents that share a limit wait for each other, and a call holds it only while it asks', () => {
    marbles(({ cold, model, scheduler, expectObservable, expectSubscriptions }) => {
      const limited = limitConcurrency(1);
      const work = tool({
        name: 'tool',
        description: 'Works.',
        run: () => cold('-----(a|)'),
      });
      const first = model(['--(cf|)', '--(tf|)']);
      const second = model('---(tf|)');
      const working = createAgent({ name: 'a', model: limited(first), tools: [work] });
      const other = createAgent({ name: 'b', model: limited(second) });
      expectObservable(working.call$('?', { scheduler }).pipe(map(textOf))).toBe('---------(t|)');
      expectObservable(other.call$('?', { scheduler }).pipe(map(textOf))).toBe('-----(t|)');
      expectSubscriptions(first.subscriptions[0] ?? []).toBe('^-!');
      expectSubscriptions(second.subscriptions[0] ?? []).toBe('--^--!');
      expectSubscriptions(first.subscriptions[1] ?? []).toBe('-------^-!');
    });
  });

  it('G4, C6: an agent whose tool asks another one needs one slot only, also for whole calls', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const limited = limitConcurrency(1);
      const calls = limitConcurrency(1).semaphore;
      const inner = createAgent({ name: 'inner', model: limited(model('--(tf|)')) });
      const ask = tool({
        name: 'tool',
        description: 'Asks.',
        run: (_input, context) =>
          calls.hold$(() => inner.call$('?', { parent: context }).pipe(map(textOf)), 'root'),
      });
      const outer = createAgent({ model: limited(model(['-(cf|)', '-(tf|)'])), tools: [ask] });
      const call$ = calls.hold$(() => outer.call$('?', { scheduler, callId: 'root' }), 'root');
      expectObservable(call$.pipe(map(textOf))).toBe('----(t|)');
    });
  });

  it('C6: is like the model that it stands for, and adds nothing to what it says', () => {
    const own: Model = {
      name: 'own',
      unsupported: ['tools'],
      stream$: () => of(text('a'), finish()),
    };
    const model = limitConcurrency(1)(own);
    expect(model).toMatchObject({ name: 'own', unsupported: ['tools'], keepsTime: true });
    const seen: unknown[] = [];
    model.stream$(request, lentContext()).subscribe((chunk) => seen.push(chunk));
    expect(seen).toEqual([text('a'), finish()]);
  });

  it('X18: ten thousand calls through a limit leave nothing', () => {
    const limited = limitConcurrency(3, { maxQueue: 10 });
    const open = new Set<number>();
    let asked = 0;
    const model: Model = {
      name: 'counted',
      stream$: () =>
        new Observable((subscriber) => {
          const own = (asked += 1);
          open.add(own);
          subscriber.add(() => open.delete(own));
          if (own % 3 === 0) subscriber.error(busy);
          if (own % 3 === 1) of(toolCall('none'), finish()).subscribe(subscriber);
        }),
    };
    const stream$ = limited(model).stream$(request, lentContext());
    for (let n = 0; n < 10_000; n += 1) {
      stream$.subscribe({ error: () => undefined }).unsubscribe();
    }
    expect([asked, open.size]).toEqual([10_000, 0]);
    expect([limited.semaphore.held, limited.semaphore.waiting]).toEqual([0, 0]);
  });

  it('refuses an invalid limit', () => {
    expect(() => limitConcurrency(0)).toThrow(
      "limitConcurrency(): 'max' must be a whole number of at least 1, not 0.",
    );
    expect(() => limitConcurrency(1, 5 as never)).toThrow('takes an object of options: maxQueue');
    expect(() => limitConcurrency(1)('gpt' as never)).toThrow('limitConcurrency() takes a model');
  });
});
