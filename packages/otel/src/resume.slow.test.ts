import { describe, expect, it } from '@jest/globals';
import { createAgent, interruptOn, type Layer, tool, toolResults } from 'millrace';
import { createCallStore, fork$, inProcessCalls, journal } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { record, scriptedModel, text, toolCall } from 'millrace/testing';
import { delayWhen, firstValueFrom, NEVER, Subject } from 'rxjs';
import { endedProcess, suspendingProcess } from './first-process.test-support.js';
import { otel } from './index.js';
import { inMemory } from './traces.test-support.js';

const withoutTimes = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => line.replace(/ [\d.]+(?:-[\d.]+)?(?: CLIENT)?(?= |$)/u, ''));

describe('a call that is resumed in another process', () => {
  it('links its span to that of the first process, and so does its sub-agent', async () => {
    const { exitCode, spans, store } = await endedProcess();
    expect(exitCode).toBe(9);
    expect(spans.map(({ name }) => name)).toEqual([
      'chat scripted',
      'chat scripted',
      'execute_tool look',
      'chat scripted',
    ]);
    const memory = inMemory();
    const instant = (name: string) =>
      tool({ name, description: 'Is quick.', idempotent: true, run: () => 'Done.' });
    const inner = createAgent({
      name: 'inner',
      model: scriptedModel([text('A mill.')]),
      tools: [instant('look'), instant('slow')],
    });
    const durable = journal(store);
    const outer = createAgent({
      name: 'outer',
      model: scriptedModel([text('There is a mill.')]),
      tools: [agentTool(inner, { description: 'Looks.' })],
      use: [otel(memory.providers), durable],
    });
    await durable.resume(outer, 'c');
    expect(withoutTimes(memory.tree())).toEqual([
      'invoke_agent outer resumed=true reply.reason=answer',
      '  ~ resumed c',
      '  ! millrace.uncertain tool.name=inner tool.call.id=i then=rerun',
      '  execute_tool inner',
      '    invoke_agent inner resumed=true reply.reason=answer',
      '      ~ resumed c/i',
      // Its tools have become idempotent: what the first process has begun was not.
      '      ! millrace.warning',
      '      ! millrace.uncertain tool.name=slow tool.call.id=b then=report',
      '      execute_tool slow ERROR error.type=tool',
      '      chat scripted',
      '  chat scripted',
    ]);
    // The spans of the first process that were still open are not exported, but those below them have their ids.
    const links = memory.spans().flatMap((span) => span.links.map(({ context }) => context));
    const [outerChat, innerChat] = spans;
    expect(links.map(({ traceId, spanId }) => [traceId, spanId])).toEqual([
      [innerChat?.traceId, innerChat?.parent],
      [outerChat?.traceId, outerChat?.parent],
    ]);
    expect(links.every(({ isRemote }) => isRemote)).toBe(true);
  });
});

describe('a call that was suspended in another process', () => {
  it('continues in a call of the same conversation', async () => {
    const { exitCode, spans, state } = await suspendingProcess();
    expect(exitCode).toBe(0);
    const first = spans.at(-1);
    expect([first?.name, first?.attributes]).toMatchObject([
      'invoke_agent agent',
      { 'millrace.reply.reason': 'suspended', 'millrace.suspended': true },
    ]);
    const memory = inMemory();
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => 'No one.' });
    const agent = createAgent({
      model: scriptedModel([text('A person.')]),
      tools: [ask],
      use: [otel(memory.providers)],
    });
    const session = sessions(agent).open('s');
    await session.loadState(state);
    await session.call(toolResults({ a: 'A person.' }));
    expect(withoutTimes(memory.tree())).toEqual([
      'invoke_agent agent reply.reason=answer',
      '  chat scripted',
    ]);
    const conversation = memory.spans().at(-1)?.attributes['gen_ai.conversation.id'];
    expect(conversation).toBe(first?.attributes['gen_ai.conversation.id']);
    expect(conversation).toBe('s');
  });
});

const stopping = tool({ name: 'stop', description: 'Hangs.', idempotent: true, run: () => NEVER });
const quick = tool({ name: 'stop', description: 'Works.', idempotent: true, run: () => 'Done.' });

/** The process ends before a cut step is recorded. */
const slowEnd: Layer = {
  name: 'slowEnd',
  priority: 35,
  step: () => (next) => (step) =>
    step.id === '2' ? next(step).pipe(delayWhen(() => NEVER)) : next(step),
};

type Place = 'preReasoning' | 'preActing';

/** The types of the events of a call that was left in its first request, or in its tool. */
const resumed = async (leftAt: Place, before: readonly Layer[], after: readonly Layer[]) => {
  const store = createCallStore(inProcessCalls());
  const first = createAgent({
    model: scriptedModel(leftAt === 'preReasoning' ? NEVER : [toolCall('stop')]),
    tools: [stopping],
    use: [...before, journal(store)],
  });
  const stopped = new Promise<void>((resolve) => {
    const call = first.stream$('?', { callId: 'c' }).subscribe(({ type }) => {
      if (type !== leftAt) return;
      setImmediate(() => {
        call.unsubscribe();
        resolve();
      });
    });
  });
  await stopped;
  const durable = journal(store);
  const second = createAgent({
    model: scriptedModel([text('Done.')]),
    tools: [quick],
    use: [...after, durable],
  });
  const events = await record(durable.resumeStream$(second, 'c'));
  return events.map(({ type }) => type);
};

