import { describe, expect, it } from '@jest/globals';
import { from, lastValueFrom, map, Subject, tap, throwError } from 'rxjs';
import {
  type Agent,
  createAgent,
  createDemand,
  fromPull,
  inProcessMemory,
  interruptOn,
  type Model,
  type ModelChunk,
  only,
  textOf,
  tool,
} from '../index.js';
import { finish, marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

/** A tool that asks an agent, in the call that uses it. */
const asking = (agent: Agent) =>
  tool({
    name: 'tool',
    description: `Asks ${agent.name}.`,
    run: (_input, parent) => agent.call$('?', { parent }).pipe(map((reply) => textOf(reply))),
  });

describe('a sub-agent', () => {
  it('H1: is in the stream of its parent, numbered with it, with its path', async () => {
    const inner = createAgent({ name: 'inner', model: scriptedModel([text('deep')]) });
    const model = scriptedModel([toolCall('tool')], [text('done')]);
    const outer = createAgent({ name: 'outer', model, tools: [asking(inner)] });
    const hot: string[] = [];
    inner.events$.subscribe(({ type }) => hot.push(type));
    const events = await record(sessions(outer).open('s').stream$('?', { callId: 'c' }));
    const below = events.filter(({ parentId }) => parentId === 'c');
    expect(below.map(({ type }) => type)).toEqual(hot);
    expect(below).toHaveLength(5);
    for (const event of below) {
      expect(event).toMatchObject({
        rootId: 'c',
        callId: 'c/call_1_0',
        sessionId: 's',
        agent: ['outer', 'inner'],
      });
    }
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  });

  it('H5: is heard by the session of its parent, also in a session of its own', async () => {
    const inner = createAgent({ name: 'inner', model: scriptedModel([text('a')], [text('b')]) });
    const asks = tool({
      name: 'tool',
      description: 'Asks in a session.',
      run: (_input, parent) => sessions(inner).open('i').call$('?', { parent }).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('tool')], [text('done')], [text('other')]);
    const outer = createAgent({ name: 'outer', model, tools: [asks] });
    const heard: string[] = [];
    sessions(outer)
      .open('s')
      .events$.subscribe(({ agent, type }) => heard.push(`${agent.at(-1)} ${type}`));
    const all = await record(sessions(outer).open('s').stream$('?'));
    await sessions(outer).open('t').call('?');
    expect(heard).toEqual(all.map(({ agent, type }) => `${agent.at(-1)} ${type}`));
    expect(heard).toContain('inner postCall');
  });

  it('H1: interceptors do not descend', async () => {
    const inner = createAgent({ model: scriptedModel([text('secret')]) });
    const model = scriptedModel([toolCall('tool')], [text('done')]);
    const outer = createAgent({ model, tools: [asking(inner)] });
    expect((await outer.call('?')).toolCalls).toMatchObject([{ output: 'secret' }]);
  });

  it('H1: two calls of one tool have ids of their own', async () => {
    const inner = createAgent({ model: scriptedModel([text('a')], [text('b')]) });
    const twice = tool({
      name: 'tool',
      description: 'Asks twice.',
      run: async (_input, parent) => {
        const first = await inner.call('1', { parent });
        const second = await inner.call('2', { parent });
        return `${first.id} ${second.id}`;
      },
    });
    const model = scriptedModel([toolCall('tool')], [text('done')]);
    const reply = await createAgent({ model, tools: [twice] }).call('?', { callId: 'c' });
    expect(reply.toolCalls[0]?.output).toBe('c/call_1_0/1 c/call_1_0+2/1');
  });

  it('I5: leaving the parent ends it in the same tick, three levels down', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const deepest = model('--t-----');
      const middle = createAgent({
        name: 'm',
        model: model('(cf|)'),
        tools: [asking(createAgent({ model: deepest }))],
      });
      const outer = createAgent({ name: 'o', model: model('(cf|)'), tools: [asking(middle)] });
      expectObservable(outer.call$('?', { scheduler }), '^---!').toBe('----');
      for (const log of deepest.subscriptions) expectSubscriptions(log).toBe('^---!');
    });
  });

  it('I5: leaving the parent ends it also if the tool waits for its promise', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const deepest = model('--t-----');
      const inner = createAgent({ name: 'inner', model: deepest });
      const asks = tool({
        name: 'tool',
        description: 'Asks, and awaits.',
        run: async (_input, parent) => textOf(await inner.call('?', { parent })),
      });
      const outer = createAgent({ name: 'outer', model: model('(cf|)'), tools: [asks] });
      expectObservable(outer.call$('?', { scheduler }), '^---!').toBe('----');
      for (const log of deepest.subscriptions) expectSubscriptions(log).toBe('^---!');
    });
  });

  it('L8: agents nest 200 levels deep, synchronously', async () => {
    let level = 0;
    const digger: Agent = createAgent({
      model: {
        name: 'digger',
        stream$: ({ messages }) =>
          from([messages.length > 1 ? text('up') : toolCall('dig'), finish()]),
      },
      tools: [
        tool({
          name: 'dig',
          description: 'Digs.',
          run: (_input, parent) => {
            level += 1;
            return level < 200 ? digger.call$('?', { parent }).pipe(map(textOf)) : 'bottom';
          },
        }),
      ],
    });
    expect(textOf(await digger.call('?'))).toBe('up');
    expect(level).toBe(200);
  });

  it('S1: an interrupt reaches one whose own interruptOn has failed', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const inner = createAgent({ name: 'inner', model: model('-t------') });
      const asks = tool({
        name: 'tool',
        description: 'Asks.',
        run: (_input, parent) =>
          inner
            .call$('?', { parent, use: [interruptOn(throwError(() => new Error('lost')))] })
            .pipe(map(({ reason }) => reason)),
      });
      const outer = createAgent({ model: model('(cf|)'), tools: [asks] });
      const reply$ = outer.call$('?', { use: [interruptOn(cold('---x', { x: 0 }))], scheduler });
      expectObservable(reply$.pipe(map(({ toolCalls }) => toolCalls[0]?.output))).toBe('---(r|)', {
        r: 'interrupted',
      });
    });
  });

  it('I16: is paused by the consumer of its parent, though it has one of its own', async () => {
    let taken = 0;
    async function* tokens(): AsyncGenerator<ModelChunk> {
      for (; taken < 500; taken += 1) yield await Promise.resolve(text('x'));
      yield finish();
    }
    const model: Model = { name: 'm', stream$: (_, { demand }) => fromPull(tokens, demand) };
    const inner = createAgent({ name: 'inner', model });
    const asks = tool({
      name: 'tool',
      description: 'Pulls.',
      run: async function* (_input, parent) {
        for await (const event of inner.stream('?', { parent })) yield event.type;
      },
    });
    const gate = createDemand(8);
    const outer = createAgent({ model: scriptedModel([toolCall('tool')]), tools: [asks] });
    const running = outer
      .stream$('?', { demand: gate })
      .subscribe(({ seq }) => gate.backlog(seq > 30 ? 8 : 0));
    await new Promise((resolve) => setImmediate(resolve));
    running.unsubscribe();
    expect(taken).toBeLessThan(40);
  });

  it('S1: an interrupt descends: it ends politely before its parent leaves it', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const memory = inProcessMemory();
      const inner = createAgent({ name: 'inner', model: model('-t------') });
      const asks = tool({
        name: 'tool',
        description: 'Asks in a session.',
        run: (_input, parent) =>
          sessions(inner, { memory })
            .open('i')
            .call$('?', { parent })
            .pipe(map((reply) => `${reply.reason} ${textOf(reply)}`)),
      });
      const outer = createAgent({ model: model('(cf|)'), tools: [asks] });
      const reply$ = outer.call$('?', { use: [interruptOn(cold('---x', { x: 0 }))], scheduler });
      expectObservable(
        reply$.pipe(map(({ reason, toolCalls }) => `${reason}: ${toolCalls[0]?.output}`)),
      ).toBe('---(r|)', { r: 'interrupted: interrupted t' });
      scheduler.schedule(() => {
        void lastValueFrom(
          memory('i')
            .load$()
            .pipe(tap((stored) => expect(stored).toHaveLength(2))),
        );
      }, 5);
    });
  });

  it('H5: a parent that fails ends it too, and both report it', async () => {
    const stop$ = new Subject<void>();
    const never = createAgent({
      name: 'never',
      model: { name: 'n', stream$: () => stop$.pipe(map(() => text('x'))) },
    });
    const outer = createAgent({
      name: 'outer',
      model: scriptedModel([toolCall('tool')]),
      tools: [asking(never)],
    });
    const errors: string[] = [];
    outer.events$
      .pipe(only('error'))
      .subscribe(({ agent, error }) => errors.push(`${agent.join('/')} ${error.code}`));
    await expect(outer.call('?', { limits: { timeouts: { callMs: 1 } } })).rejects.toMatchObject({
      code: 'timeout',
    });
    expect(errors.sort()).toEqual(['outer timeout', 'outer/never aborted']);
    expect(stop$.observed).toBe(false);
  });
});
