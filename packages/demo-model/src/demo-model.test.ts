import { describe, expect, it } from '@jest/globals';
import { createDemand, type ModelChunk, type ModelContext, openDemand } from '@millrace/core';
import { modelContract } from '@millrace/core/testing';
import { asapScheduler, firstValueFrom, lastValueFrom, take, toArray } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { ask, used, user } from './declarations.test-data.js';
import { demoModel } from './demo-model.js';

const lent = (given: Partial<ModelContext> = {}): ModelContext => ({
  demand: openDemand,
  scheduler: asapScheduler,
  report: () => undefined,
  stepId: 'call/1',
  random: () => 0,
  ...given,
});

const chunksOf = (request = ask('Hello!'), options = {}): readonly ModelChunk[] => {
  const chunks: ModelChunk[] = [];
  demoModel(options)
    .stream$(request, lent())
    .subscribe((chunk) => chunks.push(chunk));
  return chunks;
};

const joined = (chunks: readonly ModelChunk[], type: 'text' | 'thinking'): string =>
  chunks.map((chunk) => (chunk.type === type ? chunk.text : '')).join('');

describe('demoModel', () => {
  it('is named for what it is', () => {
    expect(demoModel().name).toBe('demo-rules');
  });

  it('speaks word by word, at once, and ends with usage and a finish', () => {
    const chunks = chunksOf(
      ask([
        user('6 * 7'),
        ...used({ name: 'calculator', input: { expression: '6 * 7' }, output: '42' }),
      ]),
    );
    expect(joined(chunks, 'text')).toBe('6 * 7 = 42.');
    expect(joined(chunks, 'thinking')).toBe('One result: writing the answer. ');
    expect(chunks.filter(({ type }) => type === 'text')).toHaveLength(5);
    expect(chunks.slice(-2)).toEqual([
      { type: 'usage', usage: { inputTokens: 4, outputTokens: 10 } },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it('asks for tools by index', () => {
    const chunks = chunksOf(ask('What is 6 * 7, and what time is it in Rome?'));
    expect(chunks.filter(({ type }) => type === 'toolUse')).toEqual([
      { type: 'toolUse', index: 0, name: 'calculator', input: { expression: '6 * 7' } },
      { type: 'toolUse', index: 1, name: 'clock', input: { timeZone: 'Europe/Rome' } },
    ]);
    expect(joined(chunks, 'text')).toBe('');
  });

  it('says the same to the same request', () => {
    const request = ask('What is 6 * 7, and how does it end?');
    expect(chunksOf(request)).toEqual(chunksOf(request));
  });

  it('keeps the layout of an answer', () => {
    const output = 'one\n\n  two';
    const read = used({ name: 'read_file', input: { path: 'a.md' }, output });
    expect(joined(chunksOf(ask([user('read a.md'), ...read])), 'text')).toBe('a.md:\none\n\n  two');
  });

  it.each([{ pace: -1 }, { pace: NaN }, { speed: 3 }])('refuses %j', (options) => {
    expect(() => demoModel(options)).toThrow(/pace/u);
  });
});

describe('the contract of a model', () => {
  it.each(modelContract(() => demoModel()))('$name', ({ run }) => run());
});

describe('pace', () => {
  const request = ask([
    user('6 * 7'),
    ...used({ name: 'calculator', input: { expression: '6 * 7' }, output: '42' }),
  ]);

  it('is the time between words, on the scheduler of the call', () => {
    const virtual = new TestScheduler((actual, expected) => expect(actual).toEqual(expected));
    virtual.run(({ expectObservable, expectSubscriptions, cold }) => {
      const words$ = demoModel({ pace: 10 }).stream$(request, lent({ scheduler: virtual }));
      const symbols = Object.fromEntries(
        chunksOf(request).map((chunk, index) => [String.fromCharCode(97 + index), chunk]),
      );
      const expected = 'a 9ms b 9ms c 9ms d 9ms e 9ms f 9ms g 9ms h 9ms i 9ms (jkl|)';
      expectObservable(words$).toBe(expected, symbols);
      expectObservable(words$, '^ 24ms !').toBe('a 9ms b 9ms c', symbols);
      expectSubscriptions(cold('|').subscriptions).toBe([]);
    });
  });

  it('leaves no timer behind', () => {
    const virtual = new TestScheduler(() => undefined);
    const subscription = demoModel({ pace: 10 })
      .stream$(request, lent({ scheduler: virtual }))
      .subscribe();
    expect(virtual.actions.length).toBeGreaterThan(0);
    subscription.unsubscribe();
    virtual.flush();
    expect(virtual.actions).toEqual([]);
  });
});

describe('demand', () => {
  it('pauses between words while it is closed', () => {
    const demand = createDemand(2);
    const chunks: ModelChunk[] = [];
    demoModel()
      .stream$(ask('Hello!'), lent({ demand }))
      .subscribe((chunk) => {
        chunks.push(chunk);
        if (chunks.length === 3) demand.backlog(2);
      });
    expect(chunks).toHaveLength(3);
    demand.backlog(0);
    expect(chunks).toEqual(chunksOf());
  });

  it('is not waited for once it has been released', async () => {
    const demand = createDemand();
    demand.release();
    const chunks$ = demoModel().stream$(ask('Hello!'), lent({ demand })).pipe(toArray());
    expect(await lastValueFrom(chunks$)).toEqual(chunksOf());
  });

  it('ends at once on unsubscribe', async () => {
    const first = await firstValueFrom(demoModel().stream$(ask('Hello!'), lent()).pipe(take(1)));
    expect(first).toEqual({ type: 'thinking', text: 'Nothing ' });
  });
});
