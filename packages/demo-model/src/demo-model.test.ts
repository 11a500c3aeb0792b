import { describe, expect, it } from '@jest/globals';
import { createDemand, type ModelChunk } from 'millrace';
import { modelContract } from 'millrace/testing';
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { chunksOf, contextOf, requestOf, used, user } from './ask.test-support.js';
import { demoModel, demoModelDescription } from './index.js';

const answered = requestOf([
  user('6 * 7'),
  ...used({ name: 'calculator', input: { expression: '6 * 7' }, output: '42' }),
]);

describe('demoModel', () => {
  it('is named for what it is', () => {
    expect(demoModel().name).toBe('demo-rules');
    expect(demoModelDescription).toMatch(/not a language model/u);
  });

  it('streams word by word, immediately, and ends with usage and a finish', () => {
    const chunks = chunksOf(answered);
    const textOf = (type: string): string =>
      chunks.map((chunk) => (chunk.type === type && 'text' in chunk ? chunk.text : '')).join('');
    expect(textOf('thinking')).toBe('Answering from 1 result. ');
    expect(textOf('text')).toBe('6 * 7 = 42.');
    expect(chunks.filter(({ type }) => type === 'text')).toHaveLength(5);
    expect(chunks.slice(-2)).toEqual([
      { type: 'usage', usage: { inputTokens: 4, outputTokens: 9 } },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it('asks for tools by index', () => {
    const chunks = chunksOf(requestOf('What is 6 * 7, and what time is it in Rome?'));
    expect(chunks.filter(({ type }) => type === 'toolCall' || type === 'text')).toEqual([
      { type: 'toolCall', index: 0, name: 'calculator', input: { expression: '6 * 7' } },
      { type: 'toolCall', index: 1, name: 'clock', input: { place: 'Rome' } },
    ]);
  });

  it.each([{ pace: -1 }, { pace: NaN }, { speed: 3 }])('refuses %j', (options) => {
    expect(() => demoModel(options)).toThrow(/pace/u);
  });
});

describe('the contract of a model', () => {
  it.each(modelContract(() => demoModel()))('$name', ({ run }) => run());
});

describe('pace', () => {
  it('is the time between words, on the scheduler of the call', () => {
    const virtual = new TestScheduler((actual, expected) => expect(actual).toEqual(expected));
    virtual.run(({ expectObservable }) => {
      const context = contextOf({ scheduler: virtual });
      const words$ = demoModel({ pace: 10 }).stream$(answered, context);
      const symbols = Object.fromEntries(
        chunksOf(answered).map((chunk, index) => [String.fromCharCode(97 + index), chunk]),
      );
      const expected = 'a 9ms b 9ms c 9ms d 9ms e 9ms f 9ms g 9ms h 9ms (ijk|)';
      expectObservable(words$).toBe(expected, symbols);
      expectObservable(words$, '^ 24ms !').toBe('a 9ms b 9ms c', symbols);
    });
  });

  it('leaves no timer when it is unsubscribed', () => {
    const virtual = new TestScheduler(() => undefined);
    const context = contextOf({ scheduler: virtual });
    const subscription = demoModel({ pace: 10 }).stream$(answered, context).subscribe();
    expect(virtual.actions.length).toBeGreaterThan(0);
    subscription.unsubscribe();
    virtual.flush();
    expect(virtual.actions).toEqual([]);
  });
});

describe('demand', () => {
  it('pauses the words while it is closed', () => {
    const demand = createDemand(2);
    const chunks: ModelChunk[] = [];
    demoModel()
      .stream$(answered, contextOf({ demand }))
      .subscribe((chunk) => {
        chunks.push(chunk);
        if (chunks.length === 3) demand.backlog(2);
      });
    expect(chunks).toHaveLength(3);
    demand.backlog(0);
    expect(chunks).toEqual(chunksOf(answered));
  });

  it('is not waited for once it has been released', async () => {
    const demand = createDemand();
    demand.release();
    const chunks$ = demoModel().stream$(answered, contextOf({ demand })).pipe(toArray());
    expect(await lastValueFrom(chunks$)).toEqual(chunksOf(answered));
  });

  it('ends on unsubscribe', async () => {
    const first = await firstValueFrom(demoModel().stream$(answered, contextOf()).pipe(take(1)));
    expect(first).toEqual({ type: 'thinking', text: 'Answering ' });
  });
});
