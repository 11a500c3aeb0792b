import { describe, expect, it } from '@jest/globals';
import { NEVER } from 'rxjs';
import { createAgent, createDemand, MillraceError, type Model, retry, timeouts } from '../index.js';
import { finish, lentContext, marbles, scriptedModel, text } from '../testing/index.js';

const request = { messages: [] };
const values = { t: text('t'), e: text(''), f: finish() };
const silent = (ms: number): MillraceError =>
  new MillraceError(
    'timeout',
    ms === 100
      ? `The model 'scripted' did not start to answer within 100 ms (firstChunkMs).`
      : `The model 'scripted' sent nothing for ${ms} ms in the middle of its answer (chunkMs).`,
  );

const silentFor = (name: string, ms: number): MillraceError =>
  new MillraceError(
    'timeout',
    `The model '${name}' sent nothing for ${ms} ms in the middle of its answer (chunkMs).`,
  );

const mute: Model = { name: 'mute', stream$: () => NEVER };

/** Runs one answer of a model under limits, and says when it must do what. */
const expectTimed = (
  answer: string,
  expected: string,
  { ms = 0, left = '', demand = '' } = {},
): void => {
  marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
    const answer$ = cold(answer, values);
    const gate = createDemand(1);
    if (demand !== '') {
      cold(demand).subscribe((level) => {
        gate.backlog(level === 'c' ? 1 : 0);
      });
    }
    const model = timeouts(scriptedModel(answer$), { firstChunkMs: 100, chunkMs: 20 });
    const timed$ = model.stream$(request, lentContext({ scheduler, demand: gate }));
    expectObservable(timed$).toBe(expected, values, silent(ms));
    if (left !== '') expectSubscriptions(answer$.subscriptions).toBe(left);
  });
};

describe('timeouts', () => {
  it('C5: gives up a model whose first chunk does not come, and leaves it', () => {
    expectTimed('200ms t', '100ms #', { ms: 100, left: '^ 99ms !' });
  });

  it('C5: gives up a model that falls silent between chunks', () => {
    expectTimed('50ms t 10ms t 200ms t', '50ms t 10ms t 19ms #', { ms: 20, left: '^ 80ms !' });
  });

  it('X3: counts content: a sign of life keeps nothing alive', () => {
    expectTimed('e 49ms e 49ms e 10ms t', 'e 49ms e 49ms #', { ms: 100 });
    expectTimed('t 7ms e 7ms e 9ms t', 't 7ms e 7ms e 3ms #', { ms: 20 });
  });

  it('C5: waits for nothing after the finish', () => {
    expectTimed('t 10ms f 500ms |', 't 10ms f 500ms |');
  });

  it('C5: begins again when an attempt is void', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const chunks = { ...values, r: { type: 'restart', why: 'x' } } as const;
      const model = timeouts(scriptedModel(cold('t 9ms r 200ms t', chunks)), {
        firstChunkMs: 100,
        chunkMs: 20,
      });
      expectObservable(model.stream$(request, lentContext({ scheduler }))).toBe(
        't 9ms r 99ms #',
        chunks,
        silent(100),
      );
    });
  });

  it('C5: stands still while demand is closed', () => {
    expectTimed('t 500ms t', 't 89ms #', { ms: 20, demand: '10ms c 69ms o' });
    expectTimed('500ms t', '180ms #', { ms: 100, demand: '40ms c 79ms o' });
    expectTimed('5ms t 500ms (f|)', '5ms t 500ms (f|)', { demand: '10ms c' });
  });

  it('C5: a chunk that arrives while demand is closed begins the silence again', () => {
    expectTimed('t 29ms t 500ms t', 't 29ms t 99ms #', { ms: 20, demand: '10ms c 99ms o' });
  });

  it('C5: each attempt has its time', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const model = timeouts(
        retry(scriptedModel(cold('-'), cold('90ms (tf|)', values)), { jitter: 0 }),
        { firstChunkMs: 100 },
      );
      expectObservable(model.stream$(request, lentContext({ scheduler }))).toBe(
        '1190ms (tf|)',
        values,
      );
    });
  });

  it('C5: limits of a call take precedence over those of the model, with any model', () => {
    const ends = (model: Model, options: object): void => {
      marbles(({ scheduler, expectObservable }) => {
        const call$ = createAgent({ model }).call$('?', { scheduler, ...options });
        const error = new MillraceError(
          'timeout',
          `The model 'mute' did not start to answer within 30 ms (firstChunkMs).`,
        );
        expectObservable(call$).toBe('30ms #', {}, error);
      });
    };
    ends(mute, { limits: { timeouts: { firstChunkMs: 30 } } });
    ends(timeouts(mute, { firstChunkMs: 500 }), { limits: { timeouts: { firstChunkMs: 30 } } });
    ends(timeouts(timeouts(mute, { firstChunkMs: 500 }), { firstChunkMs: 30 }), {});
  });

  it('C5: iterationMs covers a turn', () => {
    marbles(({ scheduler, expectObservable }) => {
      const timed = { scheduler, limits: { timeouts: { iterationMs: 70 } } };
      expectObservable(createAgent({ model: mute }).call$('?', timed)).toBe(
        '70ms #',
        {},
        new MillraceError('timeout', 'The turn did not finish within 70 ms (iterationMs).'),
      );
    });
  });

  it('refuses invalid limits', () => {
    expect(() => timeouts(scriptedModel(), {})).toThrow('needs firstChunkMs, chunkMs or busyMs');
    expect(() => timeouts(scriptedModel(), { chunkMs: -1 })).toThrow('milliseconds');
  });

  it('C5: measures the limits of the call within a wrapper, and otherwise changes nothing', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const wrapped: Model = { ...timeouts({ ...mute, stream$: () => cold('t 99ms #', values) }) };
      const ask = (limits = {}) =>
        wrapped.stream$(request, lentContext({ scheduler, timeouts: limits }));
      expect(wrapped.keepsTime).toBe(true);
      expect(timeouts(wrapped)).toBe(wrapped);
      expectObservable(ask()).toBe('t 99ms #', values);
      expectObservable(ask({ chunkMs: 20 })).toBe('t 19ms #', values, silentFor('mute', 20));
    });
  });
});
