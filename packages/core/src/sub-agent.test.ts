import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, Subject, tap } from 'rxjs';
import { type Agent, createAgent, inProcessMemory, only, textOf, tool } from './index.js';
import { marbles, record, scriptedModel, text, toolUse } from './testing/index.js';

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
    const model = scriptedModel([toolUse('tool')], [text('done')]);
    const outer = createAgent({ name: 'outer', model, tools: [asking(inner)] });
    const hot: string[] = [];
    inner.events$.subscribe(({ type }) => hot.push(type));
    const events = await record(outer.session('s').stream$('?', { callId: 'c' }));
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

  it('H1: interceptors do not descend', async () => {
    const inner = createAgent({ model: scriptedModel([text('secret')]) });
    const model = scriptedModel([toolUse('tool')], [text('done')]);
    const outer = createAgent({ model, tools: [asking(inner)] });
    expect((await outer.call('?')).toolUses).toMatchObject([{ output: 'secret' }]);
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
    const model = scriptedModel([toolUse('tool')], [text('done')]);
    const reply = await createAgent({ model, tools: [twice] }).call('?', { callId: 'c' });
    expect(reply.toolUses[0]?.output).toBe('c/call_1_0/1 c/call_1_0/2/1');
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

  it('S1: an interrupt descends: it ends politely before its parent leaves it', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const memory = inProcessMemory();
      const inner = createAgent({ name: 'inner', model: model('-t------'), memory });
      const asks = tool({
        name: 'tool',
        description: 'Asks in a session.',
        run: (_input, parent) =>
          inner
            .session('i')
            .call$('?', { parent })
            .pipe(map((reply) => `${reply.reason} ${textOf(reply)}`)),
      });
      const outer = createAgent({ model: model('(cf|)'), tools: [asks] });
      const reply$ = outer.call$('?', { interruptOn: cold('---x', { x: 0 }), scheduler });
      expectObservable(
        reply$.pipe(map(({ reason, toolUses }) => `${reason}: ${toolUses[0]?.output}`)),
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

  it('H5: a parent that fails takes it along, and both say so', async () => {
    const stop$ = new Subject<void>();
    const never = createAgent({
      name: 'never',
      model: { name: 'n', stream$: () => stop$.pipe(map(() => text('x'))) },
    });
    const outer = createAgent({
      name: 'outer',
      model: scriptedModel([toolUse('tool')]),
      tools: [asking(never)],
    });
    const errors: string[] = [];
    outer.events$
      .pipe(only('error'))
      .subscribe(({ agent, error }) => errors.push(`${agent.join('/')} ${error.code}`));
    await expect(outer.call('?', { timeouts: { callMs: 1 } })).rejects.toMatchObject({
      code: 'timeout',
    });
    expect(errors.sort()).toEqual(['outer timeout', 'outer/never aborted']);
    expect(stop$.observed).toBe(false);
  });
});
