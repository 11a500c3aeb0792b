import { describe, expect, it } from '@jest/globals';
import {
  createAgent,
  createDemand,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelReport,
} from 'millrace';
import { finish, lentContext, marbles, record, scriptedModel, text } from 'millrace/testing';
import { budget } from 'millrace/traffic';
import {
  catchError,
  EMPTY,
  filter,
  ignoreElements,
  lastValueFrom,
  NEVER,
  of,
  takeUntil,
  takeWhile,
  throwError,
  toArray,
} from 'rxjs';
import { hedge } from './index.js';

const request = { messages: [] };
const down = new MillraceError('server', 'Down.');
const auth = new MillraceError('auth', 'No.');
const chunks: Readonly<Record<string, ModelChunk>> = {
  a: text('a'),
  b: text('b'),
  f: finish(),
  u: { type: 'usage', usage: { inputTokens: 10 } },
  v: { type: 'usage', usage: { inputTokens: 7, outputTokens: 3 } },
  s: { type: 'usage', usage: { inputTokens: 17, outputTokens: 3 } },
  r: { type: 'restart', why: 'again' },
};
/** The usage of the first model is voided, but counts. */
const voided = {
  ...chunks,
  x: { type: 'restart', why: 'Another model answers.' },
};
const named = (name: string, model: Model): Model => ({ ...model, name });

interface Reports {
  readonly reports: string[];
  readonly report: (event: ModelReport | { type: 'modelHedged' }) => void;
}

const reporting = (): Reports => {
  const reports: string[] = [];
  return { reports, report: ({ type }) => void reports.push(type) };
};

/** Two models as marbles, hedged after 10 ms. */
const both = (
  diagrams: readonly [string, string],
  check: (
    seen: Parameters<Parameters<typeof marbles>[0]>[0] & {
      readonly answer$: ReturnType<Model['stream$']>;
      readonly subscriptions: readonly Parameters<
        Parameters<Parameters<typeof marbles>[0]>[0]['expectSubscriptions']
      >[0][];
      readonly reports: readonly string[];
      readonly demand: ReturnType<typeof createDemand>;
    },
  ) => void,
  errors: readonly [MillraceError, MillraceError] = [down, down],
): void => {
  marbles((helpers) => {
    const answers = diagrams.map((it, nth) => helpers.cold<ModelChunk>(it, chunks, errors[nth]));
    const { reports, report } = reporting();
    const demand = createDemand(1);
    const [first, second] = answers.map((answer$) => scriptedModel(answer$));
    if (first === undefined || second === undefined) throw new Error('Two diagrams.');
    const model = hedge(named('first', first), named('second', second), { afterMs: 10 });
    const lent = lentContext({ scheduler: helpers.scheduler, report, demand });
    check({
      ...helpers,
      answer$: model.stream$(request, lent),
      subscriptions: answers.map((answer) => answer.subscriptions),
      reports,
      demand,
    });
  });
};

