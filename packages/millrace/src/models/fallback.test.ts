import { describe, expect, it } from '@jest/globals';
import { concat, lastValueFrom, Observable, of, takeWhile, throwError, toArray } from 'rxjs';
import {
  createAgent,
  fallback,
  MillraceError,
  type Model,
  type ModelChunk,
  only,
  retry,
  textOf,
} from '../index.js';
import { finish, lentContext, marbles, record, scriptedModel, text } from '../testing/index.js';

const request = { messages: [] };
const down = new MillraceError('server', 'Down.');
const fails = (error: Error, ...before: readonly ModelChunk[]): Observable<ModelChunk> =>
  concat(
    of(...before),
    throwError(() => error),
  );
const named = (name: string, model: Model): Model => ({ ...model, name });

describe('fallback', () => {
  it('C8: asks the next model when one fails, with an event each', async () => {
    const model = fallback(
      named('a', scriptedModel(fails(down))),
      named('b', scriptedModel(fails(down))),
      named('c', scriptedModel([text('From c.')])),
    );
    const events = await record(createAgent({ model }).stream$('?'));
    expect(events.filter(({ type }) => type === 'modelFallback')).toMatchObject([
      { from: 'a', to: 'b', error: { code: 'server' } },
      { from: 'b', to: 'c' },
    ]);
    expect(events.at(-1)).toMatchObject({ reply: { content: [text('From c.')] } });
  });

  it('C8: does not when the failure would be the same again, or something was shown', async () => {
    const auth = new MillraceError('auth', 'No.');
    for (const failure$ of [fails(auth), fails(down, text('x')), fails(down, finish())]) {
      const second = scriptedModel();
      const answer$ = fallback(scriptedModel(failure$), second).stream$(request, lentContext());
      await expect(lastValueFrom(answer$)).rejects.toMatchObject({ name: 'MillraceError' });
      expect(second.requests).toHaveLength(0);
    }
  });

  it('C8: falls back also when what was shown is void', async () => {
    const shaky = scriptedModel(fails(down, text('Half')), fails(down));
    const model = fallback(
      retry(shaky, { attempts: 2, minMs: 0, retryPartial: true }),
      scriptedModel([text('Whole.')]),
    );
    expect(textOf(await createAgent({ model }).call('?'))).toBe('Whole.');
  });

  it('I5: a subscriber that leaves at the report asks no other model', () => {
    const asked: string[] = [];
    const second: Model = {
      name: 'second',
      stream$: () => new Observable(() => void asked.push('second')),
    };
    const agent = createAgent({ model: fallback(scriptedModel(fails(down)), second) });
    agent
      .stream$('?')
      .pipe(takeWhile(({ type }) => type !== 'modelFallback'))
      .subscribe();
    expect(asked).toEqual([]);
  });

  it('C8: ends with the error of the last', async () => {
    const last = new MillraceError('connection', 'Gone.');
    const model = fallback(scriptedModel(fails(down)), scriptedModel(fails(last)));
    await expect(lastValueFrom(model.stream$(request, lentContext()))).rejects.toBe(last);
  });

  it('C8: leaves the model that is being asked, and asks no other', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const [first, second] = [cold<ModelChunk>('5ms #', {}, down), cold('t', { t: text('t') })];
      const third = scriptedModel();
      const model = fallback(scriptedModel(first), scriptedModel(second), third);
      const answer$ = model.stream$(request, lentContext({ scheduler }));
      expectObservable(answer$, '^ 20ms !').toBe('5ms t', { t: text('t') });
      expectSubscriptions(first.subscriptions).toBe('^ 4ms !');
      expectSubscriptions(second.subscriptions).toBe('5ms ^ 15ms !');
    });
  });

  it('C5: each model has its own time', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const model = fallback(
        scriptedModel(cold('-')),
        scriptedModel(cold('90ms (tf|)', { t: text('t'), f: finish() })),
      );
      const lent = lentContext({ scheduler, timeouts: { firstChunkMs: 100 } });
      expectObservable(model.stream$(request, lent)).toBe('190ms (tf|)', {
        t: text('t'),
        f: finish(),
      });
    });
  });

  it('R5: an option that one of them cannot take is dropped for that one, with a warning', async () => {
    const first: Model = { ...scriptedModel(fails(down)), unsupported: ['stopSequences'] };
    const some: Model = { ...scriptedModel(), unsupported: ['stopSequences', 'maxTokens'] };
    const script = scriptedModel([text('x')]);
    const second: Model = { ...script, unsupported: ['stopSequences', 'temperature'] };
    const model = fallback(first, second);
    expect(model.unsupported).toEqual(['stopSequences']);
    expect(fallback(some, second, first).unsupported).toEqual(['stopSequences']);
    const warnings: string[] = [];
    const agent = createAgent({ model });
    agent.events$.pipe(only('warning')).subscribe(({ message }) => warnings.push(message));
    await agent.call('?', { request: { temperature: 0.5, stopSequences: ['.'] } });
    expect(script.requests[0]).not.toHaveProperty('temperature');
    expect(warnings).toEqual([
      "The model 'scripted' does not support 'stopSequences'. The option was dropped.",
      "The model 'scripted' does not support 'temperature'. The option was dropped.",
    ]);
  });

  it('R3: one that has no structured output gets a tool to answer with', async () => {
    const script = scriptedModel([text('{}')]);
    const model = fallback(scriptedModel(fails(down)), {
      ...script,
      unsupported: ['outputSchema'],
    });
    const answer$ = model.stream$({ ...request, outputSchema: { type: 'object' } }, lentContext());
    await lastValueFrom(answer$.pipe(toArray()));
    expect(script.requests[0]).toMatchObject({ tools: [{ name: 'final_answer' }] });
  });

  it('refuses to fall back on nothing', () => {
    expect(() => fallback(scriptedModel())).toThrow('at least one to fall back on');
  });
});
