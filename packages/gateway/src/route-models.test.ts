import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type AgentEvent,
  aroundModel,
  createAgent,
  interruptOn,
  isMillraceError,
  type Layer,
  MillraceError,
  type Model,
  type ModelChunk,
  only,
  textOf,
  tool,
} from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import {
  finish,
  marbles,
  type ScriptedAnswer,
  type ScriptedModel,
  scriptedModel,
  text,
  toolCall,
} from 'millrace/testing';
import { budget } from 'millrace/traffic';
import { catchError, map, of, throwError } from 'rxjs';
import {
  byCost,
  byLength,
  canary,
  circuitBreaker,
  type Route,
  routeModels,
  type RouteRequest,
} from './index.js';

const named = (name: string, ...answers: readonly ScriptedAnswer[]): ScriptedModel => ({
  ...scriptedModel(...answers),
  name,
});
const used = (outputTokens: number): ModelChunk => ({ type: 'usage', usage: { outputTokens } });
const look = tool({
  name: 'look',
  description: 'Looks.',
  input: jsonSchema({ type: 'object' }),
  run: () => 'seen',
});
const down$ = throwError(() => new MillraceError('auth', 'No key.'));

/** Collects what a layer chose. */
const choices = (events: AgentEvent[]) => (event: AgentEvent) => void events.push(event);