describe('C8: hedge', () => {
  it('asks only the first model if it answers in time', () => {
    both(['5ms a 10ms (bf|)', 'a'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('5ms a 10ms (bf|)', chunks);
      seen.expectSubscriptions(seen.subscriptions[0] ?? []).toBe('^ 15ms !');
      seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe([]);
      seen.flush();
      expect(seen.reports).toEqual([]);
    });
  });

  it('asks the second one after afterMs, and aborts the slower one in the same tick', () => {
    both(['30ms a', '8ms a b(f|)'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('18ms a b(f|)', chunks);
      seen.expectSubscriptions(seen.subscriptions[0] ?? []).toBe('^ 17ms !');
      seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe('10ms ^ 9ms !');
      seen.flush();
      expect(seen.reports).toEqual(['modelHedged', 'modelFallback']);
    });
  });

  it('aborts the second one if the first one still wins', () => {
    both(['12ms a(f|)', '8ms b'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('12ms a(f|)', chunks);
      seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe('10ms ^ 1ms !');
      seen.flush();
      expect(seen.reports).toEqual(['modelHedged']);
    });
  });

  it('does not take a heartbeat for an answer, and counts the usage of the loser', () => {
    both(['u 30ms a', '3ms v 2ms (avf|)'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('u 15ms (xvavf|)', voided);
      seen.expectSubscriptions(seen.subscriptions[0] ?? []).toBe('^ 15ms !');
    });
    both(['u 19ms (auf|)', '3ms v'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('u 19ms (sasf|)', chunks);
    });
  });

  it('counts the usage of the loser once if the winner starts again', () => {
    both(['u 30ms a', '3ms a 5ms r v (af|)'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('u 12ms (xa) 2ms r v (af|)', voided);
    });
    // In the second attempt, the usage of the loser is part of the first one.
    both(['19ms a 3ms r u (af|)', '3ms v'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('19ms (va) r u (af|)', chunks);
    });
  });

  it('counts every attempt of the loser', () => {
    both(['19ms (auf|)', '2ms v r u'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('19ms (satf|)', {
        ...chunks,
        t: { type: 'usage', usage: { inputTokens: 27, outputTokens: 3 } },
      });
    });
  });

  it('counts the usage of failures, each by the price of its model, and of a call that is left', async () => {
    const prices = { first: { input: 1e6, output: 0 }, second: { input: 1e3, output: 1e3 } };
    const spent = async (first: string, second: string, end = '-'): Promise<number> => {
      const total = budget({ money: 1e9, prices });
      marbles(({ cold, scheduler, flush }) => {
        const [a, b] = [first, second].map((it) => scriptedModel(cold(it, chunks, down)));
        if (a === undefined || b === undefined) throw new Error('Two diagrams.');
        const model = hedge(named('first', a), named('second', b), { afterMs: 10 });
        const left$ = cold(end).pipe(filter((it) => it === 'x'));
        createAgent({ model, use: [total] })
          .call$('?', { scheduler })
          .pipe(
            takeUntil(left$),
            catchError(() => EMPTY),
          )
          .subscribe();
        flush();
      });
      return Promise.resolve(total.spent.money);
    };
    // 10 tokens at 1, 10 at 0.001.
    expect(await spent('u#', 'v#')).toBeCloseTo(10.01);
    expect(await spent('u 30ms #', '2ms v #')).toBeCloseTo(17);
    expect(await spent('u 30ms -', '2ms (vaf|)')).toBeCloseTo(10.01);
    expect(await spent('u 30ms -', '-', '5ms x')).toBeCloseTo(10);
  });

  it('leaves the answer to the other one if a stream ends without an answer', () => {
    both(['30ms (af|)', '8ms |'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('30ms (af|)', chunks);
    });
    both(['12ms (u|)', '8ms (af|)'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('12ms u 5ms (xaf|)', voided);
    });
    both(['12ms |', '8ms |'], (seen) => {
      const codes$ = seen.answer$.pipe(catchError((it: MillraceError) => of(it.code)));
      seen.expectObservable(codes$).toBe('18ms (c|)', { c: 'invalidResponse' });
    });
  });

  it('I5: unsubscribing aborts both', () => {
    both(['-', '-'], (seen) => {
      seen.expectObservable(seen.answer$, '^ 19ms !').toBe('-');
      seen.expectSubscriptions(seen.subscriptions[0] ?? []).toBe('^ 19ms !');
      seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe('10ms ^ 9ms !');
    });
  });

  it('I5: an observer that leaves at the news prevents the second request', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const second = cold<ModelChunk>('a', chunks);
      const model = hedge(scriptedModel(NEVER), scriptedModel(second), { afterMs: 10 });
      const event$ = createAgent({ model }).stream$('?', { scheduler });
      const seen$ = event$.pipe(takeWhile(({ type }) => type !== 'modelHedged'));
      expectObservable(seen$.pipe(ignoreElements())).toBe('10ms |');
      expectSubscriptions(second.subscriptions).toBe([]);
    });
  });

  it('C5: time with closed demand does not count', () => {
    both(['-', '3ms (af|)'], (seen) => {
      seen.cold('4ms c 19ms o', { c: 1, o: 0 }).subscribe((size) => seen.demand.backlog(size));
      seen.expectObservable(seen.answer$).toBe('33ms (af|)', chunks);
      // 4 ms, then 6 ms after 24 ms.
      seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe('30ms ^ 2ms !');
    });
  });

  it('C8: a retryable failure asks the second model immediately', () => {
    both(['3ms #', '2ms (af|)'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('5ms (af|)', chunks);
      seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe('3ms ^ 1ms !');
      seen.flush();
      expect(seen.reports).toEqual(['modelFallback']);
    });
  });

  it('C8: a failure that the second model would share is passed on', () => {
    both(
      ['3ms #', 'a'],
      (seen) => {
        seen.expectObservable(seen.answer$).toBe('3ms #', chunks, auth);
        seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe([]);
      },
      [auth, down],
    );
  });

  it('leaves the answer to the other one if either fails', () => {
    both(['12ms #', '8ms (af|)'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('18ms (af|)', chunks);
    });
    both(['30ms (af|)', '8ms #'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('30ms (af|)', chunks);
    });
  });

  it('ends with the last error if both fail, in any order', () => {
    both(
      ['12ms #', '8ms #'],
      (seen) => seen.expectObservable(seen.answer$).toBe('18ms #', chunks, auth),
      [down, auth],
    );
    both(
      ['30ms #', '8ms #'],
      (seen) => seen.expectObservable(seen.answer$).toBe('30ms #', chunks, auth),
      [auth, down],
    );
  });

  it('passes on an error in the middle of an answer', () => {
    both(['5ms a 5ms #', 'b'], (seen) => {
      seen.expectObservable(seen.answer$).toBe('5ms a 5ms #', chunks, down);
      seen.expectSubscriptions(seen.subscriptions[1] ?? []).toBe([]);
    });
  });

  it('works with models that fail or answer synchronously', async () => {
    const fails = scriptedModel(throwError(() => down));
    const works = () => scriptedModel([text('a')]);
    for (const model of [
      hedge(fails, works(), { afterMs: 5 }),
      hedge(works(), fails, { afterMs: 0 }),
    ]) {
      const all$ = model.stream$(request, lentContext()).pipe(toArray());
      expect(await lastValueFrom(all$)).toEqual([chunks['a'], chunks['f']]);
    }
    const none = hedge(scriptedModel(throwError(() => auth)), fails, { afterMs: 5 });
    await expect(lastValueFrom(none.stream$(request, lentContext()))).rejects.toBe(auth);
  });

  it('names the model that answered', async () => {
    const slow = named('slow', scriptedModel(NEVER));
    const quick = named('quick', scriptedModel([text('Yes.')]));
    const events = await record(
      createAgent({ model: hedge(slow, quick, { afterMs: 1 }) }).stream$('?'),
    );
    expect(events.find(({ type }) => type === 'modelHedged')).toMatchObject({
      from: 'slow',
      to: 'quick',
    });
    expect(events.find(({ type }) => type === 'modelFallback')).toMatchObject({
      to: 'quick',
      error: { code: 'timeout' },
    });
    expect(events.at(-1)).toMatchObject({ reply: { text: 'Yes.' } });
  });

  it('R5: drops what one of them cannot take, with a warning', async () => {
    const script = scriptedModel(throwError(() => down));
    const other = scriptedModel([text('a')]);
    const first: Model = { ...script, unsupported: ['temperature', 'maxTokens'] };
    const second: Model = { ...other, unsupported: ['maxTokens', 'stopSequences'] };
    const model = hedge(first, second, { afterMs: 5 });
    expect(model.unsupported).toEqual(['maxTokens']);
    const { reports, report } = reporting();
    const asked = { ...request, temperature: 0.5, stopSequences: ['.'] };
    await lastValueFrom(model.stream$(asked, lentContext({ report })));
    expect(script.requests).toEqual([{ ...request, stopSequences: ['.'] }]);
    expect(other.requests).toEqual([{ ...request, temperature: 0.5 }]);
    expect(reports).toEqual(['warning', 'modelFallback', 'warning']);
  });

  it('R3: one without structured output gets a tool to answer with', () => {
    const plain: Model = { ...scriptedModel(of(finish())), unsupported: ['outputSchema'] };
    expect(hedge(plain, plain, { afterMs: 5 }).unsupported).toEqual([]);
  });

  it('I10: names a wrong argument', () => {
    const model = scriptedModel();
    // @ts-expect-error -- not a model
    expect(() => hedge(model, 'second', { afterMs: 1 })).toThrow(
      /hedge\(\): 'second' must be a model/,
    );
    expect(() => hedge(model, model, { afterMs: -1 })).toThrow(
      /'afterMs' must be a number of milli/,
    );
    // @ts-expect-error -- missing
    expect(() => hedge(model, model, {})).toThrow(/hedge\(\) needs 'afterMs'/);
  });
});
