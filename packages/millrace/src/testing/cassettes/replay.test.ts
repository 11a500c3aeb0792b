import { describe, expect, it } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { catchError, concat, lastValueFrom, map, NEVER, of, take, throwError, timer } from 'rxjs';
import type { ModelChunk, ModelReport } from '../../models/model.js';
import { createRetryBudget } from '../../models/timeouts.js';
import { createDemand, MillraceError, type Model, retry } from '../../index.js';
import { cassette, finish, lentContext, marbles, scriptedModel, text } from '../index.js';
import {
  asking,
  chunksOf,
  isolate,
  never,
  newFile,
  recordedBy,
  stored,
} from './cassette.test-support.js';

isolate();

describe('the time of a replay', () => {
  const slow = (): Promise<string> => {
    const file = newFile();
    marbles(({ cold, scheduler, expectObservable }) => {
      const values = { a: text('a'), b: text('b'), f: finish() };
      const model = scriptedModel(cold('10s a 29s b 999ms (f|)', values));
      expectObservable(cassette(file, model).stream$(asking('?'), lentContext({ scheduler })));
    });
    cassette(file, never).verify();
    return Promise.resolve(file);
  };

  it('is off by default', async () => {
    const file = await slow();
    marbles(({ scheduler, expectObservable }) => {
      const chunk$ = cassette(file, never).stream$(asking('?'), lentContext({ scheduler }));
      expectObservable(chunk$).toBe('(abf|)', { a: text('a'), b: text('b'), f: finish() });
    });
  });

  it.each([
    [1, '10s a 29s b 999ms (f|)'],
    [10, '1s a 2899ms b 99ms (f|)'],
  ])(
    'is that of the recording at speed %d, on the scheduler of the call',
    async (speed, marble) => {
      const file = await slow();
      marbles(({ scheduler, expectObservable }) => {
        const model = cassette(file, never, { speed });
        const chunk$ = model.stream$(asking('?'), lentContext({ scheduler }));
        expectObservable(chunk$).toBe(marble, { a: text('a'), b: text('b'), f: finish() });
      });
    },
  );

  it('pauses while demand is closed', async () => {
    const file = await slow();
    marbles(({ scheduler, expectObservable, cold }) => {
      const demand = createDemand(1);
      const model = cassette(file, never, { speed: 1 });
      cold('5s a 34s b 60s c').subscribe((letter) => demand.backlog(letter === 'c' ? 0 : 1));
      const chunk$ = model.stream$(asking('?'), lentContext({ scheduler, demand }));
      expectObservable(chunk$).toBe('99002ms (abf|)', { a: text('a'), b: text('b'), f: finish() });
    });
  });

  it('stops immediately for an observer that closes demand or leaves', async () => {
    const file = await slow();
    const demand = createDemand(1);
    const seen: ModelChunk[] = [];
    const subscription = cassette(file, never)
      .stream$(asking('?'), lentContext({ demand }))
      .subscribe((chunk) => {
        seen.push(chunk);
        demand.backlog(1);
      });
    await lastValueFrom(timer(5));
    expect(seen).toEqual([text('a')]);
    subscription.unsubscribe();
    demand.release();
    expect(seen).toHaveLength(1);
  });
});

describe('a replay', () => {
  it('emits one chunk at a time if an observer closes demand and opens it again', async () => {
    const file = await recordedBy(scriptedModel([text('a'), text('b')]));
    const demand = createDemand(1);
    const seen: ModelChunk[] = [];
    cassette(file, never)
      .stream$(asking('?'), lentContext({ demand }))
      .subscribe((chunk) => {
        demand.backlog(1);
        demand.backlog(0);
        seen.push(chunk);
      });
    await lastValueFrom(timer(5));
    expect(seen).toEqual([text('a'), text('b'), finish()]);
  });

  it('leaves no timer when it is cancelled', () => {
    const file = newFile();
    marbles(({ cold, scheduler }) => {
      const model = cassette(file, scriptedModel(cold('10s (f|)', { f: finish() })));
      model.stream$(asking('?'), lentContext({ scheduler })).subscribe();
    });
    cassette(file, never).verify();
    marbles(({ scheduler, flush }) => {
      const model = cassette(file, never, { speed: 1 });
      const subscription = model.stream$(asking('?'), lentContext({ scheduler })).subscribe();
      scheduler.schedule(() => subscription.unsubscribe(), 5);
      flush();
      expect(scheduler.now()).toBe(5);
    });
  });
});

