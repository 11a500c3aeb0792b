import { describe, expect, it } from '@jest/globals';
import { filter, lastValueFrom, map, materialize, mergeMap, of, toArray } from 'rxjs';
import { createAgent, MillraceError, textOf } from '../index.js';
import { marbles, scriptedModel, text } from '../testing/index.js';
import { parallel, sequential } from './compose.js';
import { sessions } from '../layers/sessions/index.js';

const agentOf = (name: string, ...says: readonly string[]) =>
  createAgent({ name, model: scriptedModel(...says.map((it) => [text(it)])) });

const broken = new MillraceError('unknown', "The model 'scripted' failed: error", {
  cause: 'error',
});

describe('parallel', () => {
  it('G5: gives all the same input, and emits their replies in the order of the steps', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model('-----(sf|)', { s: text('slow') });
      const quick = model('--(qf|)', { q: text('quick') });
      const reply$ = of('?').pipe(
        parallel(
          createAgent({ model: slow }).asOperator({ scheduler }),
          createAgent({ model: quick }).asOperator({ scheduler }),
        ),
        map((replies) => replies.map(textOf).join()),
      );
      expectObservable(reply$).toBe('-----(r|)', { r: 'slow,quick' });
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^----!');
      expectSubscriptions(quick.subscriptions[0] ?? []).toBe('^-!');
    });
  });

  it('G5, I5: an error of one leaves the others in the same tick, before it is emitted', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const failing = model('---#');
      const slow = model(['--------(tf|)', '--(tf|)']);
      const session = sessions(createAgent({ model: slow })).open('s');
      const whole$ = of('?').pipe(
        parallel(
          session.asOperator({ scheduler }),
          createAgent({ model: failing }).asOperator({ scheduler }),
        ),
      );
      expectObservable(whole$).toBe('---#', {}, broken);
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^--!');
      expectSubscriptions(failing.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('G5, S3: a subscriber that gets the error finds the sessions of the others free', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const session = sessions(createAgent({ model: model(['-----', '--(tf|)']) })).open('s');
      const next$ = of('?').pipe(
        parallel(
          session.asOperator({ scheduler }),
          createAgent({ model: model('---#') }).asOperator({ scheduler }),
        ),
        materialize(),
        mergeMap(({ kind }) => session.call$(kind, { scheduler })),
        map(textOf),
      );
      expectObservable(next$).toBe('-----(t|)');
    });
  });

  it('G5: one that fails immediately keeps those after it from beginning', async () => {
    const model = scriptedModel([text('t')]);
    const late = createAgent({ model });
    const heard: string[] = [];
    late.events$.subscribe(({ type }) => heard.push(type));
    const whole$ = of('?').pipe(parallel(agentOf('none'), late));
    await expect(lastValueFrom(whole$)).rejects.toThrow('The script has 0 answers');
    expect(model.requests).toEqual([]);
    expect(heard).toEqual([]);
  });

  it('G5, I5: leaving ends all in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const models = [model('-----'), model('-----')] as const;
      const [one, other] = models.map((it) => createAgent({ model: it }).asOperator({ scheduler }));
      const reply$ = of('?').pipe(parallel(one ?? map(String), other ?? map(String)));
      expectObservable(reply$, '^--!').toBe('----');
      for (const { subscriptions } of models) {
        expectSubscriptions(subscriptions[0] ?? []).toBe('^--!');
      }
    });
  });

  it('G5: the next input waits for the replies of all', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const one = model(['--(tf|)', '--(tf|)']);
      const other = model(['----(tf|)', '(tf|)']);
      const reply$ = cold('(ab|)').pipe(
        parallel(
          createAgent({ model: one }).asOperator({ scheduler }),
          createAgent({ model: other }).asOperator({ scheduler }),
        ),
        map(() => 'r'),
      );
      expectObservable(reply$).toBe('----r-(r|)');
      expectSubscriptions(one.subscriptions[1] ?? []).toBe('----^-!');
      expectSubscriptions(other.subscriptions[1] ?? []).toBe('----(^!)');
    });
  });

  it('G5: its replies go into another agent together, by their names', async () => {
    const model = scriptedModel([text('Both are right.')]);
    const judge = createAgent({ name: 'judge', model });
    const verdict$ = of('Mills?').pipe(
      sequential(parallel(agentOf('optimist', 'Yes.'), agentOf('sceptic', 'No.')), judge),
    );
    expect(textOf(await lastValueFrom(verdict$))).toBe('Both are right.');
    expect(model.requests[0]?.messages).toMatchObject([
      { role: 'user', name: 'optimist', content: [text('Yes.')] },
      { role: 'user', name: 'sceptic', content: [text('No.')] },
    ]);
  });

  it('G5: a step without a reply leaves its input without one, as forkJoin does', async () => {
    const reply$ = of('a', 'b').pipe(
      parallel(
        map(String),
        filter((input) => input === 'b'),
      ),
      toArray(),
    );
    expect(await lastValueFrom(reply$)).toEqual([['b', 'b']]);
  });

  it('refuses no steps', () => {
    expect(() => parallel(...([] as never))).toThrow('parallel() needs at least one step.');
  });
});
