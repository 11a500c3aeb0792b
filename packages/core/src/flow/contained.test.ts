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
  Subject,
  take,
  tap,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import { contained, failing, made$, thenMap } from './contained.js';
import { ending } from '../journal/draining.js';
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

describe('thenMap', () => {
  it('passes a value on immediately, waits for an Observable, and completes after both', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const slow$ = cold<string>('--(s|)');
      const source$ = cold<string>('-a---|');
      expectObservable(source$.pipe(thenMap((value) => `${value}!`))).toBe('-r---|', { r: 'a!' });
      expectObservable(source$.pipe(thenMap(() => slow$))).toBe('---s-|');
      expectSubscriptions(slow$.subscriptions).toBe('-^-!');
      const later$ = cold<string>('------(s|)');
      expectObservable(source$.pipe(thenMap(() => later$))).toBe('-------(s|)');
    });
  });

  it('leaves its source and what it waits for', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [source$, inner$] = [cold('-a--'), cold('----x')];
      expectObservable(source$.pipe(thenMap(() => inner$)), '^--!').toBe('');
      expectSubscriptions(source$.subscriptions).toBe('^--!');
      expectSubscriptions(inner$.subscriptions).toBe('-^-!');
    });
  });

  it('errors with what it throws, and with an error of either, and leaves the other', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold<string>('-a--');
      const thrown$ = source$.pipe(
        thenMap((): string => {
          throw new Error('thrown');
        }),
      );
      expectObservable(thrown$).toBe('-#', {}, new Error('thrown'));
      expectSubscriptions(source$.subscriptions).toBe('^!');
      const inner$ = cold<string>('---x');
      expectObservable(cold<string>('-a-#').pipe(thenMap(() => inner$))).toBe('---#');
      expectSubscriptions(inner$.subscriptions).toBe('-^-!');
    });
  });

  it.each([
    ['its source', () => of(1, 2, 3).pipe(thenMap((value) => value))],
    ['what it waits for', () => of(0).pipe(thenMap(() => of(1, 2, 3)))],
    ['what made$ makes', () => made$(() => of(1, 2, 3))],
  ])('can be left while %s emits synchronously', (_what, make) => {
    const made: number[] = [];
    make()
      .pipe(
        tap((value) => made.push(value)),
        take(1),
      )
      .subscribe();
    expect(made).toEqual([1]);
  });

  it('made$ is cold, and errors with what it throws', () => {
    let count = 0;
    const source$ = made$(() => (count += 1));
    expect(count).toBe(0);
    source$.subscribe();
    source$.subscribe();
    expect(count).toBe(2);
    const seen: unknown[] = [];
    made$((): number => {
      throw new Error('thrown');
    }).subscribe({ error: (error: unknown) => seen.push(error) });
    expect(seen).toEqual([new Error('thrown')]);
  });
});

describe('a chain', () => {
  const chain$ = (source$: Observable<string>, seen: string[]) =>
    made$(() => source$).pipe(
      thenMap((value) => made$(() => `${value}!`)),
      tap((value) => seen.push(value)),
      failing((cause) => `not ${String(cause)}`),
      ending(() => seen.push('ended')),
    );

  it('passes on what is thrown while an error is made of another', () => {
    const seen: unknown[] = [];
    const thrown = new Error('thrown');
    const source$ = new Subject<string>();
    for (const from$ of [source$, made$(() => source$), throwError(() => 'x')]) {
      const failing$ = from$.pipe(
        failing(() => {
          throw thrown;
        }),
      );
      failing$.subscribe({ error: (error: unknown) => seen.push(error) });
    }
    source$.error('x');
    expect(seen).toEqual([thrown, thrown, thrown]);
  });

  it('leaves its source when it is left from within, and ends once', () => {
    const seen: string[] = [];
    chain$(of('a', 'b', 'c'), seen)
      .pipe(take(1))
      .subscribe();
    expect(seen).toEqual(['a!', 'ended']);
  });

  it('leaves what it waits for at once', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [source$, inner$] = [cold('-a--'), cold('----x')];
      const waiting$ = chain$(source$, []).pipe(thenMap(() => made$(() => inner$)));
      expectObservable(waiting$, '^--!').toBe('');
      expectSubscriptions(source$.subscriptions).toBe('^--!');
      expectSubscriptions(inner$.subscriptions).toBe('-^-!');
    });
  });

  it('passes an error on, as another, and nothing behind it', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold<string>('-a#', undefined, 'there');
      expectObservable(chain$(source$, [])).toBe('-a#', { a: 'a!' }, 'not there');
      const late$ = cold<string>('ab');
      const broken$ = chain$(late$, []).pipe(
        thenMap((): string => {
          throw new Error('thrown');
        }),
      );
      expectObservable(broken$).toBe('#', {}, new Error('thrown'));
      expectSubscriptions(late$.subscriptions).toBe('(^!)');
    });
  });
});

describe('ending', () => {
  it('tells the end, or an error, when what it returns is over, and however that goes', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      for (const [source, rest, told] of [
        ['-a|', '--|', '-a--|'],
        ['-a|', '--#', '-a--|'],
        ['-a#', '-x|', '-a--#'],
      ] as const) {
        const source$ = cold(source);
        expectObservable(source$.pipe(ending(() => cold(rest)))).toBe(told);
        expectSubscriptions(source$.subscriptions).toBe('^-!');
      }
    });
  });

  it('goes through with it if it is left', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const rest$ = cold('---|');
      expectObservable(cold('-a--').pipe(ending(() => rest$)), '^-!').toBe('-a');
      expectSubscriptions(rest$.subscriptions).toBe('--^--!');
    });
  });

  it('does it also if the teardown of its source throws', () => {
    let count = 0;
    const running = clumsy('a')
      .pipe(ending(() => (count += 1)))
      .subscribe();
    expect(() => running.unsubscribe()).toThrow('teardown');
    expect(count).toBe(1);
  });

  it('hears the cause of an error', () => {
    const seen: unknown[] = [];
    const fails$ = made$((): string => {
      throw new Error('thrown');
    });
    fails$.pipe(ending((cause) => seen.push(cause))).subscribe({ error: () => seen.push('told') });
    expect(seen).toEqual([new Error('thrown'), 'told']);
  });
});