describe('a recorded request that failed', () => {
  it('fails again, with the same typed error', async () => {
    const error = new MillraceError('rateLimited', 'Slow down.', {
      ...{ status: 429, retryAfterMs: 20_000, requestId: 'r1', partial: 'It', over: 3 },
      userMessage: 'Later.',
      retryable: false,
      cause: new Error('secret'),
    });
    const model = scriptedModel(
      concat(
        of(text('It')),
        throwError(() => error),
      ),
    );
    const file = await recordedBy(model);
    expect(readFileSync(file, 'utf8')).not.toContain('secret');
    const replayed: unknown = await chunksOf(cassette(file, never)).catch((it: unknown) => it);
    expect(replayed).toBeInstanceOf(MillraceError);
    expect({ ...(replayed as object) }).toEqual({ ...error });
    expect(replayed).toMatchObject({ message: 'Slow down.' });
  });

  it('fails with a plain error if the model did', async () => {
    const model = scriptedModel(throwError(() => new TypeError('No.')));
    const file = await recordedBy(model);
    const replayed: unknown = await chunksOf(cassette(file, never)).catch((it: unknown) => it);
    expect(replayed).toEqual(new Error('No.'));
    const throwing: Model = {
      name: 'm',
      stream$: () => {
        throw new Error('At once.');
      },
    };
    const other = await recordedBy(throwing);
    await expect(chunksOf(cassette(other, { ...never, name: 'm' }))).rejects.toThrow('At once.');
  });

  it('is not recorded if its key is missing or refused: the next run may have another', async () => {
    const file = newFile();
    const fails = (code: 'config' | 'auth') => throwError(() => new MillraceError(code, 'No key.'));
    const model = cassette(file, scriptedModel(fails('config'), fails('auth'), [text('a')]));
    await expect(chunksOf(model)).rejects.toMatchObject({ code: 'config' });
    await expect(chunksOf(model)).rejects.toMatchObject({ code: 'auth' });
    expect(existsSync(file)).toBe(false);
    await chunksOf(model);
    expect(stored(file).recordings).toHaveLength(1);
  });

  it('is retried by a wrapper around the cassette as it was', () => {
    const file = newFile();
    const fails = (code: 'server') => throwError(() => new MillraceError(code, 'No.'));
    const run = (model: Model) =>
      marbles(({ scheduler, expectObservable }) => {
        const context = lentContext({ scheduler });
        const chunk$ = retry(model, { jitter: 0 }).stream$(asking('?'), context);
        expectObservable(chunk$).toBe('3s (af|)', { a: text('a'), f: finish() });
      });
    run(cassette(file, scriptedModel(fails('server'), fails('server'), [text('a')])));
    cassette(file, never).verify();
    const replay = cassette(file, never, { speed: 1 });
    run(replay);
    replay.verify();
    expect(stored(file).recordings).toHaveLength(3);
  });

  it('is silent as it was: a wrapper that retries waits for silence no more than twice', () => {
    const file = newFile();
    const limits = { firstChunkMs: 100 };
    const timed = (model: Model): Model => ({ ...retry(model, { attempts: 1 }), keepsTime: true });
    const silent = timed({ name: 'scripted', stream$: () => NEVER });
    const run = (model: Model) =>
      marbles(({ scheduler, expectObservable }) => {
        const context = lentContext({ scheduler, timeouts: limits });
        const code$ = retry(model, { jitter: 0 })
          .stream$(asking('?'), context)
          .pipe(
            map(() => 'content'),
            catchError((error: MillraceError) => of(error.code)),
          );
        expectObservable(code$).toBe('1200ms (a|)', { a: 'timeout' });
      });
    run(cassette(file, silent));
    cassette(file, never).verify();
    run(cassette(file, { ...never, keepsTime: true }, { speed: 1 }));
    expect(stored(file).recordings).toHaveLength(2);
  });
});

describe('a recorded request that was cancelled', () => {
  const values = { a: text('a'), b: text('b'), f: finish() };
  const cancelled = (): string => {
    const file = newFile();
    marbles(({ cold, scheduler, expectObservable }) => {
      const model = scriptedModel(cold('-a-b-f', values));
      const chunk$ = cassette(file, model).stream$(asking('?'), lentContext({ scheduler }));
      expectObservable(chunk$, '^---!').toBe('-a-b', values);
    });
    cassette(file, never).verify();
    return file;
  };

  it('can be cancelled again, at a chunk or at a time', async () => {
    const file = cancelled();
    expect(stored(file).recordings).toMatchObject([{ end: [4, 'cancelled'] }]);
    const replay = cassette(file, never);
    expect(
      await chunksOf({ ...replay, stream$: (...args) => replay.stream$(...args).pipe(take(2)) }),
    ).toEqual([text('a'), text('b')]);
    marbles(({ scheduler, expectObservable }) => {
      const model = cassette(file, never, { speed: 1 });
      const chunk$ = model.stream$(asking('?'), lentContext({ scheduler }));
      expectObservable(chunk$, '^---------------!').toBe('-a-b', values);
    });
  });

  it('fails a second later for a consumer that does not cancel', () => {
    const file = cancelled();
    marbles(({ scheduler, expectObservable }) => {
      const model = cassette(file, never, { speed: 1 });
      const outcome$ = model
        .stream$(asking('?'), lentContext({ scheduler }))
        .pipe(catchError((error: MillraceError) => of(`${error.code} ${error.message}`)));
      expectObservable(outcome$).toBe('-a-b 1000ms (e|)', {
        ...values,
        e: `invalidRequest A recording of the cassette '${file}' ends after 2 events, because its consumer cancelled the request. This consumer did not. To record again, delete the file or set MILLRACE_CASSETTES=record.`,
      });
    });
  });
});

describe('the reports of a model', () => {
  it('are replayed in their place, and retries take from the budget', async () => {
    const error = new MillraceError('server', 'Down.', { status: 503 });
    const reports: readonly ModelReport[] = [
      { type: 'modelRetry', model: 'm', attempt: 1, attempts: 3, waitMs: 1000, error },
      { type: 'modelWaiting', model: 'm', waitedMs: 10_000 },
      { type: 'modelFallback', from: 'm', to: 'n', error },
      {
        type: 'repaired',
        before: '{',
        after: '{}',
        toolCall: { type: 'tool_call', id: 'c', name: 'f', input: {} },
      },
      { type: 'queued', why: 'rate', ahead: 2 },
      { type: 'warning', message: 'Hm.' },
    ];
    const model = scriptedModel((_, { report }) => {
      reports.forEach(report);
      return [text('a')];
    });
    const file = await recordedBy(model);
    const seen: ModelReport[] = [];
    const retryBudget = createRetryBudget(1);
    const replay = cassette(file, never);
    await chunksOf(replay, asking('?'), { report: (it) => seen.push(it), retryBudget });
    expect(seen).toEqual(reports);
    expect(seen[0]).toMatchObject({ error: { message: 'Down.', status: 503 } });
    expect(retryBudget.take()).toBe(false);
  });
});
