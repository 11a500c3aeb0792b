import { describe, expect, it } from '@jest/globals';
import {
  concat,
  delay,
  finalize,
  lastValueFrom,
  map,
  NEVER,
  Observable,
  of,
  pipe,
  type SchedulerLike,
  take,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { contained } from './contained.js';
import {
  type AgentOptions,
  createAgent,
  interruptOn,
  type Model,
  type ModelChunk,
  on,
  prepare,
  textOf,
  tool,
  type ToolEmission,
  transformChunks,
  inProcessMemory,
} from '../index.js';
import { insertBefore, reasoning } from '../phases/index.js';
import { finish, marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';
import type { SessionsOptions } from '../layers/sessions/sessions.js';

const clumsy = <T>(...values: readonly T[]): Observable<T> =>
  new Observable((subscriber) => {
    values.forEach((value) => subscriber.next(value));
    return () => {
      throw new Error('teardown');
    };
  });

describe('contained', () => {
  it('passes all on', async () => {
    expect(await lastValueFrom(of(1, 2).pipe(contained(), toArray()))).toEqual([1, 2]);
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-a-#');
      expectObservable(source$.pipe(contained())).toBe('-a-#');
      expectSubscriptions(source$.subscriptions).toBe('^--!');
    });
  });

  it('I5: leaves a synchronous source from within it', () => {
    const made: number[] = [];
    of(1, 2, 3)
      .pipe(
        tap((value) => made.push(value)),
        contained(),
        take(1),
      )
      .subscribe();
    expect(made).toEqual([1]);
  });

  it('X12: a tool whose teardown throws does not hold the call up when it takes too long', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const tools = [tool({ name: 'tool', description: 'Clumsy.', run: () => clumsy('a') })];
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools });
      const reply$ = agent.call$('?', { scheduler, limits: { timeouts: { toolMs: 5 } } });
      expectObservable(reply$.pipe(map(textOf))).toBe('-----(r|)', { r: 't' });
    });
  });

  it('X12: a tool whose teardown throws when it completes has its output', async () => {
    let complete: () => unknown = () => undefined;
    const tools = [
      tool({
        name: 'tool',
        description: 'Clumsy, and late.',
        run: () =>
          new Observable((subscriber) => {
            complete = () => {
              subscriber.next('late');
              subscriber.complete();
            };
            return () => {
              throw new Error('teardown');
            };
          }),
      }),
    ];
    const model = scriptedModel([toolCall('tool')], [text('done')]);
    const reply = createAgent({ model, tools }).call('?');
    expect(complete).not.toThrow();
    expect((await reply).toolCalls).toMatchObject([{ output: 'late' }]);
  });

  it('X12: nor does a tool of another make', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const other = tool({ name: 'tool', description: 'Clumsy.', run: () => 'a' });
      const tools = [{ ...other, run$: () => clumsy<ToolEmission>() }];
      const agent = createAgent({ model: model(['(cf|)', '(tf|)']), tools });
      const reply$ = agent.call$('?', { scheduler, limits: { timeouts: { toolMs: 5 } } });
      expectObservable(reply$.pipe(map(textOf))).toBe('-----(r|)', { r: 't' });
    });
  });

  it('S1: a model whose teardown throws can be interrupted', async () => {
    const model = scriptedModel(clumsy<ModelChunk>(text('Half')));
    const session = sessions(createAgent({ model })).open('s');
    const reply = session.call('?');
    expect(session.interrupt()).toBe(true);
    expect(textOf(await reply)).toBe('Half');
  });

  it('S2: a model and a tool whose teardown throws can be left', () => {
    const model = scriptedModel(concat(of(toolCall('tool'), finish()), clumsy<ModelChunk>()));
    const tools = [tool({ name: 'tool', description: 'Clumsy.', run: () => clumsy() })];
    const running = createAgent({ model, tools }).call$('?').subscribe();
    expect(() => running.unsubscribe()).not.toThrow();
  });

  const boom = <T>() =>
    finalize<T>(() => {
      throw new Error('teardown');
    });
  const clumsyOnes: readonly (readonly [
    string,
    (scheduler: SchedulerLike) => AgentOptions & SessionsOptions,
  ])[] = [
    ['an interceptor', (it) => ({ model, use: [on('postReasoning', pipe(delay(2, it), boom()))] })],
    ['a prepare', (it) => ({ model, use: [prepare(pipe(delay(2, it), boom()))] })],
    ['a transform', () => ({ model, use: [transformChunks(boom())] })],
    [
      'a phase',
      (it) => ({ model, use: [insertBefore(reasoning, () => pipe(delay(2, it), boom()))] }),
    ],
    [
      'a memory',
      (it) => ({
        model,
        memory: () => ({
          load$: () =>
            timer(2, it).pipe(
              map(() => []),
              boom(),
            ),
          append$: () => timer(2, it).pipe(boom()),
        }),
      }),
    ],
  ];
  const model: Model = { name: 'm', stream$: () => of(text('Hi.'), finish()) };

  it.each(clumsyOnes)(
    'I17: %s whose teardown throws neither holds the call up nor keeps its session',
    (_, options) => {
      marbles(({ scheduler }) => {
        const { memory = inProcessMemory(), ...own } = options(scheduler);
        const session = sessions(createAgent(own), { memory }).open('s');
        const twice$ = concat(session.call$('?', { scheduler }), session.call$('?', { scheduler }));
        let replies: readonly string[] = [];
        twice$.pipe(map(textOf), toArray()).subscribe((all) => {
          replies = all;
        });
        scheduler.flush();
        expect(replies).toEqual(['Hi.', 'Hi.']);
      });
    },
  );

  it('I17: an interruptOn whose teardown throws does not either', async () => {
    const stop$ = NEVER.pipe(boom());
    expect(textOf(await createAgent({ model }).call('?', { use: [interruptOn(stop$)] }))).toBe(
      'Hi.',
    );
  });
});
