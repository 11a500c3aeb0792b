import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import {
  asapScheduler,
  asyncScheduler,
  concatMap,
  defer,
  from,
  identity,
  lastValueFrom,
  map,
  NEVER,
  Observable,
  of,
  queueScheduler,
  Subject,
  subscribeOn,
  take,
  takeUntil,
  takeWhile,
  tap,
  toArray,
} from 'rxjs';
import {
  type Agent,
  createAgent,
  isMillraceError,
  type Layer,
  type Model,
  on,
  requireApproval,
  tool,
} from '../index.js';
import { createCallStore, inProcessCalls, journal } from '../journal/index.js';
import { sessions } from '../layers/sessions/index.js';
import { jsonSchema } from '../schema/index.js';
import { finish, scriptedModel, text, toolCall } from '../testing/index.js';
import { interruptLayer } from './index.js';

/** Called wherever a call runs code of its program. */
type At = (what: string) => void;

const input = jsonSchema({ type: 'object', properties: { a: { type: 'number' } } });

const used = fc.record({
  isInterruptible: fc.boolean(),
  isRecorded: fc.boolean(),
  hasSteps: fc.boolean(),
  isIntercepted: fc.boolean(),
});

/** Layers that report each step and event as it begins. */
const useOf = (options: Generated<typeof used>, at: At): readonly Layer[] => {
  const steps: Layer = {
    name: 'steps',
    step: () => (next) => (step) => {
      at(`${step.kind} ${step.id}`);
      return next(step);
    },
  };
  const seen = (type: 'preReasoning' | 'postReasoning' | 'preActing' | 'postActing') =>
    on(
      type,
      tap(() => at(type)),
    );
  return [
    ...(options.isInterruptible ? [interruptLayer] : []),
    ...(options.isRecorded ? [journal(createCallStore(inProcessCalls()))] : []),
    ...(options.hasSteps ? [steps] : []),
    ...(options.isIntercepted
      ? [seen('preReasoning'), seen('postReasoning'), seen('preActing'), seen('postActing')]
      : []),
  ];
};

type Generated<Arbitrary> = Arbitrary extends fc.Arbitrary<infer T> ? T : never;

/** A model that asks for each of the tools in turn, then answers. */
const modelOf = (at: At, isAsync: boolean, ...names: readonly string[]): Model => {
  let asked = 0;
  return {
    name: 'model',
    stream$: () =>
      new Observable((to) => {
        at('request');
        const name = names[asked];
        asked += 1;
        const chunks = [
          name === undefined ? text('end') : toolCall(name, { a: 1 }, `${name}${asked}`),
          finish(),
        ];
        const chunk$ = of(...chunks).pipe(tap(({ type }) => at(`chunk ${type}`)));
        return (
          isAsync ? from(chunks).pipe(concatMap((it) => Promise.resolve(it))) : chunk$
        ).subscribe(to);
      }),
  };
};

const leaving = fc.record({
  use: used,
  isAsync: fc.boolean(),
  returns: fc.constantFrom('value', 'promise', 'observable', 'generator'),
  below: fc.constantFrom(undefined, 'observable', 'promise', 'manual'),
  point: fc.nat(40),
  by: fc.constantFrom('unsubscribe', 'abort'),
});

const returned = (form: string): unknown => {
  if (form === 'promise') return Promise.resolve('ok');
  if (form === 'observable') return of('ok');
  if (form !== 'generator') return 'ok';
  return (function* () {
    yield 'o';
    yield 'k';
  })();
};

/** An agent with a tool, and one that calls a sub-agent, in one of three ways. */
const leavingAgent = ({ use, isAsync, returns, below }: Generated<typeof leaving>, at: At) => {
  const run = (name: string) => () => (at(`tool ${name}`), returned(returns) as never);
  const look = tool({ name: 'look', description: 'Looks.', run: run('look') });
  const deep = tool({ name: 'deep', description: 'Looks.', run: run('deep') });
  const sub = createAgent({
    name: 'sub',
    model: modelOf((what) => at(`sub ${what}`), false, 'deep'),
    tools: [deep],
  });
  const ask = tool({
    name: 'ask',
    description: 'Asks.',
    run: (_input, parent) => {
      if (below === 'promise') return sub.call('?', { parent }).then((reply) => reply.text);
      const text$ = sub.call$('?', { parent }).pipe(map((reply) => reply.text));
      return below === 'observable'
        ? text$
        : new Observable<string>((to) =>
            text$.subscribe({
              next: (it) => to.next(it),
              error: (cause: unknown) => to.error(cause),
              complete: () => to.complete(),
            }),
          );
    },
  });
  const model = modelOf(at, isAsync, 'look', ...(below === undefined ? [] : ['ask']), 'look');
  return createAgent({ name: 'left', model, tools: [look, ask], use: useOf(use, at) });
};

