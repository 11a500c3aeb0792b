import { describe, expect, it } from '@jest/globals';
import {
  concatMap,
  defer,
  EMPTY,
  lastValueFrom,
  map,
  NEVER,
  of,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { guardInput } from '../layers/guards/index.js';
import { retrieve } from '../layers/retrieval/index.js';
import {
  createAgent,
  inProcessMemory,
  interruptOn,
  type Layer,
  type MemoryFactory,
  on,
  output,
  prepare,
  selectTools,
  textBlock,
  textOf,
  tool,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import {
  finish,
  marbles,
  record,
  scriptedModel,
  text,
  toolCall,
  verifyEvents,
} from '../testing/index.js';
import { answerWith, hideTools, recall } from './index.js';
import { sessions } from '../layers/sessions/index.js';

/** A layer that answers without the loop. */
const answering = (answer: string): Layer => ({
  name: 'cached',
  call: (context) => () => (call) => answerWith(context, call, answer),
});
/** A layer that never passes a call on. */
const hanging = (never = NEVER): Layer => ({ name: 'hanging', call: () => () => () => never });

describe('layers around a call', () => {
  it('C1, Y6: stand in one order, and each sees what those further out have made of the call', async () => {
    const seen: string[] = [];
    const spy = (name: string, priority?: number): Layer => ({
      name,
      ...(priority !== undefined && { priority }),
      call: () => (next) => (call) => {
        seen.push(`${name}: ${call.history.length} ${call.instructions}`);
        return next(call).pipe(tap(({ reason }) => seen.push(`${name}: ${reason}`)));
      },
    });
    const agent = createAgent({
      model: scriptedModel([text('1')], [text('2')]),
      instructions: 'Be kind.',
      use: [spy('own'), spy('inside', 101), spy('outside', 50), spy('second')],
    });
    const session = sessions(agent).open('s');
    await session.call('?');
    seen.length = 0;
    await lastValueFrom(session.stream$('?', { use: [spy('of the call')] }).pipe(verifyEvents()));
    expect(seen).toEqual([
      'outside: 0 undefined',
      'own: 2 Be kind.',
      'second: 2 Be kind.',
      'of the call: 2 Be kind.',
      'inside: 2 Be kind.',
      'inside: answer',
      'of the call: answer',
      'second: answer',
      'own: answer',
      'outside: answer',
    ]);
  });

  it('C1: guards come first, then what prepares, remembers, retrieves and selects, and memory last', async () => {
    const seen: string[] = [];
    const note = <T>(name: string, value: T): T => {
      seen.push(name);
      return value;
    };
    const kept = inProcessMemory();
    const memory: MemoryFactory = (id) => ({
      load$: () => defer(() => note('load', kept(id).load$())),
      append$: (added) => defer(() => note('save', kept(id).append$(added))),
    });
    const agent = createAgent({
      model: scriptedModel(() => note('model', of(text('Hello.'), finish()))),
      tools: [tool({ name: 'echo', description: 'Echoes.', run: () => 'ok' })],
      use: [
        selectTools({ select: () => note('select', ['echo']) }),
        retrieve({ retrieve$: () => note('retrieve', of([])) }),
        on(
          'postCall',
          tap(() => note('postCall', undefined)),
        ),
        prepare(map((call) => note('prepare', call))),
        guardInput(() => note('guard', of(true))),
      ],
    });
    await sessions(agent, { memory }).open('s').call('?');
    expect(seen).toEqual([
      ...['guard', 'prepare', 'load', 'retrieve', 'select'],
      ...['model', 'postCall', 'save'],
    ]);
  });

  it('C1: can change what is shown, and hide tools', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
    const changed: Layer = {
      name: 'changed',
      call:
        ({ info: { callId } }) =>
        (next) =>
        (call) =>
          next(
            hideTools(
              recall(
                { ...call, history: [] },
                {
                  id: `${callId}/recalled`,
                  role: 'user',
                  content: [textBlock('You like mills.')],
                },
              ),
              'look',
            ),
          ),
    };
    const model = scriptedModel([text('1')], [text('2')]);
    const memory = inProcessMemory();
    const session = sessions(createAgent({ model, tools: [look], use: [changed] }), {
      memory,
    }).open('s');
    await session.call('first');
    await session.call('second');
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['You like mills.', 'second']);
    expect(model.requests[1]?.tools ?? []).toEqual([]);
    expect((await lastValueFrom(memory('s').load$())).map(textOf)).toEqual([
      'first',
      '1',
      'second',
      '2',
    ]);
  });

  it('C1, Y6: a cached answer passes the guards of the reply, and is remembered', async () => {
    const memory = inProcessMemory();
    const agent = createAgent({
      model: scriptedModel(),
      use: [
        on(
          'postCall',
          map((event) => ({
            ...event,
            reply: { ...event.reply, content: [textBlock('As ever: ***.')] },
          })),
        ),
        answering('As ever: 42.'),
      ],
    });
    const events = await record(
      sessions(agent, { memory }).open('t').stream$('?').pipe(verifyEvents()),
    );
    expect(events.map(({ type }) => type)).toEqual(['preCall', 'messagesAppended', 'postCall']);
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'answer', iterations: 0 } });
    expect((await lastValueFrom(memory('t').load$())).map(textOf)).toEqual(['?', 'As ever: ***.']);
  });

  it('C1: a veto of a cached answer stops the call', async () => {
    const agent = createAgent({
      model: scriptedModel(),
      use: [
        on(
          'postCall',
          concatMap(() => EMPTY),
        ),
        answering('As ever.'),
      ],
    });
    expect(await agent.call('?')).toMatchObject({ reason: 'stopped', iterations: 0 });
  });

  it('C1: a reply can be kept and given again, as from a cache', async () => {
    const kept = new Map<string, string>();
    const cache: Layer = {
      name: 'cache',
      call: (context) => (next) => (call) => {
        const question = call.input.map(textOf).join();
        const known = kept.get(question);
        return known === undefined
          ? next(call).pipe(tap((reply) => kept.set(question, textOf(reply))))
          : answerWith(context, call, known);
      },
    };
    const agent = createAgent({ model: scriptedModel([text('1')]), use: [cache] });
    expect(textOf(await agent.call('?'))).toBe('1');
    expect(textOf(await agent.call('?'))).toBe('1');
  });

  it.each<readonly [string, NonNullable<Layer['call']>, RegExp]>([
    ['no reply', () => () => () => EMPTY, /'odd' has answered with no reply/],
    ['another thing', () => () => () => of(3) as never, /something that is not a reply/],
    [
      'two replies',
      () => (next) => (call) => next(call).pipe(concatMap((reply) => of(reply, reply))),
      /with two replies/,
    ],
    ['no call', () => (next) => () => next({} as never), /passed on something that is not a call/],
    [
      'a call twice',
      () => (next) => (call) => next(call).pipe(concatMap(() => next(call))),
      /passed the call on twice/,
    ],
  ])('C1, Y6: one that makes %s fails the call', async (_, call, message) => {
    const agent = createAgent({
      model: scriptedModel([text('1')], [text('2')]),
      use: [{ name: 'odd', call }],
    });
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringMatching(message),
    });
  });

  it('C1: an error of a layer fails the call, with its name', async () => {
    const failing: Layer = {
      name: 'failing',
      call: () => () => () => throwError(() => new Error('no')),
    };
    const throwing: Layer = {
      name: 'throwing',
      call: () => () => () => {
        throw new Error('no');
      },
    };
    const call = (layer: Layer) =>
      createAgent({ model: scriptedModel([text('1')]), use: [layer] }).call('?');
    for (const layer of [failing, throwing]) {
      await expect(call(layer)).rejects.toMatchObject({
        code: 'unknown',
        message: `In the layer '${layer.name}': no`,
      });
    }
  });

  it('C1: one that is inherited stands around the calls of sub-agents, too', async () => {
    const seen: string[] = [];
    const audit: Layer = {
      name: 'audit',
      inherit: true,
      call:
        ({ info: { agent } }) =>
        (next) =>
        (call) =>
          next(call).pipe(tap(() => seen.push(agent.join('/')))),
    };
    const child = createAgent({ name: 'child', model: scriptedModel([text('inner')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, context) => child.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('ask')], [text('outer')]);
    await createAgent({ name: 'parent', model, tools: [ask], use: [audit] }).call('?');
    expect(seen).toEqual(['parent/child', 'parent']);
  });

  it('R3: what a layer answers is read as output', async () => {
    const schema = { type: 'object', properties: { a: { type: 'number' } } } as const;
    const call = (answer: string) =>
      createAgent({ model: scriptedModel(), use: [answering(answer)] }).call('?', {
        use: [output(jsonSchema(schema))],
      });
    expect((await call('{"a": 1}')).output).toEqual({ a: 1 });
    await expect(call('{"a": "b"}')).rejects.toMatchObject({ code: 'invalidResponse' });
    const session = sessions(createAgent({ model: scriptedModel(), use: [answering('So.')] })).open(
      's',
    );
    await session.call('?');
    await session.call('?');
    expect(await lastValueFrom(session.memory.load$())).toHaveLength(4);
  });

  it.each([true, false])(
    'S1: an interrupt cuts the step in which a layer waits (%s), and no wait outside of one',
    (isStep) => {
      marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
        const slow$ = cold('----(a|)');
        const waiting: Layer = {
          name: 'waiting',
          call:
            ({ perform }) =>
            (next) =>
            (call) => {
              const step = { kind: 'wait', id: 'slow', input: undefined, run: () => slow$ };
              const wait$ = isStep ? perform({ ...step, cut: () => of('') }) : slow$;
              return wait$.pipe(concatMap(() => next(call)));
            },
        };
        const agent = createAgent({ model: scriptedModel(), use: [waiting] });
        const reason$ = agent
          .call$('?', { scheduler, use: [interruptOn(cold('--i', { i: {} }))] })
          .pipe(map(({ reason }) => reason));
        expectObservable(reason$).toBe(isStep ? '--(r|)' : '----(r|)', { r: 'interrupted' });
        expectSubscriptions(slow$.subscriptions).toBe(isStep ? '^-!' : '^---!');
      });
    },
  );

  it('S1: an interrupt waits for what a layer does with the reply', () => {
    marbles(({ scheduler, cold, expectObservable }) => {
      const seen: string[] = [];
      const audit: Layer = {
        name: 'audit',
        call: () => (next) => (call) =>
          next(call).pipe(
            concatMap((reply) =>
              timer(5, scheduler).pipe(
                map(() => {
                  seen.push(reply.reason);
                  return reply;
                }),
              ),
            ),
          ),
      };
      const agent = createAgent({ model: { name: 'm', stream$: () => NEVER }, use: [audit] });
      const reason$ = agent
        .call$('?', { scheduler, use: [interruptOn(cold('--i', { i: {} }))] })
        .pipe(map(({ reason }) => `${reason} ${seen.join()}`));
      expectObservable(reason$).toBe('7ms (r|)', { r: 'interrupted interrupted' });
    });
  });

  it('C1: what a guard could not decide in time is not answered by a layer', () => {
    marbles(({ scheduler, cold, expectObservable }) => {
      const slow = guardInput(() => timer(500, scheduler).pipe(map(() => false)));
      const agent = createAgent({ model: scriptedModel(), use: [slow, answering('SECRET')] });
      const text$ = agent
        .call$('?', { scheduler, use: [interruptOn(cold('--i', { i: {} }))] })
        .pipe(map((reply) => `${reply.reason} ${textOf(reply).includes('SECRET')}`));
      expectObservable(text$).toBe('--(r|)', { r: 'interrupted false' });
    });
  });

  it('I5: leaving a call leaves the layer that it waits for', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const never = cold<never>('-');
      const agent = createAgent({ model: scriptedModel(), use: [hanging(never)] });
      expectObservable(agent.call$('?', { scheduler }), '---!').toBe('-');
      expectSubscriptions(never.subscriptions).toBe('^--!');
    });
  });
});