describe('C14: routeModels', () => {
  it('chooses once per call, and a budget charges the chosen model under its own name', async () => {
    const own = named('own');
    const large = named('large', [toolCall('look'), used(10)], [text('Large.'), used(10)]);
    const spent = budget({ money: 1, prices: { large: { input: 0, output: 100 } } });
    const asked: RouteRequest[] = [];
    const router = routeModels({
      models: { large },
      by: (request) => {
        asked.push(request);
        return 'large';
      },
    });
    const events: AgentEvent[] = [];
    const agent = createAgent({ model: own, tools: [look], use: [spent, router] });
    agent.events$.pipe(only('modelChosen')).subscribe(choices(events));
    expect(textOf(await agent.call('?'))).toBe('Large.');
    expect(asked.length).toBe(1);
    expect(asked[0]).toMatchObject({ options: { tools: [{ name: 'look' }] } });
    expect(events).toMatchObject([
      { by: 'routeModels', model: 'large', why: 'policy', iteration: 1 },
    ]);
    expect(spent.spent.money).toBeCloseTo(0.002);
    large.verify();
  });

  it('chooses before each request if it is asked to', async () => {
    const a = named('a', [toolCall('look')]);
    const b = named('b', [text('B.')]);
    const router = routeModels({
      models: { a, b },
      by: ({ messages }) => (messages.length > 1 ? 'b' : 'a'),
      eachTurn: true,
    });
    const agent = createAgent({ model: named('own'), tools: [look], use: [router] });
    expect(textOf(await agent.call('?'))).toBe('B.');
    a.verify();
  });

  it('waits for a policy that asks someone, and an interrupt or the end of the call ends it', () => {
    marbles(({ cold, model, scheduler, expectObservable, expectSubscriptions }) => {
      const thought$ = cold<Route>('---(a|)', { a: { model: 'a', why: 'hard' } });
      const a = model('--(tf|)');
      const use = [routeModels({ models: { a }, by: () => thought$ })];
      const agent = createAgent({ model: named('own'), use });
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('-----(t|)');
      expectObservable(agent.call$('?', { scheduler }), '-^-!').toBe('-');
      const interrupted$ = agent
        .with(interruptOn(cold('--x')))
        .call$('?', { scheduler })
        .pipe(map(({ reason }) => reason));
      expectObservable(interrupted$).toBe('--(i|)', { i: 'interrupted' });
      expectSubscriptions(thought$.subscriptions).toBe(['^--!', '^-!', '-^-!']);
      expectSubscriptions(a.subscriptions[0] ?? []).toBe('---^-!');
    });
  });

  it('uses the model of the agent if the policy has none, or fails', async () => {
    const warnings: string[] = [];
    const policies = [
      () => undefined,
      () => Promise.resolve(undefined),
      () => of<Route>(),
      () => 'typo',
      () => throwError(() => new Error('No idea.')),
      () => Promise.reject(new Error('No time.')),
    ];
    for (const by of policies) {
      const use = [routeModels({ models: { a: named('a') }, by })];
      const agent = createAgent({ model: named('own', [text('Own.')]), use });
      agent.events$.pipe(only('warning')).subscribe(({ message }) => warnings.push(message));
      expect(textOf(await agent.call('?'))).toBe('Own.');
    }
    expect(warnings).toEqual([
      "routeModels(): the policy failed, so the agent's own model is asked: it chose 'typo', which is not one of a",
      "routeModels(): the policy failed, so the agent's own model is asked: No idea.",
      "routeModels(): the policy failed, so the agent's own model is asked: No time.",
    ]);
  });

  it('keeps its choice in a resumed call, and neither chooses nor asks again for what is recorded', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    let chosen = 0;
    const routed = (a: Model, b: Model) =>
      createAgent({
        model: named('own'),
        tools: [look],
        use: [
          durable,
          routeModels({
            models: { a, b },
            by: () => {
              chosen += 1;
              return chosen === 1 ? 'a' : 'b';
            },
          }),
        ],
      });
    const broken = named('a', [toolCall('look'), used(7)], down$);
    await expect(routed(broken, named('b')).call('?', { callId: 'c' })).rejects.toThrow('No key.');
    const a = named('a', [text('Still A.'), used(1)]);
    // The recorded message cost 7, by the price of the chosen model: nothing is left for another turn.
    const spent = budget({ money: 5, prices: { a: { input: 0, output: 1e6 } } });
    const reply = await durable.resume(routed(a, named('b')).with(spent), 'c');
    expect([reply.reason, chosen, a.requests.length]).toEqual(['budget', 1, 1]);
  });

  it('resumes with the model of the agent if the chosen one no longer exists', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const routed = (key: string, model: Model, own: Model) =>
      createAgent({
        model: own,
        tools: [look],
        use: [durable, routeModels({ models: { [key]: model }, by: () => key })],
      });
    const dying = named('a', [toolCall('look')], down$);
    const call = routed('constructor', dying, named('own')).call('?', { callId: 'c' });
    await expect(call).rejects.toThrow('No key.');
    const agent = routed('other', named('b'), named('own', [text('Own.')]));
    expect(textOf(await durable.resume(agent, 'c'))).toBe('Own.');
  });

  it('leaves out a model whose circuit is open', async () => {
    const breaker = circuitBreaker({ minRequests: 1 });
    const main = named(
      'main',
      down$,
      throwError(() => new MillraceError('server', 'Down.')),
    );
    const spare = named('spare', [text('Spare.')]);
    const router = routeModels({
      models: { main: breaker(main), spare: breaker(spare) },
      by: ({ models }) => Object.keys(models)[0],
      breaker,
    });
    const agent = createAgent({ model: named('own'), use: [router] });
    await expect(agent.call('?')).rejects.toThrow('No key.');
    await expect(agent.call('?')).rejects.toThrow('Down.');
    expect(textOf(await agent.call('?'))).toBe('Spare.');
  });

  it('asks another model if the policy chooses one whose circuit is open', async () => {
    const breaker = circuitBreaker({ minRequests: 1 });
    const main = named(
      'main',
      throwError(() => new MillraceError('server', 'Down.')),
    );
    const spare = named('spare', [text('Spare.')]);
    const router = routeModels({
      models: { main: breaker(main), spare: breaker(spare) },
      by: () => 'main',
      breaker,
    });
    const agent = createAgent({ model: named('own'), use: [router] });
    await expect(agent.call('?')).rejects.toThrow('Down.');
    const events: AgentEvent[] = [];
    agent.events$.pipe(only('modelChosen')).subscribe(choices(events));
    expect(textOf(await agent.call('?'))).toBe('Spare.');
    expect(events).toMatchObject([{ model: 'spare', why: "the circuit of 'main' is open" }]);
  });

  it('takes a Promise of a route', async () => {
    const a = named('a', [text('A.')]);
    const use = [routeModels({ models: { a }, by: () => Promise.resolve('a') })];
    expect(textOf(await createAgent({ model: named('own'), use }).call('?'))).toBe('A.');
  });

  it('byLength: the smallest model that can read it; byCost: the cheapest that can do it', async () => {
    const request = (tokens: number, names: readonly string[], tools = 0): RouteRequest => ({
      call: { rootId: 'r', callId: 'c', agent: ['a'], metadata: {} },
      messages: [],
      options: tools === 0 ? {} : { tools: [] },
      tokens,
      models: Object.fromEntries(
        names.map((name) => [
          name,
          { ...named(name), ...(name === 'cheap' && { unsupported: ['tools' as const] }) },
        ]),
      ),
    });
    const length = byLength({ large: 1_000, small: 100 });
    const keyOf = (route: unknown): unknown => (Object(route) as { model?: string }).model;
    expect(keyOf(length(request(100, ['large', 'small'])))).toBe('small');
    expect(keyOf(length(request(101, ['large', 'small'])))).toBe('large');
    expect(keyOf(length(request(5_000, ['large', 'small'])))).toBe('large');
    expect(keyOf(length(request(5, ['large'])))).toBe('large');
    const cost = byCost({
      prices: { dear: { input: 5, output: 5 }, '*': { input: 1, output: 1 } },
      contextTokens: { cheap: 1_000 },
    });
    expect(keyOf(cost(request(400, ['dear', 'cheap'])))).toBe('cheap');
    expect(keyOf(cost(request(501, ['dear', 'cheap'])))).toBe('dear');
    expect(keyOf(cost(request(400, ['dear', 'cheap'], 1)))).toBe('dear');
    expect(cost(request(1, []))).toBeUndefined();
    expect(() => byLength({ small: -1 })).toThrow("'small' must be a number of at least 0");
    expect(() => routeModels({ models: {}, by: length })).toThrow("needs a model in 'models'");
    expect(() => routeModels({ models: { a: length as never }, by: length })).toThrow(
      "the model 'a' must be a model",
    );
    const agent = createAgent({
      model: named('own'),
      use: [
        routeModels({
          models: { small: named('small', [text('Few.')]), large: named('large') },
          by: length,
        }),
      ],
    });
    expect(textOf(await agent.call('?'))).toBe('Few.');
    expect(() =>
      routeModels({ models: { smal: named('small'), large: named('large') }, by: length }),
    ).toThrow(
      "byLength() has no option 'small'. Did you mean 'smal'? Its options are: smal, large.",
    );
  });
});

