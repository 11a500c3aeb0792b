import { describe, expect, it } from '@jest/globals';
import {
  EMPTY,
  lastValueFrom,
  map,
  NEVER,
  type SchedulerLike,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  type Agent,
  type AgentEvent,
  createAgent,
  interruptOn,
  type Layer,
  on,
  type Reply,
  requireApproval,
  textOf,
  tool,
} from '../index.js';
import { runUntil, slow, stepsIn } from '../journal/dying-driver.test-support.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
} from '../journal/index.js';
import { record, scriptedModel, text, toolCall, verifyEvents } from '../testing/index.js';
import { budget, sharedBudget } from '../layers/traffic/index.js';
import { journalIn } from '../journal/stored-calls.test-support.js';

const asking = (agent: Agent) =>
  tool({
    name: 'ask',
    description: 'Asks an agent.',
    idempotent: true,
    run: (_, parent) => agent.call$('?', { parent }).pipe(map(textOf)),
  });

const costs = (inputTokens: number) =>
  ({ type: 'usage', usage: { inputTokens, outputTokens: 0 } }) as const;

describe('an interrupt two sub-agents deep', () => {
  /** The innermost one has said a part of its answer, and hangs. */
  const family = (time: SchedulerLike, store: CallStoreDriver | undefined) => {
    const events: AgentEvent[] = [];
    let requests = 0;
    const hanging = {
      name: 'hanging',
      stream$: () => {
        requests += 1;
        return timer(0, 1, time).pipe(map((index) => (index === 0 ? text('Half') : costs(0))));
      },
    };
    const inner = createAgent({ name: 'inner', model: hanging });
    const middleModel = scriptedModel([toolCall('ask')]);
    const middle = createAgent({ name: 'middle', model: middleModel, tools: [asking(inner)] });
    const outerModel = scriptedModel([toolCall('ask')]);
    const agent = createAgent({
      name: 'outer',
      model: outerModel,
      tools: [asking(middle)],
      ...(store !== undefined && { use: [journal(createCallStore(store))] }),
    });
    agent.events$.subscribe((event) => events.push(event));
    return {
      agent,
      events,
      asked: () => requests + middleModel.requests.length + outerModel.requests.length,
    };
  };
  /** How each call of the family has ended, in that order. */
  const ends = (events: readonly AgentEvent[]) =>
    events.flatMap((event) =>
      event.type === 'postCall'
        ? [`${event.agent.at(-1)} ${event.reply.reason}: ${textOf(event.reply)}`]
        : [],
    );
  const wanted = [
    'inner interrupted: Half',
    'middle interrupted: Interrupted.',
    'outer interrupted: Interrupted.',
  ];

  it.each([
    ['without a journal', undefined],
    ['with a journal that writes slowly', inProcessCalls],
  ] as const)('S1, S6: ends from the inside out, %s', (_, makeStore) => {
    const time = new VirtualTimeScheduler();
    const store = makeStore?.(() => time.now());
    const { agent, events } = family(time, store && slow(store, time));
    const replies: Reply[] = [];
    agent
      .call$('?', { callId: 'c', use: [interruptOn(timer(20, time))], scheduler: time })
      .subscribe((reply) => replies.push(reply));
    time.flush();
    expect(ends(events)).toEqual(wanted);
    // What the inner agent had said is the result of the tool that asked it.
    const results = events.flatMap((event) =>
      event.type === 'postActing' ? [textOf(event.result)] : [],
    );
    expect(results[0]).toBe('Half');
    expect(replies).toHaveLength(1);
  });

  it('S6: is not asked again when the call is resumed, wherever its process ended after the interrupt', async () => {
    let resumed = 0;
    for (let cut = 4; cut < 60; cut += 1) {
      const time = new VirtualTimeScheduler();
      const store = inProcessCalls(() => time.now());
      runUntil(store, cut, (dying) => {
        const { agent } = family(time, slow(dying, time));
        const call$ = agent.call$('?', {
          callId: 'c',
          use: [interruptOn(timer(20, time))],
          scheduler: time,
        });
        call$.subscribe({ error: () => undefined });
        time.flush();
        return EMPTY;
      });
      if (!(await stepsIn(store)).includes('interrupt')) continue;
      resumed += 1;
      const again = new VirtualTimeScheduler();
      const after = family(again, store);
      const replies: Reply[] = [];
      journalIn(store)
        .resume$(after.agent, 'c', { scheduler: again })
        .subscribe({ next: (reply) => replies.push(reply), error: () => undefined });
      again.flush();
      expect([replies[0]?.reason, after.asked()]).toEqual(['interrupted', 0]);
    }
    expect(resumed).toBeGreaterThan(0);
  });
});

