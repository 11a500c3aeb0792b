import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concatMap,
  delay,
  EMPTY,
  filter,
  identity,
  interval,
  lastValueFrom,
  map,
  mergeMap,
  of,
  scan,
  switchMap,
  throwError,
  timer,
  tap,
} from 'rxjs';
import {
  type AgentEvent,
  type CallOptions,
  createAgent,
  inProcessMemory,
  type Interceptor,
  type Layer,
  on,
  onCall,
  textBlock,
  textOf,
  tool,
  watch,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { answerWith } from '../call/index.js';
import { analyseTask } from '../layers/planning/index.js';
import { sessions } from '../layers/sessions/index.js';
import { insertBefore, reasoning } from '../phases/index.js';

const echo = tool({
  name: 'echo',
  description: 'Says what it is given.',
  input: jsonSchema({ type: 'object', properties: { say: { type: 'string' } } }),
  run: ({ say }) => say ?? 'nothing',
});

const agentWith = (...interceptors: readonly Interceptor[]) => {
  const memory = inProcessMemory();
  const model = scriptedModel([toolCall('echo', { say: 'a' })], [text('done')]);
  const agent = createAgent({ model, tools: [echo], use: interceptors });
  return { model, memory: memory('s'), session: sessions(agent, { memory }).open('s') };
};

describe('an interceptor', () => {
  it('I11: an edit at preReasoning shapes that one request only', async () => {
    const { model, memory, session } = agentWith(
      on(
        'preReasoning',
        map((event) =>
          event.iteration === 1
            ? { ...event, options: { ...event.options, temperature: 1 }, messages: [] }
            : event,
        ),
      ),
    );
    await session.call('?');
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([0, 3]);
    expect(model.requests.map(({ temperature }) => temperature)).toEqual([1, undefined]);
    expect(await lastValueFrom(memory.load$())).toHaveLength(4);
  });

  it('I11: an edit at postReasoning reaches execution and memory', async () => {
    const { memory, session } = agentWith(
      on(
        'postReasoning',
        map((event) => ({
          ...event,
          message: {
            ...event.message,
            content: event.message.content.map((block) =>
              block.type === 'tool_call' ? { ...block, input: { say: 'b' } } : block,
            ),
          },
        })),
      ),
    );
    const reply = await session.call('?');
    expect(reply.toolCalls).toMatchObject([{ input: { say: 'b' }, output: 'b' }]);
    expect((await lastValueFrom(memory.load$()))[1]).toMatchObject({
      content: [{ input: { say: 'b' } }],
    });
  });

  it('I11: an edit at preActing reaches execution and memory, under the same id', async () => {
    const { memory, session } = agentWith(
      on(
        'preActing',
        map((event) => ({
          ...event,
          toolCall: { ...event.toolCall, id: 'x', input: { say: 'c' } },
        })),
      ),
    );
    const events = await record(session.stream$('?'));
    expect(events.find(({ type }) => type === 'preActing')).toMatchObject({
      toolCall: { id: 'call_1_0', input: { say: 'c' } },
    });
    const stored = await lastValueFrom(memory.load$());
    expect(stored[1]).toMatchObject({ content: [{ id: 'call_1_0', input: { say: 'c' } }] });
    expect(stored[2]).toMatchObject({ content: [{ content: [{ text: 'c' }] }] });
  });

  it('I11: an edit at postActing reaches the model and memory', async () => {
    const { model, memory, session } = agentWith(
      on(
        'postActing',
        map((event) => ({ ...event, result: { ...event.result, content: [textBlock('***')] } })),
      ),
    );
    await session.call('?');
    const seen = { content: [{ content: [{ text: '***' }] }] };
    expect(model.requests[1]?.messages.at(-1)).toMatchObject(seen);
    expect((await lastValueFrom(memory.load$()))[2]).toMatchObject(seen);
  });

  it('I11: an edit at postSummary reaches the reply and memory', async () => {
    const { memory, session } = agentWith(
      on(
        'postSummary',
        map((event) => ({
          ...event,
          message: { ...event.message, content: [textBlock('In short.')] },
        })),
      ),
    );
    const reply = await session.call('?', { limits: { maxIterations: 1 } });
    expect([reply.reason, textOf(reply)]).toEqual(['maxIterations', 'In short.']);
    const stored = await lastValueFrom(memory.load$());
    expect(stored.map((message) => textOf(message)).slice(-1)).toEqual(['In short.']);
    expect(stored.filter((message) => textOf(message) === 'done')).toEqual([]);
  });

  it('I11: an edit at postCall reaches the reply and memory, if it is stored once', async () => {
    const { memory, session } = agentWith(
      on(
        'postCall',
        map((event) => ({ ...event, reply: { ...event.reply, content: [textBlock('Edited.')] } })),
      ),
    );
    expect(textOf(await session.call('?'))).toBe('Edited.');
    const stored = await lastValueFrom(memory.load$());
    expect(stored.filter((message) => textOf(message) === 'done')).toEqual([]);
    expect(stored.filter((message) => textOf(message) === 'Edited.')).toHaveLength(1);
  });

  it('I1: an edit at postCall cannot ask for tools', async () => {
    const asks = { type: 'tool_call', id: '1', name: 'echo', input: {} } as const;
    const { memory, session } = agentWith(
      on(
        'postCall',
        map((event) => ({
          ...event,
          reply: { ...event.reply, content: [textBlock('And now?'), asks] },
        })),
      ),
    );
    expect((await session.call('?')).content).toEqual([textBlock('And now?')]);
    expect(await lastValueFrom(memory.load$())).toHaveLength(4);
  });

  it('H2: no value at preActing rejects that call alone', async () => {
    const model = scriptedModel(
      [toolCall('echo', { say: 'rm' }), toolCall('echo', { say: 'ls' })],
      [text('done')],
    );
    const guard = on(
      'preActing',
      filter((event) => event.toolCall.input['say'] !== 'rm'),
      { name: 'guard' },
    );
    const agent = createAgent({ model, tools: [echo], use: [guard] });
    const events = await record(agent.stream$('?'));
    expect(events.find(({ type }) => type === 'vetoed')).toMatchObject({
      of: 'preActing',
      name: 'guard',
    });
    expect(events.at(-1)).toMatchObject({
      reply: { reason: 'answer', toolCalls: [{ isError: true }, { isError: false, output: 'ls' }] },
    });
  });

  it.each(['preReasoning', 'postReasoning', 'postCall'] as const)(
    'H2: no value at %s ends the call, with reason stopped',
    async (type) => {
      const { memory, session } = agentWith(on(type, () => EMPTY));
      const events = await record(session.stream$('?'));
      expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'stopped' } });
      expect(events.some((event) => event.type === 'vetoed' && event.of === type)).toBe(true);
      const stored = await lastValueFrom(memory.load$());
      expect(stored.at(-1)).toMatchObject({ role: 'assistant', content: [{ text: 'Stopped.' }] });
    },
  );

  it('H2: no value at postActing replaces the result', async () => {
    const { model, session } = agentWith(on('postActing', () => EMPTY));
    await record(session.stream$('?'));
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      content: [{ isError: true, content: [{ text: 'The result of this tool was rejected.' }] }],
    });
  });

  it.each([
    ['two values', mergeMap((event: unknown) => of(event, event)), /emitted more than one/],
    [
      'another type',
      map((event: object) => ({ ...event, type: 'postCall' })),
      /something that is not/,
    ],
    ['nothing of the kind', map(() => undefined), /something that is not/],
    ['a forgotten return', () => undefined, /stream was expected|invalid object/],
    ['an error', () => throwError(() => new Error('oops')), /oops/],
  ])('H2: %s is an error that names it', async (_, operator, message) => {
    const { session } = agentWith(on('preReasoning', operator as never, { name: 'culprit' }));
    const call = session.call('?');
    await expect(call).rejects.toMatchObject({ code: 'interceptor' });
    await expect(call).rejects.toThrow(/culprit/);
    await expect(call).rejects.toThrow(message);
  });

  it('H2: with failOpen an error is passed over, with an event', async () => {
    const broken = on('preActing', () => throwError(() => new Error('oops')), { failOpen: true });
    const { session } = agentWith(broken);
    const events = await record(session.stream$('?'));
    expect(events.find(({ type }) => type === 'handlerError')).toMatchObject({
      of: 'preActing',
      error: { code: 'interceptor' },
    });
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'answer' } });
  });

  it('H2: the loop waits for a slow one', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const scripted = model('--t(f|)');
      const slow = on(
        'preReasoning',
        concatMap((event) => timer(3).pipe(map(() => event))),
      );
      const agent = createAgent({ model: scripted, use: [slow] });
      const text$ = agent.call$('?', { scheduler }).pipe(map(textOf));
      expectObservable(text$).toBe('------(r|)', { r: 't' });
      for (const log of scripted.subscriptions) expectSubscriptions(log).toBe('---^--!');
    });
  });

  it('H2: onCall builds its state for each call again', async () => {
    const counts: number[] = [];
    const counter = onCall('preReasoning', () => {
      let count = 0;
      return map((event) => {
        count += 1;
        counts.push(count);
        return event;
      });
    });
    const model = scriptedModel([toolCall('echo')], [text('a')], [text('b')]);
    const agent = createAgent({ model, tools: [echo], use: [counter] });
    await agent.call('?');
    await agent.call('?');
    expect(counts).toEqual([1, 2, 1]);
  });

  it('H2: each event comes alone, so that an operator with memory starts afresh', async () => {
    const seen: number[] = [];
    const count = on('preReasoning', (event$) =>
      event$.pipe(
        scan((all, event) => [...all, event], [] as unknown[]),
        map((all) => {
          seen.push(all.length);
          return all.at(-1) as never;
        }),
      ),
    );
    const { session } = agentWith(count);
    await session.call('?');
    expect(seen).toEqual([1, 1]);
  });

  it('H3: goes by priority, and by registration if that is the same', async () => {
    const order: string[] = [];
    const mark = (name: string, priority?: number) =>
      on(
        'preActing',
        map((event) => {
          order.push(name);
          return event;
        }),
        priority === undefined ? {} : { priority },
      );
    const { session } = agentWith(mark('c'), mark('a', 1), mark('d'), mark('b', 99));
    await session.call('?');
    expect(order).toEqual(['a', 'b', 'c', 'd']);
  });

  it('X19: a subscriber cannot change what is run', async () => {
    const { session } = agentWith(
      on(
        'preActing',
        map((event) => ({ ...event })),
      ),
    );
    session.events$.subscribe((event) => {
      if (event.type === 'preActing') Reflect.set(event.toolCall, 'name', 'rm');
      if (event.type === 'postActing') Reflect.set(event.result, 'isError', true);
    });
    expect((await session.call('?')).toolCalls).toMatchObject([{ name: 'echo', isError: false }]);
  });

  it('X19: an edit that is frozen at its surface is frozen through', async () => {
    const { session } = agentWith(
      on(
        'postReasoning',
        map((event) => Object.freeze({ ...event, message: { ...event.message } })),
      ),
    );
    const events = await record(session.stream$('?'));
    const messages = events.flatMap((event) =>
      event.type === 'postReasoning' ? [event.message] : [],
    );
    expect(messages.map((message) => Object.isFrozen(message))).toEqual([true, true]);
  });

  it('T18: sees the whole result of a tool, which is cut after it', async () => {
    const lengths: number[] = [];
    const model = scriptedModel([toolCall('echo', { say: 'x'.repeat(50) })], [text('done')]);
    const watch = on(
      'postActing',
      map((event) => {
        lengths.push(textOf(event.result).length);
        return { ...event, result: { ...event.result, content: [textBlock('y'.repeat(40))] } };
      }),
    );
    const agent = createAgent({ model, tools: [echo], use: [watch] });
    const reply = await agent.call('?', { limits: { maxObservation: 10 } });
    expect(lengths).toEqual([50]);
    expect(reply.toolCalls[0]?.output).toMatch(/^y{10}\n\[… 30 of 40/);
  });

  it.each([
    ['postReasoning', { message: { content: 'Edited' } }],
    ['preActing', { toolCall: { name: 5 } }],
    ['postActing', { result: { content: [{ type: 'text' }] } }],
    ['postCall', { reply: { content: [null] } }],
    ['preReasoning', { messages: null }],
  ] as const)(
    'H2: an edit at %s that breaks the event is an error that names it',
    async (type, edit) => {
      const spoil = map((event: object) => ({ ...event, ...edit }));
      const { session } = agentWith(on(type, spoil as never, { name: 'spoiler' }));
      await expect(session.call('?')).rejects.toThrow(/spoiler/);
    },
  );

  it('H2: an edit cannot use the id of an earlier tool use again', async () => {
    const again = on(
      'postReasoning',
      map((event) => {
        if (event.iteration === 1) return event;
        const asks = { type: 'tool_call', id: 'call_1_0', name: 'echo', input: {} } as const;
        return { ...event, message: { ...event.message, content: [asks] } };
      }),
    );
    const { session } = agentWith(again);
    await expect(session.call('?')).rejects.toMatchObject({ code: 'interceptor' });
  });

  it('H2: two values of an operator that does not end are an error, not a hang', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const ticking = on('preReasoning', (event$) =>
        event$.pipe(switchMap((event) => interval(1, scheduler).pipe(map(() => event)))),
      );
      const agent = createAgent({ model: model('t(f|)'), use: [ticking] });
      const code$ = agent
        .call$('?', { scheduler })
        .pipe(catchError((error: unknown) => of(Reflect.get(Object(error), 'code'))));
      expectObservable(code$).toBe('--(c|)', { c: 'interceptor' });
    });
  });

  it('I4: what was shown and is not kept is discarded', async () => {
    const { session } = agentWith(on('postCall', () => EMPTY));
    const events = await record(session.stream$('?'));
    expect(events.slice(-2).map(({ type }) => type)).toEqual(['messageDiscarded', 'postCall']);
  });

  it('X19: what an interceptor gets is frozen, and so is what subscribers get', async () => {
    const frozen: boolean[] = [];
    const { session } = agentWith(
      on(
        'postReasoning',
        map((event) => {
          frozen.push(Object.isFrozen(event.message), Object.isFrozen(event.message.content));
          return event;
        }),
      ),
    );
    const events = await record(session.stream$('?'));
    expect(frozen).not.toContain(false);
    expect(events.every((event) => Object.isFrozen(event))).toBe(true);
  });

  it('a misplaced one is refused, with the types that there are', () => {
    expect(() => on('reasoningChunk' as never, identity)).toThrow(/only watched.*postReasoning/s);
    expect(() => on('preActing', identity, { prio: 1 } as never)).toThrow(/'prio'.*priority/s);
  });

  it('X19: an edit in place cannot reach later requests: it is an error', async () => {
    const pop = on(
      'preReasoning',
      tap(({ options }) => (options.tools as unknown[]).pop()),
      {
        name: 'popper',
      },
    );
    const model = scriptedModel([text('.')]);
    const agent = createAgent({ model, tools: [echo], use: [pop] });
    await expect(agent.call('?')).rejects.toThrow(/popper/);
  });

  describe('of actingChunk', () => {
    const counting = tool({ name: 'echo', description: 'Counts.', run: () => of('a', 'b', 'c') });
    const run = (interceptor: Interceptor, options: CallOptions = {}) => {
      const model = scriptedModel([toolCall('echo', { say: 'a' })], [text('done')]);
      return createAgent({ model, tools: [counting], use: [interceptor] }).stream$('?', options);
    };
    const progress = (events: readonly AgentEvent[]) =>
      events.flatMap((it) => (it.type === 'actingChunk' ? [it.value] : []));

    it('H8: maps and drops what subscribers receive; the result does not change', async () => {
      const upper = on(
        'actingChunk',
        concatMap((event) =>
          event.value === 'b' ? EMPTY : of({ ...event, value: String(event.value).toUpperCase() }),
        ),
      );
      const events = await record(run(upper));
      expect(progress(events)).toEqual(['A', 'C']);
      expect(events.some(({ type }) => type === 'vetoed')).toBe(false);
      expect(events.find((it) => it.type === 'postActing')?.result.content).toEqual([text('abc')]);
    });

    it('H2: the tool waits for a slow one', () => {
      marbles(({ scheduler, expectObservable }) => {
        const slow = on('actingChunk', delay(2, scheduler));
        const type$ = run(slow, { scheduler }).pipe(
          filter(({ type }) => type === 'actingChunk' || type === 'postCall'),
          map(({ type }) => (type === 'postCall' ? 'p' : 'c')),
        );
        expectObservable(type$).toBe('--c-c-(cp|)');
      });
    });

    it('H2: an error fails the call, and is no result of the tool', async () => {
      const fails = on('actingChunk', () => throwError(() => new Error('No.')), { name: 'broken' });
      await expect(lastValueFrom(run(fails))).rejects.toMatchObject({
        code: 'interceptor',
        message: expect.stringContaining('broken'),
      });
      const open = on('actingChunk', () => throwError(() => new Error('No.')), { failOpen: true });
      const events = await record(run(open));
      expect(progress(events)).toEqual(['a', 'b', 'c']);
      expect(events.filter(({ type }) => type === 'handlerError')).toHaveLength(3);
    });
  });

  describe('of preCall', () => {
    const run = (interceptor: Interceptor, options: CallOptions = {}) => {
      const model = scriptedModel([text('done')]);
      const agent = createAgent({ model, use: [interceptor] });
      return { model, stream$: agent.stream$('The code is 4711.', options) };
    };
    const inputs = (events: readonly AgentEvent[]) =>
      events.flatMap((it) => (it.type === 'preCall' ? it.input.map(textOf) : []));

    it('H8: an edit reaches subscribers, and neither the model nor the reply', async () => {
      const secretly = on(
        'preCall',
        map((event) => ({
          ...event,
          input: event.input.map((it) => ({ ...it, content: [textBlock('…')] }) as typeof it),
        })),
      );
      const { model, stream$ } = run(secretly);
      const events = await record(stream$);
      expect(inputs(events)).toEqual(['…']);
      expect(model.requests[0]?.messages.map(textOf)).toEqual(['The code is 4711.']);
      expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { text: 'done' } });
    });

    it('H8: a veto hides the input, and the call continues', async () => {
      const events = await record(run(on('preCall', () => EMPTY)).stream$);
      expect(events[0]).toMatchObject({ type: 'preCall', input: [] });
      expect(events.map(({ type }) => type)).not.toContain('vetoed');
      expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
    });

    it('H2: the call waits for a slow one; unsubscribing ends the wait', () => {
      marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
        const gate$ = cold('---(a|)');
        const slow = on(
          'preCall',
          concatMap((event) => gate$.pipe(map(() => event))),
        );
        const types$ = run(slow, { scheduler }).stream$.pipe(
          filter(({ type }) => type === 'preCall' || type === 'postCall'),
          map(({ type }) => (type === 'postCall' ? 'p' : 'b')),
        );
        expectObservable(types$).toBe('---(bp|)', { b: 'b', p: 'p' });
        expectObservable(types$, '--!').toBe('---');
        expectSubscriptions(gate$.subscriptions).toBe(['^--!', '^-!']);
      });
    });

    it.each([
      ['an error', () => throwError(() => new Error('No.'))],
      ['something else', map((event: object) => ({ ...event, input: '?' }) as never)],
    ])('H2: %s fails the call, or is ignored with failOpen', async (_name, operator) => {
      await expect(lastValueFrom(run(on('preCall', operator)).stream$)).rejects.toMatchObject({
        code: 'interceptor',
      });
      const events = await record(run(on('preCall', operator, { failOpen: true })).stream$);
      expect(inputs(events)).toEqual(['The code is 4711.']);
      expect(events.filter(({ type }) => type === 'handlerError')).toHaveLength(1);
    });

    it('H8: sees a call once that a layer answers before it begins', async () => {
      const early: Layer = {
        name: 'early',
        priority: 1,
        call: (context) => () => (call) => answerWith(context, call, 'At once.'),
      };
      const agent = createAgent({ model: scriptedModel([]), use: [early] });
      const events = await record(agent.with(on('preCall', () => EMPTY)).stream$('?'));
      expect(events.map(({ type }) => type)).toEqual(['preCall', 'postCall']);
      expect(inputs(events)).toEqual([]);
    });
  });

  describe('of summaryChunk', () => {
    const run = (interceptor: Interceptor, options: CallOptions = {}) => {
      const model = scriptedModel(
        [toolCall('echo', { say: 'a' })],
        [text('so '), text('far'), text('.')],
      );
      const agent = createAgent({ model, tools: [echo], use: [interceptor] });
      return agent.stream$('?', { limits: { maxIterations: 1 }, ...options });
    };
    const deltas = (events: readonly AgentEvent[]) =>
      events.flatMap((it) => (it.type === 'summaryChunk' ? [it.delta] : []));

    it('H8: maps and drops what subscribers receive; the reply does not change', async () => {
      const events = await record(
        run(
          on(
            'summaryChunk',
            concatMap((event) =>
              event.delta === 'far' ? EMPTY : of({ ...event, delta: event.delta.toUpperCase() }),
            ),
          ),
        ),
      );
      expect(deltas(events)).toEqual(['SO ', '.']);
      expect(events.some(({ type }) => type === 'vetoed')).toBe(false);
      expect(events.at(-1)).toMatchObject({ reply: { text: 'so far.', reason: 'maxIterations' } });
    });

    it('H2: the message waits for a slow one', () => {
      marbles(({ scheduler, expectObservable }) => {
        const slow = on('summaryChunk', delay(2, scheduler));
        const types$ = run(slow, { scheduler }).pipe(
          filter(({ type }) => type === 'summaryChunk' || type === 'postCall'),
          map(({ type }) => (type === 'postCall' ? 'p' : 'c')),
        );
        expectObservable(types$).toBe('--c-c-(cp|)');
      });
    });

    it('H2: an error fails the call', async () => {
      const fails = on('summaryChunk', () => throwError(() => new Error('No.')), {
        name: 'broken',
      });
      await expect(lastValueFrom(run(fails))).rejects.toMatchObject({
        code: 'interceptor',
        message: expect.stringContaining('broken'),
      });
    });
  });

  it('H8: planningChunk is changed for subscribers only', async () => {
    const agent = createAgent({
      model: scriptedModel([text('Think.')], [text('done')]),
      use: [
        insertBefore(reasoning, analyseTask()),
        on(
          'planningChunk',
          map((event) => ({ ...event, delta: '…' })),
        ),
      ],
    });
    const events = await record(agent.stream$('?'));
    expect(events.flatMap((it) => (it.type === 'planningChunk' ? [it.delta] : []))).toEqual(['…']);
    expect(events.find((it) => it.type === 'postPlanning')?.message.content).toEqual([
      text('Think.'),
    ]);
  });

  it('has a default name that interceptors with names do not change', async () => {
    const nameWith = async (...outer: readonly Interceptor[]) => {
      const vetoes = on(
        'preActing',
        filter(() => false),
      );
      const { session } = agentWith(...outer, watch(identity), vetoes);
      const events = await record(session.stream$('?'));
      return events.flatMap((event) => (event.type === 'vetoed' ? [event.name] : []));
    };
    const named = { name: 'outer', priority: -1 };
    const [other, seeing] = [on('preActing', identity, named), watch(identity, { name: 'seen' })];
    const alone = await nameWith();
    expect(alone).toEqual(["on('preActing') at position 2"]);
    expect(await nameWith(other, seeing)).toEqual(alone);
  });

  it('refuses what only looks like one', () => {
    const fake = { kind: 'event', type: 'postCall' } as never;
    expect(() => createAgent({ model: scriptedModel(), use: [fake] })).toThrow(/on\(type/);
  });
});
