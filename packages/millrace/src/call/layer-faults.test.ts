import { describe, expect, it } from '@jest/globals';
import { cell } from '../step.js';
import {
  catchError,
  concatMap,
  delay,
  EMPTY,
  finalize,
  lastValueFrom,
  map,
  NEVER,
  of,
  ReplaySubject,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { guardInput } from '../layers/guards/index.js';
import {
  createAgent,
  inProcessMemory,
  interruptOn,
  type Layer,
  on,
  type Reply,
  type Step,
  textBlock,
  textOf,
  tool,
  toolResultOf,
} from '../index.js';
import { inProcessCalls } from '../journal/index.js';
import {
  marbles,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
  verifyEvents,
} from '../testing/index.js';
import { budget, createSemaphore, limitCalls } from '../layers/traffic/index.js';
import { answerWith, interruptLayer } from './index.js';
import { sessions } from '../layers/sessions/index.js';
import { journalIn } from '../journal/stored-calls.test-support.js';

const answering = (priority = 100): Layer => ({
  name: 'answering',
  priority,
  call: (context) => () => (call) => answerWith(context, call, 'SECRET'),
});
const usage = { type: 'usage', usage: { inputTokens: 10, outputTokens: 5 } } as const;
const echo = tool({ name: 'echo', description: 'Echoes.', run: () => 'Hello.' });
/** A layer around the steps of a kind. */
const around = (
  kind: string,
  step: <T>(
    next: (it: Step<T>) => ReturnType<Step<T>['run']>,
    it: Step<T>,
  ) => ReturnType<Step<T>['run']>,
): Layer => ({
  name: `around ${kind}`,
  step: () => (next) => (it) => (it.kind === kind ? step(next, it) : next(it)),
});

describe('layers that cut', () => {
  it.each(['prepare', 'open'])(
    'C1, Y2: the step %s end the call: nothing unguarded, and nothing without its history, reaches the model',
    async (kind) => {
      const model = scriptedModel([text('Answered.')]);
      const agent = createAgent({
        model,
        use: [guardInput(() => timer(60).pipe(map(() => false))), around(kind, () => EMPTY)],
      });
      const guarded =
        kind === 'open' ? createAgent({ model, use: [around(kind, () => EMPTY)] }) : agent;
      expect(await sessions(guarded).open('s').call('?')).toMatchObject({ reason: 'interrupted' });
      expect(model.requests).toEqual([]);
    },
  );

  it('Y2: a message of the model with a word of their own: the reply says that', async () => {
    const quota = around('model', (_next, step) =>
      step.cut === undefined ? EMPTY : step.cut({ reason: 'quota', message: 'Quota reached.' }),
    );
    const reply = await createAgent({ model: scriptedModel([text('x')]), use: [quota] }).call('?');
    expect([reply.reason, textOf(reply)]).toEqual(['interrupted', 'Quota reached.']);
  });
});

describe('interrupts and layers', () => {
  it('S1: an answer of a layer does not stand in for a call that was interrupted', async () => {
    const agent = createAgent({ model: scriptedModel(), use: [answering()] });
    const reply = await agent.call('?', { use: [interruptOn(of('Stop.'))] });
    expect([reply.reason, textOf(reply)]).toEqual(['interrupted', 'Stop.']);
    const slow = inProcessMemory();
    const loading$ = new ReplaySubject<void>(1);
    const session = sessions(
      createAgent({
        model: scriptedModel(),
        use: [answering()],
      }),
      {
        memory: (id) => {
          const memory = slow(id);
          return { ...memory, load$: () => loading$.pipe(concatMap(() => memory.load$())) };
        },
      },
    ).open('s');
    const replied = session.call('?');
    expect(session.interrupt('Stop.')).toBe(true);
    loading$.next();
    loading$.complete();
    expect(textOf(await replied)).toBe('Stop.');
  });

  it('S1, Y2: a layer that waits in a step is not skipped, with and without a cut, also after a late layer', () => {
    const cases = [false, true].flatMap((isLate) =>
      [false, true].map((isCut) => ({ isLate, isCut })),
    );
    for (const { isLate, isCut } of cases) {
      marbles(({ expectObservable, scheduler }) => {
        const late: Layer = {
          name: 'late',
          priority: 20,
          step: () => (next) => (step) => timer(1, scheduler).pipe(concatMap(() => next(step))),
        };
        const guard: Layer = {
          name: 'guard',
          call: (context) => (next) => (call) =>
            context
              .perform<boolean>({
                kind: 'check',
                id: 'check',
                input: undefined,
                run: () => timer(40, scheduler).pipe(map(() => false)),
                ...(isCut && { cut: () => of(false) }),
              })
              .pipe(
                concatMap((isRight) => (isRight ? next(call) : throwError(() => new Error('No.')))),
              ),
        };
        const agent = createAgent({
          model: scriptedModel(),
          use: [...(isLate ? [late] : []), guard, answering(101)],
        });
        const told$ = agent
          .call$('?', { scheduler, use: [interruptOn(timer(20, scheduler))] })
          .pipe(
            map(textOf),
            catchError((error: Error) => of(error.message)),
          );
        const at = isCut ? 20 : isLate ? 42 : 40;
        expectObservable(told$).toBe(`${at}ms (a|)`, { a: "In the layer 'guard': No." });
      });
    }
  });

  it('S1: an interrupt waits for a layer that redacts a result', () => {
    marbles(({ expectObservable, scheduler }) => {
      const redacting: Layer = {
        name: 'redacting',
        step: () => (next) => (step) =>
          step.kind === 'tool'
            ? next(step).pipe(
                delay(30, scheduler),
                map((value) => {
                  const { result } = toolResultOf(step, value) ?? {};
                  return { ...value, result: { ...result, content: [textBlock('***')] } };
                }),
              )
            : next(step),
      };
      const agent = createAgent({
        model: scriptedModel([toolCall('echo')], [text('x')]),
        tools: [echo],
        use: [redacting],
      });
      const seen$ = agent
        .call$('?', { scheduler, use: [interruptOn(timer(10, scheduler))] })
        .pipe(map(({ reason, toolCalls }) => `${reason} ${toolCalls[0]?.output}`));
      expectObservable(seen$).toBe('30ms (a|)', { a: 'interrupted ***' });
    });
  });

  it('S1: a tool is torn down before its result is reported', async () => {
    const log: string[] = [];
    const waiting = tool({
      name: 'echo',
      description: 'Waits.',
      run: () => NEVER.pipe(finalize(() => log.push('torn down'))),
    });
    const outer: Layer = {
      name: 'outer',
      priority: 20,
      step: () => (next) => (step) =>
        next(step).pipe(tap(() => step.kind === 'tool' && log.push('outer layer'))),
    };
    const agent = createAgent({
      model: scriptedModel([toolCall('echo')]),
      tools: [waiting],
      use: [
        outer,
        on(
          'postActing',
          tap(() => log.push('postActing')),
        ),
      ],
    });
    await agent.call('?', { use: [interruptOn(timer(0))] });
    expect(log).toEqual(['torn down', 'postActing', 'outer layer']);
  });

  it('Y2: the value of a step is passed on before the step is torn down', async () => {
    const log: string[] = [];
    const watching: Layer = {
      name: 'watching',
      step: () => (next) => (step) => {
        log.push(`${step.kind} begins`);
        return next(step).pipe(finalize(() => log.push(`${step.kind} is over`)));
      },
    };
    const model = scriptedModel([toolCall('echo')], [text('x')]);
    await createAgent({ model, tools: [echo], use: [watching] }).call('?');
    expect(log.indexOf('tool begins')).toBeLessThan(log.indexOf('intent is over'));
  });

  it('S1: a layer can interrupt a call that nothing else can', () => {
    marbles(({ expectObservable, scheduler }) => {
      const stopping: Layer = {
        name: 'stopping',
        call:
          ({ interruption }) =>
          (next) =>
          (call) => {
            scheduler.schedule(() => interruption.trigger({ message: 'Enough.' }), 10);
            return next(call);
          },
      };
      const model = scriptedModel(() => NEVER);
      const said$ = createAgent({ model, use: [[interruptLayer, stopping]] })
        .call$('?', { scheduler })
        .pipe(map(textOf));
      expectObservable(said$).toBe('10ms (a|)', { a: 'Enough.' });
    });
  });

  it('S6, C6: a resumed call that waits for its turn can be interrupted', async () => {
    const driver = inProcessCalls();
    const make = (use: readonly Layer[], ...answers: readonly ScriptedAnswer[]) =>
      createAgent({
        model: scriptedModel(...answers),
        tools: [echo],
        use: [journalIn(driver), ...use],
      });
    const cut = make([], [toolCall('echo')], () => NEVER);
    await new Promise<void>((resolve) => {
      const subscription = sessions(cut)
        .open('s')
        .stream$('?', { callId: 'c' })
        .subscribe(({ type, iteration }) => {
          if (type === 'preReasoning' && iteration === 2) {
            resolve();
            queueMicrotask(() => subscription.unsubscribe());
          }
        });
    });
    const semaphore = createSemaphore({ max: 1 });
    const held = semaphore.hold$(() => NEVER, {}).subscribe();
    const agent = make([limitCalls(semaphore)], [text('x')]);
    const resumed = journalIn(driver).resume(sessions(agent).open('s'), 'c');
    while (semaphore.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(sessions(agent).open('s').interrupt('Stop.')).toBe(true);
    expect(textOf(await resumed)).toBe('Stop.');
    expect(semaphore.waiting).toBe(0);
    held.unsubscribe();
  });
});

describe('what a layer answers', () => {
  it('Y6: after the loop failed keeps what the loop did', async () => {
    const sorry: Layer = {
      name: 'sorry',
      call: (context) => (next) => (call) =>
        next(call).pipe(catchError(() => answerWith(context, call, 'Sorry.'))),
    };
    const memory = inProcessMemory();
    const session = sessions(
      createAgent({
        model: scriptedModel(
          [toolCall('echo'), usage],
          throwError(() => new Error('down')),
        ),
        tools: [echo],
        use: [sorry],
      }),
      { memory },
    ).open('s');
    const events = await record(session.stream$('?').pipe(verifyEvents()));
    expect(events.at(-1)).toMatchObject({
      reply: {
        reason: 'answer',
        iterations: 2,
        usage: { inputTokens: 10 },
        toolCalls: [{ name: 'echo' }],
      },
    });
    const kept = await lastValueFrom(memory('s').load$());
    expect(kept.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  it('Y6: from another call is a message, a result and a tool call of its own, and costs nothing', async () => {
    const replies: Reply[] = [];
    const keeping: Layer = {
      name: 'keeping',
      call: () => (next) => (call) =>
        replies.length > 1
          ? of(...replies.slice(1, 2))
          : next(call).pipe(tap((it) => replies.push(it))),
    };
    const kept = new Map<string, unknown>();
    const caching: Layer = {
      name: 'caching',
      step:
        () =>
        (next) =>
        <T>(step: Step<T>) => {
          const known = kept.get(step.kind);
          if (step.kind !== 'tool') return next(step);
          return known === undefined
            ? next(step).pipe(tap((value) => kept.set(step.kind, value)))
            : of(known as T);
        },
    };
    const spent = budget({ toolCalls: 1 });
    const memory = inProcessMemory();
    const session = sessions(
      createAgent({
        model: scriptedModel(
          [toolCall('echo', {}, 'one'), usage],
          [text('1')],
          [toolCall('echo', {}, 'two')],
          [text('2')],
        ),
        tools: [echo],
        use: [keeping, caching, spent],
      }),
      { memory },
    ).open('s');
    for (const question of ['a', 'b', 'c', 'd']) {
      await record(session.stream$(question).pipe(verifyEvents()));
    }
    expect(spent.spent.toolCalls).toBe(1);
    const messages = await lastValueFrom(memory('s').load$());
    expect(messages.flatMap(({ content }): readonly unknown[] => content)).toContainEqual(
      expect.objectContaining({ type: 'tool_result', toolCallId: 'two' }),
    );
    expect(messages.map(textOf).filter((said) => said !== '')).toEqual([
      ...['a', '1', 'b', '2', 'c', '2', 'd', '2'],
    ]);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
    expect((await session.saveState()).usage).toMatchObject({ inputTokens: 10 });
  });

  it('C9, R4: a second attempt of a message costs what both cost', async () => {
    const again = around('model', (next, step) =>
      next(step).pipe(
        concatMap((value) => (JSON.stringify(value).includes('bad') ? next(step) : of(value))),
      ),
    );
    const shared = budget({ tokens: 100 });
    const agent = createAgent({
      model: scriptedModel([text('bad'), usage], [text('good'), usage]),
      use: [again, shared],
    });
    const events = await record(sessions(agent).open('s').stream$('?').pipe(verifyEvents()));
    expect(events.at(-1)).toMatchObject({
      reply: { usage: { inputTokens: 20, outputTokens: 10 } },
    });
    expect(shared.spent.tokens).toBe(30);
  });

  it('Y3: a tool that gave its result is not run again', async () => {
    const again = around('tool', (next, step) => next(step).pipe(concatMap(() => next(step))));
    const agent = createAgent({
      model: scriptedModel([toolCall('echo')], [text('x')]),
      tools: [echo],
      use: [again],
    });
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining("the step '1/0' again"),
    });
  });
});

describe('an edited text alone', () => {
  const loud = map((reply: Reply) => ({ ...reply, text: reply.text.toUpperCase() }));

  it.each([20, 70, 100])(
    'Y6: by a layer at %d is the content of the reply, of the last event, and, if it is stored later, of memory',
    async (priority) => {
      const shouting: Layer = {
        name: 'shouting',
        priority,
        call: () => (next) => (call) => next(call).pipe(loud),
      };
      const memory = inProcessMemory();
      const model = scriptedModel([text('hello')]);
      const session = sessions(createAgent({ model, use: [shouting] }), { memory }).open('s');
      const events = await record(session.stream$('?').pipe(verifyEvents()));
      const said = { text: 'HELLO', content: [textBlock('HELLO')] };
      expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: said });
      const kept = await lastValueFrom(memory('s').load$());
      expect(kept.map(textOf)).toEqual(['?', priority > 60 ? 'HELLO' : 'hello']);
    },
  );

  it('Y6: by an interceptor of postCall, too', async () => {
    const model = scriptedModel([text('hello')]);
    const shouting = on(
      'postCall',
      map((event) => ({ ...event, reply: { ...event.reply, text: 'HELLO' } })),
    );
    const reply = await createAgent({ model, use: [shouting] }).call('?');
    expect([reply.text, textOf(reply)]).toEqual(['HELLO', 'HELLO']);
  });
});

describe('broken layers', () => {
  it.each(['call', 'step', 'model'] as const)(
    'Y3: one whose %s throws when it is made fails the call, and is named',
    async (part) => {
      const fail = (): never => {
        throw new Error('broken');
      };
      const agent = createAgent({ model: scriptedModel([text('1')], [text('2')]) });
      const session = sessions(agent).open('s');
      const bad: Layer = { name: 'bad', [part]: fail };
      await expect(session.call('?', { use: [bad] })).rejects.toThrow("In the layer 'bad': broken");
      expect(textOf(await session.call('?'))).toBe('1');
    },
  );

  it('Y4: parts that are not what they must be are refused', () => {
    const odd: readonly (readonly [string, unknown])[] = [
      ['call', 3],
      ['turn', []],
      ['priority', Number.NaN],
      ['priority', '5'],
      ['inherit', 'all'],
      ['single', 1],
    ];
    for (const [part, value] of odd) {
      const use = [{ name: 'odd', [part]: value } as Layer];
      expect(() => createAgent({ model: scriptedModel(), use })).toThrow(
        `The layer 'odd': '${part}' must be`,
      );
    }
    const misspelt = [{ name: 'odd', calls: () => of() } as Layer];
    expect(() => createAgent({ model: scriptedModel(), use: misspelt })).toThrow("'calls'");
  });

  it('S6: two steps of one id are an error, with a journal and without', async () => {
    const looking = (name: string): Layer => ({
      name,
      call:
        ({ perform }) =>
        (next) =>
        (call) =>
          perform({ kind: 'look', id: 'look', input: undefined, run: () => of(name) }).pipe(
            concatMap(() => next(call)),
          ),
    });
    for (const recording of [[], [journalIn(inProcessCalls())]]) {
      const agent = createAgent({
        model: scriptedModel([text('x')]),
        use: [looking('a'), looking('b'), recording],
      });
      await expect(agent.call('?')).rejects.toThrow("already performed a step 'look'");
    }
  });

  it('Y6: one that passes a call on again says what failed first', async () => {
    const again: Layer = {
      name: 'again',
      call: () => (next) => (call) => next(call).pipe(catchError(() => next(call))),
    };
    const model = scriptedModel(throwError(() => new Error('down')));
    await expect(createAgent({ model, use: [again] }).call('?')).rejects.toMatchObject({
      message: expect.stringContaining('twice'),
      cause: expect.objectContaining({ message: expect.stringContaining('down') }),
    });
  });

  it('Y4: the parts of a layer may use the context that they are made with', async () => {
    const counted = cell('call', () => ({ steps: 0 }));
    const judging: Layer = {
      name: 'judging',
      step: ({ layers, local }) => {
        const state = local(counted);
        return (next) => (step) => {
          state.steps += layers.length;
          return next(step);
        };
      },
    };
    const agent = createAgent({ model: scriptedModel([text('1')]), use: [judging] });
    expect(textOf(await agent.call('?'))).toBe('1');
  });
});