const staying = fc.record({
  use: used,
  waits: fc.constantFrom('model', 'tool', 'thenable', 'approval', 'edit', 'event', 'layer', 'step'),
});

/** An agent whose call waits once, for `go$`. */
const waitingAgent = (
  { use, waits }: Generated<typeof staying>,
  go$: Observable<unknown>,
  ran: At,
): Agent => {
  let isOver = false;
  const gone$ = go$.pipe(
    take(1),
    tap(() => (isOver = true)),
  );
  const after = <T>(next$: Observable<T>): Observable<T> =>
    defer(() => (isOver ? next$ : gone$.pipe(concatMap(() => next$))));
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input,
    run: ({ a }) => {
      ran(`paid ${a}`);
      if (waits === 'tool') return after(of('ok'));
      if (waits !== 'thenable') return 'ok';
      const then = (resolve: (value: string) => void) => void gone$.subscribe(() => resolve('ok'));
      return { then } as unknown as Promise<string>;
    },
  });
  const approved = waits === 'approval' || waits === 'edit';
  const decision = waits === 'edit' ? { approved: true, input: { a: 2 } } : true;
  const guarded = approved ? requireApproval(pay, () => after(of(decision))) : pay;
  const own: readonly Layer[] = [
    ...(waits === 'event'
      ? [
          on(
            'postReasoning',
            concatMap((event) => after(of(event))),
          ),
        ]
      : []),
    ...(waits === 'layer'
      ? [{ name: 'slow', call: () => (next) => (call) => after(next(call)) } satisfies Layer]
      : []),
    ...(waits === 'step'
      ? [
          {
            name: 'slow',
            step: () => (next) => (step) => (step.kind === 'tool' ? after(next(step)) : next(step)),
          } satisfies Layer,
        ]
      : []),
  ];
  const plain = modelOf(() => undefined, false, 'pay');
  const model: Model =
    waits === 'model' ? { ...plain, stream$: (...given) => after(plain.stream$(...given)) } : plain;
  return createAgent({
    name: 'stays',
    model,
    tools: [guarded],
    use: [...useOf(use, () => undefined), ...own],
  });
};

/** A call that waits until `act` is called, and what it does. */
const stay = (options: Generated<typeof staying>) => {
  const go$ = new Subject<void>();
  const ran: string[] = [];
  const types = lastValueFrom(
    waitingAgent(options, go$, (what) => ran.push(what))
      .stream$('?')
      .pipe(
        map(({ type }) => type),
        toArray(),
      ),
  );
  return { act: () => go$.next(), done: types.then((it) => [...it, ...ran]) };
};

const plain = { isInterruptible: false, isRecorded: false, hasSteps: false, isIntercepted: false };

