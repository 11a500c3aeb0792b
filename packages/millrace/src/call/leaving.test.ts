import { describe, expect, it } from '@jest/globals';
import {
  concatMap,
  delay,
  finalize,
  lastValueFrom,
  map,
  merge,
  of,
  shareReplay,
  Subject,
  take,
  takeUntil,
  takeWhile,
  toArray,
} from 'rxjs';
import { createAgent, type Layer, tool } from '../index.js';
import { createCallStore, inProcessCalls, journal } from '../journal/index.js';
import { finish, record, scriptedModel, text, toolCall, verifyEvents } from '../testing/index.js';
import { answerWith, interruptLayer } from './index.js';

/** A layer that sees each step before and after. */
const watching = (seen: (what: string) => void): Layer => ({
  name: 'watching',
  step: () => (next) => (step) => {
    seen(`${step.kind} begins`);
    return next(step).pipe(finalize(() => seen(`${step.kind} is over`)));
  },
});

describe('I5: nothing runs for a subscriber that has gone', () => {
  const events = [
    'preCall',
    'preReasoning',
    'reasoningChunk',
    'postReasoning',
    'preActing',
    'postActing',
  ];
  const layers: readonly (readonly [string, readonly Layer[]])[] = [
    ['no layers', []],
    ['a layer of steps', [watching(() => undefined)]],
    ['an interruptible call', [interruptLayer, watching(() => undefined)]],
  ];

  it.each(layers.flatMap(([name, use]) => events.map((type) => ({ name, use, type }))))(
    'a synchronous call with $name that is left in $type makes no further request',
    ({ use, type }) => {
      const after: string[] = [];
      let isLeft = false;
      const seen = (what: string): void => void (isLeft && after.push(what));
      const ask = (...chunks: Parameters<typeof of>) => {
        seen('model');
        return of(...chunks);
      };
      const model = scriptedModel(
        () => ask(toolCall('look'), finish()) as never,
        () => ask(text('x'), finish()) as never,
      );
      const look = tool({ name: 'look', description: 'Looks.', run: () => (seen('tool'), 'ok') });
      const own: string[] = [];
      createAgent({ model, tools: [look], use })
        .stream$('?')
        .pipe(
          takeWhile((event) => {
            own.push(event.type);
            return !(isLeft ||= event.type === type);
          }),
        )
        .subscribe();
      expect(own.at(-1)).toBe(type);
      expect(after).toEqual([]);
    },
  );

  it.each(['preCall', 'preReasoning', 'preActing'])(
    'G4: nor for a sub-agent whose caller leaves in its %s',
    async (type) => {
      const after: string[] = [];
      let isLeft = false;
      const deep = tool({
        name: 'deep',
        description: 'd',
        run: () => (isLeft && after.push('tool'), 'ok'),
      });
      const inner = scriptedModel([toolCall('deep')], [text('x')]);
      const sub = createAgent({ name: 'sub', model: inner, tools: [deep] });
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        run: (_input, parent) => sub.call$('?', { parent }).pipe(map((reply) => reply.text)),
      });
      const model = scriptedModel(of(toolCall('ask'), finish()).pipe(delay(0)));
      let requests = 0;
      await lastValueFrom(
        createAgent({ model, tools: [ask] })
          .stream$('?')
          .pipe(
            takeWhile((event) => {
              isLeft ||= event.type === type && event.agent.length > 1;
              if (isLeft) requests = inner.requests.length;
              return !isLeft;
            }, true),
          ),
      );
      expect([after, inner.requests.length]).toEqual([[], requests]);
    },
  );

  it('Y2: a layer that stops a synchronous tool gets one result', async () => {
    const stop$ = new Subject<void>();
    const quota: Layer = {
      name: 'quota',
      step: () => (next) => (step) =>
        step.kind === 'tool' ? next(step).pipe(takeUntil(stop$)) : next(step),
    };
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => (stop$.next(), 'ok') });
    const model = scriptedModel([toolCall('pay')], [text('end')]);
    const seen = await record(
      createAgent({ model, tools: [pay], use: [quota] })
        .stream$('?')
        .pipe(verifyEvents()),
    );
    expect(seen.filter(({ type }) => type === 'postActing')).toHaveLength(1);
  });

  it('S6: a call that a layer answered while a tool ran is not resumed', async () => {
    const stop$ = new Subject<void>();
    const leaving: Layer = {
      name: 'leaving',
      priority: -1_000,
      call: (context) => (next) => (call) =>
        merge(stop$.pipe(concatMap(() => answerWith(context, call, 'Instead.'))), next(call)).pipe(
          take(1),
        ),
    };
    const records = journal(createCallStore(inProcessCalls()));
    const model = scriptedModel([toolCall('pay')], [text('end')]);
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => (stop$.next(), 'ok') });
    const agent = createAgent({ model, tools: [pay], use: [leaving, records] });
    expect((await agent.call('?', { callId: 'c' })).text).toBe('Instead.');
    expect(await lastValueFrom(records.resumeAll$(agent).pipe(toArray()))).toEqual([]);
    expect(model.requests).toHaveLength(1);
  });

  it('Y2: a layer of records may keep a call running that its caller has left', async () => {
    const background: Layer = {
      name: 'background',
      record: () => (call$) => call$.pipe(shareReplay({ bufferSize: Infinity, refCount: false })),
    };
    const model = scriptedModel(of(toolCall('look'), finish()).pipe(delay(0)), [text('end')]);
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'ok' });
    const agent = createAgent({ model, tools: [look], use: [background] });
    const ended = new Promise<void>((resolve) => {
      agent.events$.subscribe(({ type }) => void (type === 'postCall' && resolve()));
    });
    agent.call$('?').subscribe().unsubscribe();
    await ended;
    expect(model.requests).toHaveLength(2);
  });
});

describe('T18: many tool calls in a message', () => {
  it.each([
    ['exclusive', true, {}],
    ['one at a time', false, { parallel: 1 }],
    ['in parallel', false, { parallel: 8 }],
  ] as const)('%s, with a slow first one, neither nest nor stop', async (_, exclusive, limits) => {
    let count = 0;
    const look = tool({
      name: 'look',
      description: 'Looks.',
      exclusive,
      run: () => ((count += 1) === 1 ? Promise.resolve('ok') : 'ok'),
    });
    const uses = Array.from({ length: 1_000 }, (_use, i) => toolCall('look', { i }, `u${i}`));
    const model = scriptedModel(uses, [text('end')]);
    const agent = createAgent({
      model,
      tools: [look],
      limits: { maxToolCalls: 2_000, ...limits },
    });
    expect((await agent.call('?')).toolCalls).toHaveLength(1_000);
    expect(count).toBe(1_000);
  });
});
