import { describe, expect, it } from '@jest/globals';
import { EMPTY, lastValueFrom, map, NEVER, of, throwError, toArray } from 'rxjs';
import {
  createAgent,
  interruptOn,
  type Message,
  MillraceError,
  type Model,
  sequential,
  text as textIn,
  textOf,
} from '../../index.js';
import {
  finish,
  marbles,
  record,
  type ScriptedModel,
  scriptedModel,
  text,
} from '../../testing/index.js';
import { noUsage } from '../../values/usage.js';
import { asAgent, routeBy } from './index.js';
import { sessions } from '../sessions/index.js';

const script = (...says: readonly string[]) => scriptedModel(...says.map((it) => [text(it)]));
const saying = (name: string, ...says: readonly string[]) =>
  createAgent({ name, model: script(...says) });
const choosing = (...names: readonly string[]) =>
  script(...names.map((route) => JSON.stringify({ route })));

const desks = () => ({
  sales: { step: saying('sales', 'Buy.', 'Buy more.'), when: 'Somebody wants to buy.' },
  support: { step: saying('support', 'Help.'), when: 'Something is broken.' },
});
const heard = ({ requests }: ScriptedModel, index: number) =>
  (requests[index]?.messages ?? []).map((it: Message) => `${it.role}: ${textOf(it)}`);