describe('C14, C15: a chosen model', () => {
  const small = () => named('small', [text('Small.')]);
  it.each([
    ['routeModels', () => routeModels({ models: { small: small() }, by: () => 'small' })],
    ['canary', () => canary({ model: small(), share: 1 })],
  ])('of %s answers within every layer that wraps the model', async (_name, choosing) => {
    for (const priority of [-1, 60, 989, 999, 1_001, 1_000_000, 1e12]) {
      const asked: string[] = [];
      const watching: Layer = {
        name: 'watching',
        priority,
        model: () => (next) =>
          aroundModel(next, (request, context) => {
            asked.push(next.name);
            return next.stream$(request, context);
          }),
      };
      for (const use of [
        [watching, choosing()],
        [choosing(), watching],
      ]) {
        const agent = createAgent({ model: named('own', [text('Own.')]), use });
        expect([priority, (await agent.call('?')).text]).toEqual([priority, 'Small.']);
      }
      expect(asked).toEqual(asked.map(() => expect.stringMatching(/^small/)));
      expect(asked).toHaveLength(2);
    }
  });
});

describe('C15: canary', () => {
  it('keeps each user with one model, also when the share grows, and hits the share (property)', async () => {
    const chosenBy = async (user: string, share: number, name = 'canary'): Promise<string> => {
      const candidate = named('candidate', [text('candidate')]);
      const agent = createAgent({
        model: named('stable', [text('stable')]),
        use: [canary({ model: candidate, share, name })],
      });
      return textOf(await agent.call('?', { metadata: { userId: user } }));
    };
    await fc.assert(
      fc.asyncProperty(
        fc.string(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (user, share) => {
          const first = await chosenBy(user, share);
          expect(await chosenBy(user, share)).toBe(first);
          if (first === 'candidate') {
            expect(await chosenBy(user, Math.min(1, share + 0.3))).toBe('candidate');
          }
          expect(await chosenBy(user, 1)).toBe('candidate');
          expect(await chosenBy(user, 0)).toBe('stable');
        },
      ),
      { numRuns: 8 },
    );
    const users = Array.from({ length: 160 }, (_, n) => `user-${n}`);
    const answers = await Promise.all(users.map((user) => chosenBy(user, 0.25)));
    const others = await Promise.all(users.map((user) => chosenBy(user, 0.25, 'other')));
    const count = answers.filter((it) => it === 'candidate').length;
    expect(count).toBeGreaterThan(25);
    expect(count).toBeLessThan(55);
    // Independent: about a sixteenth is in both.
    const both = answers.filter((it, n) => it === 'candidate' && others[n] === it).length;
    expect(both).toBeLessThan(24);
  });

  it('answers with the stable model if the candidate fails before it says something, and not after', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const error = new MillraceError('auth', 'No key.');
      const values = { t: text('t'), f: finish(), c: text('c') };
      const early$ = cold('--#', values, error);
      const late$ = cold('--c-#', values, error);
      const stable$ = cold('-(tf|)', values);
      const agentOf = (candidate$: typeof early$) =>
        createAgent({
          model: named('stable', stable$),
          use: [canary({ model: named('candidate', candidate$), share: 1 })],
        });
      const [early, late] = [agentOf(early$), agentOf(late$)];
      expectObservable(
        early.events$.pipe(
          only('modelFallback'),
          map(({ from, to, error: { message } }) => [from, to, message]),
        ),
      ).toBe('--f', { f: ['candidate', 'stable', 'No key.'] });
      expectObservable(early.call$('?', { scheduler }).pipe(map(textOf))).toBe('---(t|)');
      const failed$ = late.call$('?', { scheduler }).pipe(
        map(textOf),
        catchError((cause: unknown) =>
          of(isMillraceError(cause) ? `${cause.code} ${cause.partial} ${cause.retryable}` : ''),
        ),
      );
      expectObservable(failed$).toBe('----(x|)', { x: 'auth c false' });
      expectSubscriptions(early$.subscriptions).toBe('^-!');
      expectSubscriptions(stable$.subscriptions).toBe('--^!');
    });
  });

  it('stands around a router, whose model is then the stable one, in any order', async () => {
    const routed = named('routed', [text('Routed.')]);
    const layers = [
      canary({ model: named('candidate', down$), share: 1 }),
      routeModels({ models: { routed }, by: () => 'routed' }),
    ];
    const agent = createAgent({ model: named('own'), use: layers.toReversed() });
    const names: string[] = [];
    agent.events$.pipe(only('modelFallback')).subscribe(({ from, to }) => names.push(from, to));
    expect(textOf(await agent.call('?'))).toBe('Routed.');
    expect(names).toEqual(['candidate', 'routed']);
  });

  it('takes the place of an earlier one of its name', async () => {
    const [a, b] = ['A.', 'B.'].map((it) => named(it, [text(it)]));
    if (a === undefined || b === undefined) throw new Error('Two models.');
    const agent = createAgent({ model: named('own'), use: [canary({ model: a, share: 1 })] });
    expect(textOf(await agent.with(canary({ model: b, share: 1 })).call('?'))).toBe('B.');
  });

  it('is refused with an invalid share', () => {
    expect(() => canary({ model: named('a'), share: 5 })).toThrow(
      "canary(): 'share' must be a number from 0 to 1, not 5.",
    );
  });
});