describe('a journal with spans', () => {
  it.each<Place>(['preReasoning', 'preActing'])(
    'is resumed as without them, in any process that traces: left at %s',
    async (leftAt) => {
      const traced = () => otel(inMemory().providers);
      const plain = await resumed(leftAt, [], []);
      expect(plain.at(-1)).toBe('postCall');
      expect(await resumed(leftAt, traced(), [])).toEqual(plain);
      expect(await resumed(leftAt, [], traced())).toEqual(plain);
      // One more step is replayed.
      const own = await resumed(leftAt, traced(), traced());
      expect(own.filter((type) => type !== 'stepReplayed')).toEqual(
        plain.filter((type) => type !== 'stepReplayed'),
      );
      expect(own.length).toBe(plain.length + 1);
    },
  );

  it('has the interrupt of a call that began without spans after the same step', async () => {
    const resumedWith = async (after: readonly Layer[]) => {
      const store = createCallStore(inProcessCalls());
      const interrupts = new Subject<string>();
      const first = createAgent({
        model: scriptedModel([toolCall('stop')], NEVER),
        tools: [quick],
        use: [interruptOn(interrupts), slowEnd, journal(store)],
      });
      await new Promise<void>((resolve) => {
        const call = first.stream$('?', { callId: 'c' }).subscribe(({ type, iteration }) => {
          if (type !== 'preReasoning' || iteration !== 2) return;
          setImmediate(() => {
            interrupts.next('Enough.');
            call.unsubscribe();
            resolve();
          });
        });
      });
      const durable = journal(store);
      const model = scriptedModel([text('Not asked.')]);
      const second = createAgent({ model, tools: [quick], use: [...after, durable] });
      const events = await record(durable.resumeStream$(second, 'c'));
      return [events.map(({ type }) => type), model.requests.length];
    };
    expect(await resumedWith(otel(inMemory().providers))).toEqual(await resumedWith([]));
  });

  it('a call that had ended has a span without a link: nothing of it is run', async () => {
    const store = createCallStore(inProcessCalls());
    const memory = inMemory();
    const durable = journal(store);
    const agent = createAgent({
      model: scriptedModel([text('Yes.')]),
      use: [otel(memory.providers), durable],
    });
    await agent.call('?', { callId: 'c' });
    await durable.resume(agent, 'c');
    expect(withoutTimes(memory.tree())).toEqual([
      'invoke_agent agent reply.reason=answer',
      '  chat scripted',
      'invoke_agent agent resumed=true reply.reason=answer',
    ]);
  });

  it('a fork links to the call that it was made from', async () => {
    const store = createCallStore(inProcessCalls());
    const memory = inMemory();
    const durable = journal(store);
    const agent = createAgent({
      model: scriptedModel([toolCall('stop')], [text('Yes.')], [text('No.')]),
      tools: [quick],
      use: [otel(memory.providers), durable],
    });
    await agent.call('?', { callId: 'c' });
    const fork = await firstValueFrom(fork$(store, 'c', { at: '2', callId: 'f' }));
    await durable.resume(agent, fork);
    expect(withoutTimes(memory.tree('millrace.forked_from'))).toEqual([
      'invoke_agent agent reply.reason=answer',
      '  chat scripted',
      '  execute_tool stop',
      '  chat scripted',
      'invoke_agent agent resumed=true forked_from=c reply.reason=answer',
      '  ~ forked c',
      '  chat scripted',
    ]);
    const former = memory.spans().find(({ name }) => name.startsWith('invoke_agent'));
    const link = memory.spans().at(-1)?.links[0]?.context;
    expect(link?.spanId).toBe(former?.spanContext().spanId);
  });

  it.each([
    ['a text', 'damaged'],
    ['other ids', { call: 'c', traceId: '0', spanId: '0', traceFlags: 'x' }],
    ['no ids', {}],
    ['ids of zeros', { call: 'c', traceId: '0'.repeat(32), spanId: '0'.repeat(16) }],
    ['no call', { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }],
  ])('a damaged record of the span costs the link, not the call: %s', async (_what, damaged) => {
    const store = createCallStore(inProcessCalls());
    const memory = inMemory();
    const durable = journal(store);
    const agent = createAgent({
      model: scriptedModel([text('Yes.')], [text('No.')]),
      use: [otel(memory.providers), durable],
    });
    await agent.call('?', { callId: 'c' });
    const options = { at: '1', edit: { otel: damaged } };
    const fork = await firstValueFrom(fork$(store, 'c', options));
    expect((await durable.resume(agent, fork)).text).toBe('No.');
    expect(memory.spans().at(-1)?.links).toEqual([]);
  });

  it('without a journal, or with spans that are not recorded, a call has no step for its span', async () => {
    const steps: string[] = [];
    const noting: Layer = {
      name: 'noting',
      step: () => (next) => (step) => {
        steps.push(step.id);
        return next(step);
      },
    };
    const model = () => scriptedModel([text('Yes.')]);
    await createAgent({ model: model(), use: [otel(inMemory().providers), noting] }).call('?');
    const { meterProvider } = inMemory().providers;
    const durable = journal(createCallStore(inProcessCalls()));
    await createAgent({ model: model(), use: [otel({ meterProvider }), durable, noting] }).call(
      '?',
    );
    expect(steps).toEqual(['open', '1', 'reply', 'open', '1', 'reply']);
  });
});