describe('routeBy', () => {
  it('G5: the model is shown names and descriptions, and the step that it names is run', async () => {
    const model = choosing('support', 'sales');
    const texts$ = of('broken', 'buy').pipe(routeBy(model, desks()), map(textOf), toArray());
    expect(await lastValueFrom(texts$)).toEqual(['Help.', 'Buy.']);
    expect(model.requests[0]).toMatchObject({
      system:
        'Choose who should handle the request. Do not handle it yourself: only state which of these fits best.\n\n' +
        '- sales: Somebody wants to buy.\n' +
        '- support: Something is broken.\n' +
        '- otherwise: None of these fits.',
      outputSchema: { properties: { route: { enum: ['sales', 'support', 'otherwise'] } } },
    });
    expect(heard(model, 1)).toEqual(['user: buy']);
  });

  it('G5: the step gets what the model was asked, as it is', async () => {
    const sales = script('Buy.');
    const routes = { sales: { step: createAgent({ model: sales }), when: 'always' } };
    await lastValueFrom(of('buy').pipe(routeBy(choosing('sales'), routes)));
    expect(heard(sales, 0)).toEqual(['user: buy']);
  });

  it('R3: a choice that there is not goes back to the model', async () => {
    const model = choosing('nobody', 'sales');
    const reply = await lastValueFrom(of('?').pipe(routeBy(model, desks())));
    expect(textOf(reply)).toBe('Buy.');
    expect(heard(model, 1).at(-1)).toContain('route');
    expect(model.requests).toHaveLength(2);
  });

  it.each<readonly [string, () => Model]>([
    ['that says so', () => choosing('otherwise')],
    ['that names nobody, three times', () => choosing('x', '__proto__', 'constructor')],
    ['that refuses', () => scriptedModel([text('No.'), finish('refusal')])],
    ['that says nothing', () => scriptedModel([], [], [])],
    ['that is cut', () => scriptedModel([text('{"ro'), finish('length')])],
  ])('G5: a model %s leaves the input to otherwise', async (_what, modelOf) => {
    const otherwise = saying('desk', 'Please wait.');
    const routed$ = of('?').pipe(routeBy(modelOf(), desks(), { otherwise }));
    expect(textOf(await lastValueFrom(routed$))).toBe('Please wait.');
    const none$ = of('?').pipe(routeBy(modelOf(), desks()));
    await expect(lastValueFrom(none$)).rejects.toMatchObject({
      code: 'invalidRequest',
      message:
        "routeBy(): the model chose none of the routes sales, support. Set 'otherwise' for input that matches no route.",
    });
  });

  it('G5: any other error of the model is an error of the whole', async () => {
    const model = scriptedModel(
      throwError(() => new MillraceError('auth', 'no key')),
      EMPTY,
    );
    const routed$ = of('?').pipe(routeBy(model, desks(), { otherwise: saying('desk', 'x') }));
    await expect(lastValueFrom(routed$)).rejects.toMatchObject({ code: 'auth' });
  });

  it('G5: names are data, and so is what they are like', async () => {
    const routes = JSON.parse('{"__proto__":{},"constructor":{},"7":{}}') as Record<string, object>;
    for (const [name] of Object.entries(routes)) {
      Object.defineProperty(routes, name, {
        value: { step: saying(name, `I am ${name}.`), when: name },
      });
    }
    const model = choosing('__proto__', 'constructor', '7');
    const texts$ = of('a', 'b', 'c').pipe(routeBy(model, routes as never), map(textOf), toArray());
    expect(await lastValueFrom(texts$)).toEqual([
      'I am __proto__.',
      'I am constructor.',
      'I am 7.',
    ]);
  });

  it('H1: the choice is a call below the one above, and the step that was chosen speaks', async () => {
    const model = choosing('sales');
    const team = asAgent(routeBy(model, desks()), { name: 'team' });
    const events = await record(team.stream$('buy'));
    const begun = events.filter(({ type }) => type === 'preCall');
    expect(begun.map(({ agent }) => agent.join('/'))).toEqual([
      'team',
      'team/router',
      'team/sales',
    ]);
    expect(await lastValueFrom(of(...events).pipe(textIn(), toArray()))).toEqual(['Buy.']);
    expect(new Set(events.map(({ rootId }) => rootId)).size).toBe(1);
  });

  it('R4: what the choice has cost, its corrections too, is a part of the reply', async () => {
    const costs = { type: 'usage', usage: { ...noUsage, inputTokens: 10 } } as const;
    const model = scriptedModel(
      [text('{"route":"nobody"}'), costs],
      [text('{"route":"sales"}'), costs],
    );
    const step = createAgent({ name: 'sales', model: scriptedModel([text('Buy.'), costs]) });
    const team = asAgent(routeBy(model, { sales: { step, when: 'always' } }));
    expect((await team.call('?')).usage.inputTokens).toBe(30);
  });

  it('G5: in a session, the model sees what was said before', async () => {
    const model = choosing('sales', 'sales');
    const session = sessions(
      asAgent(routeBy(model, desks(), { name: 'clerk' }), { name: 'team' }),
    ).open('s');
    await session.call('buy');
    const reply = await session.call('one more');
    expect(textOf(reply)).toBe('Buy more.');
    expect(heard(model, 1)).toEqual(['user: buy', 'user: Buy.', 'user: one more']);
  });

  it('G5: its words can be replaced', async () => {
    const model = choosing('sales');
    const routed = routeBy(model, desks(), { instructions: 'Pick a desk.' });
    await lastValueFrom(of('?').pipe(routed));
    expect(model.requests[0]?.system).toMatch(/^Pick a desk\.\n\n- sales: /);
  });

  it('G5, I5: leaving it ends the choice or the step in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const choice = model(['--(cf|)', '--(cf|)'], {
        c: text('{"route":"a"}'),
        f: finish(),
      });
      const answering = model(['-----', '-----']);
      const routes = { a: { step: createAgent({ model: answering }), when: 'always' } };
      const reply$ = asAgent(sequential(routeBy(choice, routes))).call$('?', { scheduler });
      expectObservable(reply$, '^!').toBe('--');
      expectObservable(reply$, '^---!').toBe('-----');
      expectSubscriptions(choice.subscriptions[0] ?? []).toBe('^!');
      expectSubscriptions(choice.subscriptions[1] ?? []).toBe('^-!');
      expectSubscriptions(answering.subscriptions[0] ?? []).toBe('--^-!');
    });
  });

  it('S1: an interrupt of the choice runs no step, not even otherwise', () => {
    marbles(({ model, cold, scheduler, expectObservable }) => {
      const sales = script('x');
      const step = createAgent({ model: sales });
      const routed = routeBy(model('-----'), { a: { step, when: 'x' } }, { otherwise: step });
      const reply$ = asAgent(routed)
        .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 0 }))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(reply$).toBe('--(r|)', { r: 'interrupted' });
      scheduler.schedule(() => expect(sales.requests).toEqual([]), 5);
    });
  });

  it('refuses what is no route', () => {
    const model = choosing();
    const { step } = desks().sales;
    const wrong =
      (routes: unknown, options: unknown = {}) =>
      () =>
        routeBy(model, routes as never, options as never);
    expect(wrong(undefined)).toThrow('routeBy() needs routes by name');
    expect(wrong({})).toThrow('routeBy() needs routes by name');
    expect(wrong({ a: step })).toThrow("routeBy(): the route 'a' must be { step, when }");
    expect(wrong({ a: { step } })).toThrow('a string that describes when to choose it');
    expect(wrong({ a: { step, when: ' ' } })).toThrow('a string that describes when to choose it');
    expect(wrong({ otherwise: { step, when: 'x' } })).toThrow(
      "routeBy(): no route can be named 'otherwise'. Pass that step as the option 'otherwise'.",
    );
    const routes = { a: { step, when: 'x' } };
    expect(wrong(routes, { otherwise: 'x' })).toThrow("'otherwise' must be an agent");
    expect(wrong(routes, { fallback: step })).toThrow("has no option 'fallback'");
    expect(() => routeBy({} as never, routes)).toThrow('routeBy() needs a model, such as');
  });

  it('S1: an interrupt of the model that chooses is no error', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const never: Model = { name: 'm', stream$: () => NEVER };
      const agent = asAgent(routeBy(never, desks()), { name: 'desk' });
      const reply$ = agent
        .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 'Stop' }))] })
        .pipe(map((reply) => `${reply.reason}: ${textOf(reply)}`));
      expectObservable(reply$).toBe('--(r|)', { r: 'interrupted: Stop' });
    });
  });
});
