import { describe, expect, it } from '@jest/globals';
import { filter, lastValueFrom, map, mergeMap, of, toArray } from 'rxjs';
import { createAgent, type Input, suspend, textOf, tool } from '../index.js';
import { finish, marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import { sequential } from './compose.js';

describe('sequential', () => {
  it('G5: gives each step the reply of the one before, with its name', async () => {
    const model = scriptedModel([text('A story.')]);
    const researcher = createAgent({ name: 'researcher', model: scriptedModel([text('Facts.')]) });
    const writer = createAgent({ name: 'writer', model });
    const reply = await lastValueFrom(of('Mills?').pipe(sequential(researcher, writer)));
    expect(textOf(reply)).toBe('A story.');
    expect(model.requests[0]?.messages).toMatchObject([
      { role: 'user', name: 'researcher', content: [text('Facts.')] },
    ]);
  });

  it('G5: takes inputs one after another, through all steps', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const [one, two] = [model(['--(tf|)', '--(tf|)']), model(['---(tf|)', '---(tf|)'])];
      const steps = [one, two].map((it) => createAgent({ model: it }).asOperator({ scheduler }));
      const [first = map(String), second = map(String)] = steps;
      const input$ = cold('(ab|)');
      expectObservable(
        input$.pipe(
          sequential(first, second),
          map(() => 'r'),
        ),
      ).toBe('-----r----(r|)');
      expectSubscriptions(one.subscriptions[0] ?? []).toBe('^-!');
      expectSubscriptions(two.subscriptions[0] ?? []).toBe('--^--!');
      expectSubscriptions(one.subscriptions[1] ?? []).toBe('-----^-!');
      expectSubscriptions(two.subscriptions[1] ?? []).toBe('-------^--!');
    });
  });

  it('G5, I5: leaving ends the step that runs in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const [one, two] = [model('--(tf|)'), model('-------')];
      const reply$ = of('?').pipe(
        sequential(
          createAgent({ model: one }).asOperator({ scheduler }),
          createAgent({ model: two }).asOperator({ scheduler }),
        ),
      );
      expectObservable(reply$, '^---!').toBe('-----');
      expectSubscriptions(one.subscriptions[0] ?? []).toBe('^-!');
      expectSubscriptions(two.subscriptions[0] ?? []).toBe('--^-!');
    });
  });

  it('G5: takes any operator for a step, also one that drops or multiplies', async () => {
    const twice = mergeMap((input: Input) => of(input, input));
    const withoutA = filter((input: Input) => input !== 'a');
    const input$ = of('a', 'b').pipe(sequential(withoutA, twice), toArray());
    expect(await lastValueFrom(input$)).toEqual(['b', 'b']);
  });

  it('G5: a step takes what the one before gives one after another', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const answering = model(['--(tf|)', '--(tf|)']);
      const twice = mergeMap((input: Input) => of(input, input));
      const reply$ = of('?').pipe(
        sequential(twice, createAgent({ model: answering }).asOperator({ scheduler })),
        map(() => 'r'),
      );
      expectObservable(reply$).toBe('--r-(r|)');
      expectSubscriptions(answering.subscriptions[1] ?? []).toBe('--^-!');
    });
  });

  it('G5: an error of a step is an error of the whole, and later steps never begin', async () => {
    const model = scriptedModel([text('t')]);
    const failing = createAgent({ model: scriptedModel() });
    const whole$ = of('?').pipe(sequential(failing, createAgent({ model })));
    await expect(lastValueFrom(whole$)).rejects.toThrow('The script has 0 answers');
    expect(model.requests).toEqual([]);
  });

  it('G5: each subscription runs by itself', async () => {
    const model = scriptedModel([text('One.')], [text('Two.')]);
    const reply$ = of('?').pipe(sequential(createAgent({ model })), map(textOf));
    expect(await lastValueFrom(reply$)).toBe('One.');
    expect(await lastValueFrom(reply$)).toBe('Two.');
  });

  it('refuses an empty list of steps, and what is not a step', () => {
    expect(() => sequential(...([] as never))).toThrow('sequential() needs at least one step.');
    expect(() => sequential(map(String), {} as never)).toThrow(
      'sequential(): the step at position 2 is not a step. Pass agents, sessions, or operators such as agent.asOperator().',
    );
  });

  it('G5: an agent that waits for a result, or would not answer, is an error that names it', async () => {
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => suspend('?') });
    const waiting = createAgent({
      name: 'w',
      model: scriptedModel([toolCall('wait')], [toolCall('wait')]),
      tools: [wait],
    });
    const refusing = createAgent({ name: 'r', model: scriptedModel([finish('refusal')]) });
    const next = createAgent({ model: scriptedModel([text('No.')]) });
    await expect(lastValueFrom(of('?').pipe(sequential(waiting, next)))).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining("The agent 'w' waits for a tool result"),
    });
    await expect(lastValueFrom(of('?').pipe(sequential(refusing, next)))).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining("'r'"),
    });
    expect((await lastValueFrom(of('?').pipe(sequential(waiting)))).reason).toBe('suspended');
  });
});
