import { describe, expect, it } from '@jest/globals';
import { filter, lastValueFrom, map, mergeMap, of } from 'rxjs';
import { createAgent, type Input, MillraceError, textOf } from '../index.js';
import { marbles, scriptedModel, text } from '../testing/index.js';
import { race } from './compose.js';
import { sessions } from '../layers/sessions/index.js';

/** A step without a reply. */
const silent = filter((_input: Input): _input is string => false);

describe('race', () => {
  it('G5, I5: the first reply wins, and the others are left in the same tick', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model(['-----(sf|)', '-(sf|)'], { s: text('slow') });
      const quick = model(['--(qf|)', '---(qf|)'], { q: text('quick') });
      const reply$ = cold('(ab|)').pipe(
        race(
          createAgent({ model: slow }).asOperator({ scheduler }),
          createAgent({ model: quick }).asOperator({ scheduler }),
        ),
        map(textOf),
      );
      expectObservable(reply$).toBe('--q(s|)', { q: 'quick', s: 'slow' });
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^-!');
      expectSubscriptions(quick.subscriptions[0] ?? []).toBe('^-!');
      expectSubscriptions(slow.subscriptions[1] ?? []).toBe('--^!');
      expectSubscriptions(quick.subscriptions[1] ?? []).toBe('--^!');
    });
  });

  it('G5, S3: a subscriber that gets the reply finds the sessions of the others free', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const session = sessions(createAgent({ model: model(['-----', '--(tf|)']) })).open('s');
      const next$ = of('?').pipe(
        race(
          session.asOperator({ scheduler }),
          createAgent({ model: model('-(tf|)') }).asOperator({ scheduler }),
        ),
        mergeMap((reply) => session.call$(reply, { scheduler })),
        map(textOf),
      );
      expectObservable(next$).toBe('---(t|)');
    });
  });

  it('G5: a step that fails or says nothing is out of the race', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const failing = model('-#');
      const slow = model('---(tf|)');
      const reply$ = of('?').pipe(
        race(
          silent,
          createAgent({ model: failing }).asOperator({ scheduler }),
          createAgent({ model: slow }).asOperator({ scheduler }),
        ),
        map(() => 'r'),
      );
      expectObservable(reply$).toBe('---(r|)');
      expectSubscriptions(failing.subscriptions[0] ?? []).toBe('^!');
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('G5: where all fail, the first error is the error of the whole', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const late = createAgent({ model: { ...model('----#'), name: 'late' } });
      const early = createAgent({ model: { ...model('-#'), name: 'early' } });
      const reply$ = of('?').pipe(
        race(late.asOperator({ scheduler }), early.asOperator({ scheduler })),
      );
      expectObservable(reply$).toBe(
        '----#',
        {},
        new MillraceError('unknown', "The model 'early' failed: error", { cause: 'error' }),
      );
      const silent$ = of('?').pipe(race(silent));
      expectObservable(silent$).toBe(
        '#',
        {},
        new MillraceError('emptyAnswer', 'No step of race() emitted a reply.'),
      );
    });
  });

  it('G5, I5: leaving ends all in the same tick, also those that are out', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const [failing, running] = [model('-#'), model('-----')];
      const reply$ = of('?').pipe(
        race(
          createAgent({ model: failing }).asOperator({ scheduler }),
          createAgent({ model: running }).asOperator({ scheduler }),
        ),
      );
      expectObservable(reply$, '^--!').toBe('----');
      expectSubscriptions(failing.subscriptions[0] ?? []).toBe('^!');
      expectSubscriptions(running.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('G5: one that answers immediately keeps those after it from beginning', async () => {
    const model = scriptedModel([text('late')]);
    const quick = createAgent({ model: scriptedModel([text('quick')]) });
    const reply = await lastValueFrom(of('?').pipe(race(quick, createAgent({ model }))));
    expect(textOf(reply)).toBe('quick');
    expect(model.requests).toEqual([]);
  });

  it('G5: only the first reply of a step counts, and the step is left with it', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const many$ = cold('-a-b-', { a: 'first', b: 'second' });
      const step = mergeMap((_input: Input) => many$);
      expectObservable(of('?').pipe(race(step))).toBe('-(a|)', { a: 'first' });
      expectSubscriptions(many$.subscriptions).toBe('^!');
    });
  });

  it('refuses no steps', () => {
    expect(() => race(...([] as never))).toThrow('race() needs at least one step.');
  });
});
