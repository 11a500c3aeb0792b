import { describe, expect, it } from '@jest/globals';
import {
  type CallInfo,
  createAgent,
  MillraceError,
  type Model,
  type ModelChunk,
  retry,
  textOf,
} from 'millrace';
import { finish, marbles, scriptedModel, text } from 'millrace/testing';
import { catchError, map, of } from 'rxjs';
import { cacheResponses, canary } from './index.js';

const bad = 'must return a string, or undefined for none, not';

/** What a function of the program may return for a call of ada and of bob, and what both of them get. */
const keys: readonly (readonly [string, (call: CallInfo) => unknown, 'own' | 'shared' | string])[] =
  [
    ['the same string', () => 'everyone', 'shared'],
    ['a name of Object.prototype', () => '__proto__', 'shared'],
    ['a string of each user', ({ metadata }) => metadata['userId'], 'own'],
    ['a string with a separator', ({ metadata }) => `5 ${metadata['userId']} `, 'own'],
    ['two forms of one letter', ({ metadata }) => (isAda(metadata) ? 'é' : 'e\u0301'), 'own'],
    ['nothing', () => undefined, 'own'],
    ['null', () => null, 'own'],
    ['an empty string', () => '', 'own'],
    ['a promise', ({ metadata }) => Promise.resolve(metadata['userId']), `${bad} a promise`],
    ['an object', ({ metadata }) => ({ ...metadata }), `${bad} this object`],
    ['a list', ({ metadata }) => [metadata['userId']], `${bad} this object`],
    ['a number', () => Number.NaN, `${bad} this number`],
  ];

const isAda = (metadata: CallInfo['metadata']): boolean => metadata['userId'] === 'ada';

describe('C13: calls of several users', () => {
  it.each(keys)('share a cached answer only by a string: %s', async (_, scope, expected) => {
    const model = scriptedModel([text('1')], [text('2')]);
    // @ts-expect-error: programs in JavaScript return anything
    const agent = createAgent({ model, use: [cacheResponses({ scope })] });
    const said: string[] = [];
    for (const userId of ['ada', 'bob']) {
      const call = agent.call('?', { metadata: { userId } });
      said.push(
        await call.then(textOf, (error: MillraceError) => `${error.code} ${error.message}`),
      );
    }
    const [first, second] = said;
    if (expected === 'own') expect(said).toEqual(['1', '2']);
    else if (expected === 'shared') expect(said).toEqual(['1', '1']);
    else {
      expect(first).toMatch(/^config /u);
      expect(first).toContain(`cacheResponses(): 'scope' ${expected}`);
      expect(second).toBe(first);
      expect(model.requests).toEqual([]);
    }
  });

  it.each(keys)('are one key of a canary only by a string: %s', async (_, by, expected) => {
    const candidate = scriptedModel([text('1')], [text('1')]);
    // @ts-expect-error: programs in JavaScript return anything
    const use = [canary({ model: candidate, share: 1, by })];
    const agent = createAgent({ model: scriptedModel(), use });
    const said = await agent
      .call('?', { metadata: { userId: 'ada' } })
      .then(textOf, ({ code, message }: MillraceError) => `${code} ${message}`);
    if (expected === 'own' || expected === 'shared') expect(said).toBe('1');
    else expect(said).toContain(`canary(): 'by' ${expected}`);
  });

  it.each([
    ['none has a retry left', 0, 0, ['server', 'server']],
    ['only the first has one left', 1, 0, ['ok', 'ok']],
    ['only the second has one left', 0, 1, ['ok', 'ok']],
    ['the second has no limit', 0, undefined, ['ok', 'ok']],
  ])('share a request that is retried while one of them may: %s', (_, first, second, ends) => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const down = new MillraceError('server', 'It is down.', { retryable: true });
      const answers = [
        cold<ModelChunk>('-#', {}, down),
        cold<ModelChunk>('-(tf|)', { t: text('ok'), f: finish() }),
      ];
      let asked = 0;
      const flaky: Model = {
        name: 'flaky',

        stream$: () => answers[asked++] ?? of(),
      };
      const model = retry(flaky, { minMs: 5, maxMs: 5, jitter: 0 });
      const agent = createAgent({ model, use: [cacheResponses({ scope: () => 'everyone' })] });
      const call$ = (retryBudget: number | undefined) =>
        agent.call$('?', { scheduler, limits: { retryBudget } }).pipe(
          map(textOf),
          catchError(({ code }: MillraceError) => of(code)),
        );
      const isAnswered = ends[0] === 'ok';
      const marble = isAnswered ? '7ms (a|)' : '-(a|)';
      expectObservable(call$(first)).toBe(marble, { a: ends[0] });
      expectObservable(call$(second)).toBe(marble, { a: ends[1] });
    });
  });
});