describe('I5: a call that is left, and others in the same stack', () => {
  it('runs nothing of the one, and all of the others', async () => {
    const starting = fc.constantFrom(undefined, queueScheduler, asapScheduler);
    await fc.assert(
      fc.asyncProperty(leaving, staying, starting, async (left, stays, scheduler) => {
        const alone = stay(stays);
        alone.act();
        const other = stay(stays);
        const abort = new AbortController();
        const leave$ = new Subject<void>();
        const after: string[] = [];
        let started: Promise<string> | undefined;
        let isLeft = false;
        let isEnded = false;
        let count = 0;
        const at: At = (what) => {
          if (isLeft) after.push(what);
          if (isLeft || count++ !== left.point) return;
          isLeft = true;
          isEnded = what === 'seen postCall of left';
          if (left.by === 'abort') abort.abort();
          else leave$.next();
          other.act();
          const next$ = createAgent({ model: scriptedModel([text('Hi.')]) }).call$('?');
          started = lastValueFrom(
            next$.pipe(
              scheduler === undefined ? identity : subscribeOn(scheduler),
              map((reply) => reply.text),
            ),
          );
        };
        const error = await lastValueFrom(
          leavingAgent(left, at)
            .stream$('?', { signal: abort.signal })
            .pipe(
              // The `error` event closes the call.
              tap(({ type, agent }) => void (type === 'error' || at(`seen ${type} of ${agent}`))),
              takeUntil(leave$),
            ),
          { defaultValue: undefined },
        ).catch((cause: unknown) => cause);
        // Whoever sees `postCall` has the reply: nothing is left to abort.
        if (left.by === 'abort' && isLeft) expect(isMillraceError(error)).toBe(!isEnded);
        if (!isLeft) other.act();
        expect(await other.done).toEqual(await alone.done);
        if (isLeft) expect(await started).toBe('Hi.');
        expect(after).toEqual([]);
      }),
      {
        numRuns: 300,
        examples: [
          [
            {
              use: { ...plain, hasSteps: true, isIntercepted: true },
              isAsync: true,
              returns: 'value',
              below: undefined,
              point: 38,
              by: 'abort',
            },
            { use: plain, waits: 'model' },
            undefined,
          ],
        ],
      },
    );
  });

  it('has the edit of an approval, though it comes while another call is left', async () => {
    const { act, done } = stay({ use: plain, waits: 'edit' });
    const leave$ = new Subject<void>();
    const look = tool({
      name: 'look',
      description: 'Looks.',
      run: () => {
        leave$.next();
        act();
        return 'ok';
      },
    });
    const agent = createAgent({ model: scriptedModel([toolCall('look')]), tools: [look] });
    agent.stream$('?').pipe(takeUntil(leave$)).subscribe();
    expect((await done).at(-1)).toBe('paid 2');
  });

  it.each(['observable', 'promise', 'manual'] as const)(
    'G4: ends a sub-agent, which a tool calls by %s, in the same moment',
    async (below) => {
      let isReached = true;
      for (let point = 0; isReached; point += 1) {
        const leave$ = new Subject<void>();
        const after: string[] = [];
        let count = 0;
        const at: At = (what) => {
          if (count > point) after.push(what);
          count += 1;
          if (count > point) leave$.next();
        };
        const options = { use: plain, isAsync: true, returns: 'value', below } as const;
        const events$ = leavingAgent({ ...options, point, by: 'unsubscribe' }, at).stream$('?');
        await lastValueFrom(
          events$.pipe(
            tap(({ type }) => at(`seen ${type}`)),
            takeUntil(leave$),
          ),
          { defaultValue: undefined },
        );
        expect(after).toEqual([]);
        isReached = count > point;
      }
    },
  );

  it.each(['approvalRequested', 'stateChanged'])(
    'S5: a session that is left in %s waits for no approval',
    async (type) => {
      const pay = requireApproval(
        tool({ name: 'pay', description: 'Pays.', run: () => 'ok' }),
        () => NEVER,
      );
      const agent = createAgent({ model: scriptedModel([toolCall('pay')]), tools: [pay] });
      const session = sessions(agent).open('s');
      session
        .stream$('?')
        .pipe(takeWhile((event) => event.type !== type))
        .subscribe();
      expect((await session.saveState()).approvals).toEqual([]);
    },
  );

  it('a tool that leaves its call and fails later fails no other call', async () => {
    const leave$ = new Subject<void>();
    const failed = jest.fn();
    process.on('unhandledRejection', failed);
    const run = (): Promise<string> => {
      leave$.next();
      return Promise.reject(new Error('late'));
    };
    createAgent({
      model: scriptedModel([toolCall('fail')]),
      tools: [tool({ name: 'fail', description: 'Fails.', run })],
    })
      .call$('?')
      .pipe(takeUntil(leave$))
      .subscribe();
    // Rejections are reported after all microtasks.
    await lastValueFrom(of(0, asyncScheduler));
    process.off('unhandledRejection', failed);
    expect(failed).not.toHaveBeenCalled();
  });
});
