import { describe, expect, it, jest } from '@jest/globals';
import { EMPTY, lastValueFrom, map, of } from 'rxjs';
import { createAgent, MillraceError, textOf } from '../index.js';
import { marbles, scriptedModel, text } from '../testing/index.js';
import { parallel, route, sequential } from './compose.js';

const agentOf = (...says: readonly string[]) =>
  createAgent({ model: scriptedModel(...says.map((it) => [text(it)])) });

const none = new MillraceError('invalidRequest', 'route() chose no step for the input.');

describe('route', () => {
  it('G5: runs each input through the step that is chosen for it', async () => {
    const [sales, support] = [agentOf('Buy.'), agentOf('Help.', 'More help.')];
    const said: string[] = [];
    await lastValueFrom(
      of('broken', 'buy', 'broken again').pipe(
        route((input) => (input === 'buy' ? sales : support)),
        map((reply) => said.push(textOf(reply))),
      ),
    );
    expect(said).toEqual(['Help.', 'Buy.', 'More help.']);
  });

  it('G5: waits for an Observable or a Promise of a step', async () => {
    const writer = agentOf('One.', 'Two.');
    const later$ = of('?').pipe(route(() => of(writer)));
    expect(textOf(await lastValueFrom(later$))).toBe('One.');
    const promised$ = of('?').pipe(route(() => Promise.resolve(writer)));
    expect(textOf(await lastValueFrom(promised$))).toBe('Two.');
  });

  it('G5: takes the first step that an Observable emits, and leaves it', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const answering = model('--(tf|)');
      const step = createAgent({ model: answering }).asOperator({ scheduler });
      const choice$ = cold('-s-s-', { s: step });
      expectObservable(
        of('?').pipe(
          route(() => choice$),
          map(() => 'r'),
        ),
      ).toBe('---(r|)');
      expectSubscriptions(choice$.subscriptions).toBe('^!');
      expectSubscriptions(answering.subscriptions[0] ?? []).toBe('-^-!');
    });
  });

  it('G5, I5: leaving ends the choice or the step in the same tick', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const answering = model('------');
      const step = createAgent({ model: answering }).asOperator({ scheduler });
      const choice$ = cold('---s', { s: step });
      const reply$ = of('?').pipe(route(() => choice$));
      expectObservable(reply$, '^-!').toBe('---');
      expectObservable(reply$, '^----!').toBe('------');
      expectSubscriptions(choice$.subscriptions).toBe(['^-!', '^--!']);
      expectSubscriptions(answering.subscriptions[0] ?? []).toBe('---^-!');
    });
  });

  it('G5: an input without a step is an error that names it', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(of('?').pipe(route(() => undefined))).toBe('#', {}, none);
      expectObservable(of('?').pipe(route(() => EMPTY))).toBe('#', {}, none);
      const told$ = cold('--u|', { u: undefined });
      expectObservable(of('?').pipe(route(() => told$))).toBe('--#', {}, none);
      expectObservable(of('?').pipe(route(() => cold('-#')))).toBe('-#');
      const throwing$ = of('?').pipe(
        route(() => {
          throw none;
        }),
      );
      expectObservable(throwing$).toBe('#', {}, none);
    });
  });

  it('G5: the next input waits, and is chosen for only then', () => {
    marbles(({ model, cold, scheduler, expectObservable }) => {
      const agent = createAgent({ model: model(['---(tf|)', '--(tf|)']) });
      const choose = jest.fn(() => agent.asOperator({ scheduler }));
      expectObservable(
        cold('(ab|)').pipe(
          route(choose),
          map(() => 'r'),
        ),
      ).toBe('---r-(r|)');
      expectObservable(cold('--x').pipe(map(() => choose.mock.calls.length))).toBe('--1', { 1: 1 });
    });
  });

  it('G5: nests with the other compositions', async () => {
    const [one, two, three] = [agentOf('1'), agentOf('2'), agentOf('3')];
    const reply$ = of('?').pipe(
      parallel(
        sequential(
          one,
          route((input) => (typeof input === 'string' ? three : two)),
        ),
        three,
      ),
      map((replies) => replies.map(textOf)),
    );
    expect(await lastValueFrom(reply$)).toEqual(['2', '3']);
  });

  it('refuses what chooses nothing', async () => {
    expect(() => route(agentOf() as never)).toThrow(
      'route() needs a function that chooses a step for an input.',
    );
    await expect(lastValueFrom(of('?').pipe(route(() => 'sales' as never)))).rejects.toMatchObject({
      code: 'config',
      message: 'route(): the function returned something that is not a step.',
    });
  });
});