describe('an interrupt while a person is asked', () => {
  it('S1, T12: ends the wait, and the tool that runs beside it, each with one result', async () => {
    const time = new VirtualTimeScheduler();
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', run: () => 'ok' }),
      () => NEVER,
    );
    const deaf = tool({ name: 'deaf', description: 'Never ends.', run: () => NEVER });
    const agent = createAgent({
      model: scriptedModel([toolCall('pay'), toolCall('deaf')]),
      tools: [pay, deaf],
    });
    const events: AgentEvent[] = [];
    agent
      .stream$('?', { use: [interruptOn(timer(5, time))], scheduler: time })
      .pipe(verifyEvents())
      .subscribe((event) => events.push(event));
    time.flush();
    const last = events.at(-1);
    expect(last).toMatchObject({
      reply: {
        reason: 'interrupted',
        toolCalls: [
          { name: 'pay', isError: true, output: 'Interrupted before it finished.' },
          { name: 'deaf', isError: true, output: 'Interrupted before it finished.' },
        ],
      },
    });
    expect(events.filter(({ type }) => type === 'postActing')).toHaveLength(2);
  });
});

describe('a veto, a silent tool and a cut', () => {
  const silent = tool({ name: 'silent', description: 'Says nothing.', run: () => EMPTY });
  const outputs = async (
    options: Partial<Parameters<typeof createAgent>[0]>,
    store = inProcessCalls(),
  ) => {
    const agent = createAgent({
      model: scriptedModel([toolCall('silent')], [text('Done.')]),
      tools: [silent],
      ...options,
      use: [journalIn(store), ...(options.use ?? [])],
    });
    const summary = ({ reason, toolCalls }: Reply) => [
      reason,
      ...toolCalls.map(({ output, isError }) => `${isError ? 'failed' : 'ok'}: ${output}`),
    ];
    const called = summary(await agent.call('?', { callId: 'c' }));
    // What a resumed call replays is the same.
    expect(summary(await journalIn(store).resume(agent, 'c'))).toEqual(called);
    return called;
  };
  const cutting: Layer = {
    name: 'cutting',
    step: () => (next) => (step) => (step.kind === 'tool' ? EMPTY : next(step)),
  };

  it('Y2: are distinguished', async () => {
    expect(await outputs({})).toEqual(['answer', 'ok: (no output)']);
    expect(await outputs({ use: [cutting] })).toEqual([
      'answer',
      'failed: Interrupted before it finished.',
    ]);
    const vetoTool = on('preActing', () => EMPTY);
    expect(await outputs({ use: [vetoTool] })).toEqual([
      'answer',
      'failed: Not run: this tool call was rejected.',
    ]);
    const veto = on('postReasoning', () => EMPTY);
    expect(await outputs({ use: [veto] })).toEqual(['stopped']);
  });
});

describe('a tool that takes too long', () => {
  it('T8: is a result and no error, with one postActing', async () => {
    const never = tool({
      name: 'never',
      description: 'Never ends.',
      timeoutMs: 1,
      run: () => NEVER,
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('never')], [text('Done.')]),
      tools: [never],
    });
    const events = await record(agent.stream$('?'));
    expect(events.filter(({ type }) => type === 'postActing')).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({
      reply: { reason: 'answer', toolCalls: [{ isError: true }] },
    });
  });
});

describe('the budget of a family', () => {
  /** A parent whose tool asks an agent of its own, which spends 50 tokens and a tool. */
  const family = (store: CallStoreDriver, ...use: readonly Layer[]) => {
    const echo = tool({ name: 'echo', description: 'Echoes.', run: () => 'Hi.' });
    const child = createAgent({
      name: 'child',
      model: scriptedModel([toolCall('echo'), costs(30)], [text('Below.'), costs(20)]),
      tools: [echo],
    });
    const model = scriptedModel(
      [toolCall('ask'), costs(5)],
      [toolCall('ask'), costs(5)],
      [text('Done.'), costs(5)],
    );
    return {
      agent: createAgent({ model, tools: [asking(child)], use: [journalIn(store), ...use] }),
      model,
    };
  };

  it('C9, H1: counts what calls below spend, live and replayed alike', async () => {
    const store = inProcessCalls();
    const live = sharedBudget({ tokens: 10_000, toolCalls: 100 });
    await lastValueFrom(
      family(store, live).agent.call$('?', {
        callId: 'c',
        limits: { maxIterations: 1, onLimit: 'partial' },
      }),
    );
    expect(live.spent).toMatchObject({ tokens: 55, toolCalls: 2 });
  });

  it('C9, S6: ends a resumed call at the same step', async () => {
    const limited = () => budget({ tokens: 60 });
    const whole = await lastValueFrom(
      family(inProcessCalls(), limited()).agent.call$('?', { callId: 'c' }),
      { defaultValue: undefined },
    ).catch((error: unknown) => error);
    const store = inProcessCalls();
    // The process ends when the first tool, with all calls below it, has been recorded.
    let cut = 1;
    for (; cut < 200; cut += 1) {
      const log = inProcessCalls();
      runUntil(log, cut, (dying) => family(dying, limited()).agent.call$('?', { callId: 'c' }));
      if ((await stepsIn(log)).includes('1/0')) break;
    }
    runUntil(store, cut, (dying) => family(dying, limited()).agent.call$('?', { callId: 'c' }));
    const again = family(store, limited());
    const resumed = await journalIn(store)
      .resume(again.agent, 'c')
      .catch((error: unknown) => error);
    expect(Reflect.get(Object(resumed), 'reason') ?? Reflect.get(Object(resumed), 'code')).toEqual(
      Reflect.get(Object(whole), 'reason') ?? Reflect.get(Object(whole), 'code'),
    );
  });
});
