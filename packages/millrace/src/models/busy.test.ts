import { describe, expect, it, jest } from '@jest/globals';
import { filter, Observable, take, tap, VirtualTimeScheduler } from 'rxjs';
import {
  createAgent,
  createDemand,
  fallback,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelReport,
  retry,
  timeouts,
} from '../index.js';
import { finish, lentContext, marbles, scriptedModel, text } from '../testing/index.js';

const request = { messages: [] };
/** A sign of work, which is no chunk of the answer. */
const work: ModelChunk = { type: 'usage', usage: {} };
const values = { t: text('t'), f: finish(), w: work };
const limits = { firstChunkMs: 100, chunkMs: 20, busyMs: 1_000 };
const error = (what: string, retryable: boolean): MillraceError =>
  new MillraceError('timeout', `The model 'scripted' ${what}.`, { retryable });
const tooLong = error('worked for 1000 ms without content, on: reasoning (busyMs)', false);
const noStart = error('did not start to answer within 100 ms (firstChunkMs)', true);
const fellSilent = error('sent nothing for 20 ms in the middle of its answer (chunkMs)', true);

const workingModel = (answer: ReturnType<typeof scriptedModel>): Model => ({
  ...answer,
  stream$: (asked, context) =>
    answer.stream$(asked, context).pipe(
      tap((chunk) => {
        if (chunk === work) context.working?.('reasoning');
      }),
      filter((chunk) => chunk !== work),
    ),
});

/** One answer under limits, with what it reports. */
const expectTimed = (
  answer: string,
  expected: string,
  failure?: MillraceError,
  reports: readonly (readonly [number, string | undefined])[] = [],
  demand = '',
): void => {
  const heard: (readonly [number, string | undefined])[] = [];
  marbles(({ cold, scheduler, expectObservable }) => {
    const gate = createDemand(1);
    if (demand !== '') {
      cold(demand).subscribe((level) => {
        gate.backlog(level === 'c' ? 1 : 0);
      });
    }
    const report = (it: ModelReport): void => {
      if (it.type === 'modelWaiting') heard.push([it.waitedMs, it.on]);
    };
    const model = timeouts(workingModel(scriptedModel(cold(answer, values))), limits);
    const timed$ = model.stream$(request, lentContext({ scheduler, demand: gate, report }));
    expectObservable(timed$).toBe(expected, values, failure);
  });
  expect(heard).toEqual(reports);
};

describe('C5: a model that works unseen', () => {
  it('may take longer than the limits of silence, before and between content', () => {
    expectTimed('90ms w 90ms w 90ms w 90ms (tf|)', '363ms (tf|)');
    expectTimed('t 15ms w 15ms w 15ms w 15ms (tf|)', 't 63ms (tf|)');
  });

  it('is silent if the signs of work stop', () => {
    expectTimed('90ms w 200ms t', '190ms #', noStart);
    expectTimed('t 15ms w 200ms t', 't 35ms #', fellSilent);
  });

  it('has a limit of its own, from the last content', () => {
    const signs = '90ms w '.repeat(20);
    expectTimed(signs, '1000ms #', tooLong);
    expectTimed(`t ${'9ms w '.repeat(200)}`, 't 999ms #', tooLong);
    expectTimed(`t ${'9ms w '.repeat(50)} t ${'9ms w '.repeat(200)}`, 't 500ms t 999ms #', tooLong);
  });

  it('stops the time while demand is closed', () => {
    expectTimed('90ms w 2000ms (tf|)', '2091ms (tf|)', undefined, [], '95ms c 1990ms o');
  });

  it('reports once per wait what it works on', () => {
    const seen: unknown[] = [];
    marbles(({ cold, scheduler, flush }) => {
      const signs = (count: number): string => '999ms w '.repeat(count);
      const model = timeouts(
        workingModel(scriptedModel(cold(`${signs(12)} t ${signs(12)} (tf|)`, values))),
        { firstChunkMs: 2_000, chunkMs: 2_000 },
      );
      createAgent({ model })
        .stream$('?', { scheduler })
        .subscribe((event) => {
          if (event.type === 'modelWaiting') seen.push([event.waitedMs, event.on]);
        });
      flush();
    });
    expect(seen).toEqual([
      [10_000, 'reasoning'],
      [10_000, 'reasoning'],
    ]);
  });

  it('X3: starts no timer once its answer was left, in the same tick', () => {
    const scheduler = new VirtualTimeScheduler();
    const schedule = jest.spyOn(scheduler, 'schedule');
    let started = 0;
    const working: Model = {
      name: 'working',
      stream$: (_, context) =>
        new Observable((subscriber) => {
          subscriber.next(text('t'));
          started = schedule.mock.calls.length;
          context.working?.('reasoning');
        }),
    };
    const left$ = timeouts(working, limits).stream$(request, lentContext({ scheduler }));
    left$.pipe(take(1)).subscribe();
    expect(started).toBeGreaterThan(0);
    expect(schedule).toHaveBeenCalledTimes(started);
  });

  it('X4: is neither asked again nor replaced by another model when it takes too long', () => {
    let asked = 0;
    const signs = '90ms w '.repeat(20);
    marbles(({ cold, scheduler, expectObservable }) => {
      const once = workingModel({
        ...scriptedModel(),
        stream$: () => {
          asked += 1;
          return cold(signs, values);
        },
      });
      const model = fallback(
        retry(timeouts(once, limits), { minMs: 1 }),
        scriptedModel([text('b')]),
      );
      expectObservable(model.stream$(request, lentContext({ scheduler }))).toBe(
        '1000ms #',
        values,
        tooLong,
      );
    });
    expect(asked).toBe(1);
  });

  it('takes the limit of the call before that of the model', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const once = workingModel(scriptedModel(cold('90ms w '.repeat(20), values)));
      const answer$ = timeouts(once, limits).stream$(
        request,
        lentContext({ scheduler, timeouts: { busyMs: 500 } }),
      );
      const late = 'worked for 500 ms without content, on: reasoning (busyMs)';
      expectObservable(answer$).toBe('500ms #', values, error(late, false));
    });
  });
});
