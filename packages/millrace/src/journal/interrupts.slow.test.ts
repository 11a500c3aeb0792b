import { describe, expect, it } from '@jest/globals';
import {
  delay,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  type SchedulerLike,
  Subject,
  tap,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  type Agent,
  type AgentOptions,
  createAgent,
  inProcessMemory,
  interruptOn,
  type MemoryFactory,
  on,
  output,
  type Reply,
  textOf,
  tool,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { dyingAfter, recordsOf, runUntil, slow, stepsIn } from './dying-driver.test-support.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from './index.js';
import { sessions } from '../layers/sessions/index.js';
import { journalIn } from './stored-calls.test-support.js';

/** A user stops it while its first tool runs. The tool never ends by itself. */
const stopped = (
  driver: CallStoreDriver,
  memory = inProcessMemory(),
  options: Partial<AgentOptions> = {},
) => {
  const stop$ = new Subject<string>();
  const effects: string[] = [];
  const next: ScriptedAnswer = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? [text('On.')] : [toolCall('slow', {}), toolCall('slow', {})];
  const model = scriptedModel(...Array.from({ length: 9 }, () => next));
  const slow = tool({
    name: 'slow',
    description: 'Never ends.',
    run: (_, { idempotencyKey }) => {
      effects.push(idempotencyKey);
      if (effects.length === 2) stop$.next('Stopped.');
      return new Subject<string>();
    },
  });
  const durable = journal(createCallStore(driver));
  const agent = createAgent({ model, tools: [slow], use: [durable], ...options });
  const session = sessions(agent, { memory }).open('s');
  return { session, model, effects, use: [interruptOn(stop$)] };
};

const call$ = ({ session, use }: ReturnType<typeof stopped>) =>
  session.call$('?', { callId: 'c', use });

/** Runs something in a process that ends when so many records are written. */
const runSlowlyUntil = (
  store: CallStoreDriver,
  records: number,
  run: (dying: CallStoreDriver) => Observable<unknown>,
): void => {
  const time = new VirtualTimeScheduler();
  const { driver, end } = dyingAfter(slow(store, time), records);
  run(driver).subscribe({ error: () => undefined });
  time.flush();
  end();
};

const summary = ({ reason, toolCalls, ...reply }: Reply) => [
  reason,
  textOf(reply),
  ...toolCalls.map(({ output }) => output),
];

const ids = (memory: MemoryFactory) =>
  firstValueFrom(
    memory('s')
      .load$()
      .pipe(map((all) => all.map((message) => `${message.id} ${textOf(message)}`))),
  );

describe('an interrupt of a call whose process ends', () => {
  it('S6, S1: holds from the moment at which it is recorded, and nothing is asked again', async () => {
    const whole = inProcessMemory();
    const expected = await lastValueFrom(call$(stopped(inProcessCalls(), whole)));
    expect(summary(expected)).toEqual([
      'interrupted',
      'Stopped.',
      'Interrupted before it finished.',
      'Interrupted before it finished.',
    ]);
    let known = 0;
    for (let cut = 1; cut < 40; cut += 1) {
      const store = inProcessCalls();
      const memory = inProcessMemory();
      runSlowlyUntil(store, cut, (dying) => call$(stopped(dying, memory)));
      const steps = await stepsIn(store);
      // What a tool was cut by is written down before what came of it.
      expect(steps.includes('1/0') || steps.includes('1/1') ? steps : ['interrupt']).toContain(
        'interrupt',
      );
      if (!steps.includes('interrupt')) continue;
      known += 1;
      const after = stopped(store, memory);
      const reply = await journalIn(store).resume(after.session, 'c');
      expect([reply.reason, textOf(reply)]).toEqual(['interrupted', 'Stopped.']);
      expect(after.model.requests).toEqual([]);
      expect(after.effects).toEqual([]);
      expect(await ids(memory)).toHaveLength(4);
      if (steps.includes('1/0') && steps.includes('1/1')) {
        expect(summary(reply)).toEqual(summary(expected));
        expect(await ids(memory)).toEqual(await ids(whole));
      }
    }
    expect(known).toBeGreaterThan(3);
  });

  it('S6, S1: comes at its place again between two turns', async () => {
    const turns = (driver: CallStoreDriver, memory = inProcessMemory()) => {
      const stop$ = new Subject<string>();
      const { session, model } = stopped(driver, memory, {
        tools: [tool({ name: 'slow', description: 'Ends.', run: () => 'Ended.' })],
        use: [
          on(
            'postActing',
            tap(({ toolCall }) => toolCall.id.endsWith('1') && stop$.next('Enough.')),
          ),
        ],
      });
      return { session, model, effects: [], use: [interruptOn(stop$)] };
    };
    const expected = await lastValueFrom(call$(turns(inProcessCalls())));
    expect(summary(expected)).toEqual(['interrupted', 'Enough.', 'Ended.', 'Ended.']);
    for (let cut = 1; cut < 40; cut += 1) {
      const store = inProcessCalls();
      runSlowlyUntil(store, cut, (dying) => call$(turns(dying)));
      if (!(await stepsIn(store)).includes('interrupt')) continue;
      const after = turns(store);
      const { reason, iterations } = await journalIn(store).resume(after.session, 'c');
      expect({ reason, iterations }).toEqual({ reason: 'interrupted', iterations: 1 });
      expect(after.model.requests).toEqual([]);
    }
  });

  it('S6, S3: a call that was taken out of the queue stays out of the conversation', async () => {
    const queue = (driver: CallStoreDriver) => {
      const never = { name: 'never', stream$: () => NEVER };
      const agent = createAgent({ model: never, use: [journal(createCallStore(driver))] });
      const session = sessions(agent).open('s');
      const running = session.call$('1', { callId: 'a' }).subscribe({ error: () => undefined });
      session
        .call$('2', { callId: 'c', onBusy: 'queue' })
        .subscribe({ error: () => undefined, next: ({ reason }) => reasons.push(reason) });
      session.queue.clear('Never mind.');
      return running;
    };
    const reasons: string[] = [];
    let rest = 0;
    for (; reasons.length === 0; rest += 1) {
      const driver = inProcessCalls();
      const { driver: dying, end } = dyingAfter(driver, rest);
      const running = queue(dying);
      end();
      running.unsubscribe();
      const memory = inProcessMemory();
      const model = scriptedModel([text('Asked again.')]);
      const agent = createAgent({ model, use: [journal(createCallStore(driver))] });
      const steps = await stepsIn(driver);
      if (!steps.includes('seat')) continue;
      const reply = await journalIn(driver).resume(sessions(agent, { memory }).open('s'), 'c');
      expect([reply.reason, textOf(reply)]).toEqual(['interrupted', 'Never mind.']);
      expect(await ids(memory)).toEqual([]);
    }
    expect(rest).toBeGreaterThan(3);
  });

  it('S6: a call that has its reply runs no new step of its loop', async () => {
    const store = inProcessCalls();
    const said: ScriptedAnswer = () => [text('Hello.')];
    const agentWith = (driver: CallStoreDriver, options: Partial<AgentOptions> = {}) =>
      createAgent({
        model: scriptedModel(said, said),
        use: [journal(createCallStore(driver))],
        ...options,
      });
    const records = await recordsOf(
      (driver) => agentWith(driver).call$('?', { callId: 'c' }),
      'reply',
    );
    runUntil(store, records, (dying) => agentWith(dying).call$('?', { callId: 'c' }));
    const other = scriptedModel(said);
    const changed = agentWith(store, {
      model: other,
      use: [
        journal(createCallStore(store)),
        output(jsonSchema({ type: 'object', properties: {}, additionalProperties: false })),
      ],
    });
    await expect(journalIn(store).resume(changed, 'c')).rejects.toMatchObject({
      code: 'invalidState',
    });
    expect(other.requests).toEqual([]);
    expect(textOf(await journalIn(store).resume(agentWith(store), 'c'))).toBe('Hello.');
  });

  it('S6, S3: what is said to a call that continues does not take the place of what was said before', async () => {
    const store = inProcessCalls();
    const memory = inProcessMemory();
    const talking = (driver: CallStoreDriver, word: string, memory: MemoryFactory) => {
      const turn: ScriptedAnswer = ({ messages }) =>
        messages.filter(({ role }) => role === 'assistant').length > 2
          ? [text('Done.')]
          : [toolCall('wait', {})];
      const agent = createAgent({
        model: scriptedModel(...Array.from({ length: 6 }, () => turn)),
        use: [journal(createCallStore(driver))],
        tools: [
          tool({
            name: 'wait',
            description: 'Hears.',
            run: () => {
              sessions(agent, { memory })
                .open('s')
                .steer$(`${word} ${(said += 1)}`)
                .subscribe();
              return 'Heard.';
            },
          }),
        ],
      });
      let said = 0;
      return agent;
    };
    const call$ = (driver: CallStoreDriver, own = inProcessMemory()) =>
      sessions(talking(driver, 'before', own), { memory: own })
        .open('s')
        .call$('?', { callId: 'c' });
    runUntil(store, (await recordsOf(call$, '2')) + 1, (dying) => call$(dying, memory));
    await journalIn(store).resume(
      sessions(talking(store, 'after', memory), { memory }).open('s'),
      'c',
    );
    const told = (await ids(memory)).filter((it) => /before|after/u.test(it));
    expect(told).toEqual([
      'c/input/2/0/0 before 1',
      'c/input/3/0/0 after 1',
      'c/input/4/0/0 after 2',
    ]);
  });

  it('S6, S1, S3: comes at its place again, wherever that is, and what was said before it is kept', async () => {
    const talking = (driver: CallStoreDriver, time: SchedulerLike, memory: MemoryFactory) => {
      const turn: ScriptedAnswer = ({ messages }) => [
        messages.filter(({ role }) => role === 'tool').length < 2
          ? toolCall('hint')
          : text('Done.'),
      ];
      const scripted = scriptedModel(...Array.from({ length: 9 }, () => turn));
      const agent: Agent = createAgent({
        model: {
          ...scripted,
          stream$: (...given) => scripted.stream$(...given).pipe(delay(2, time)),
        },
        use: [journal(createCallStore(driver))],
        tools: [
          tool({
            name: 'hint',
            description: 'Says something.',
            idempotent: true,
            run: (_, { toolCallId }) => {
              const said$ = sessions(agent, { memory })
                .open('s')
                .steer$(`Hint of ${toolCallId}`, 'c');
              return merge(said$.pipe(ignoreElements()), of('Said.').pipe(delay(2, time)));
            },
          }),
        ],
      });
      return agent;
    };
    const stoppedAt = (frame: number, driver: CallStoreDriver, memory: MemoryFactory) => {
      const time = new VirtualTimeScheduler();
      const replies: Reply[] = [];
      const agent = talking(slow(driver, time), time, memory);
      sessions(agent, { memory })
        .open('s')
        .call$('?', { callId: 'c', use: [interruptOn(timer(frame, time))], scheduler: time })
        .subscribe({ next: (reply) => replies.push(reply), error: () => undefined });
      time.flush();
      return replies[0];
    };
    const told = async (log: CallStoreDriver) =>
      (await firstValueFrom(log.read$('c'))).flatMap(({ kind, name }) =>
        kind === 'event' && ['steered', 'messagesAppended', 'preCall'].includes(name) ? [name] : [],
      );
    let compared = 0;
    for (let frame = 1; frame < 40; frame += 1) {
      const [store, whole] = [inProcessCalls(), inProcessMemory()];
      const expected = stoppedAt(frame, store, whole);
      if (expected?.reason !== 'interrupted') break;
      const names = (await firstValueFrom(store.read$('c'))).map(({ name }) => name);
      for (const cut of [names.indexOf('c/interrupt') + 1, names.indexOf('c/reply')]) {
        const [again, memory] = [inProcessCalls(), inProcessMemory()];
        const { driver, end } = dyingAfter(again, cut);
        stoppedAt(frame, driver, memory);
        end();
        const time = new VirtualTimeScheduler();
        const replies: Reply[] = [];
        journalIn(again)
          .resume$(sessions(talking(slow(again, time), time, memory), { memory }).open('s'), 'c', {
            scheduler: time,
          })
          .subscribe((reply) => replies.push(reply));
        time.flush();
        expect({
          frame,
          ended: replies.map(summary),
          said: await ids(memory),
          told: await told(again),
        }).toEqual({
          frame,
          ended: [summary(expected)],
          said: await ids(whole),
          told: await told(store),
        });
        compared += 1;
      }
    }
    expect(compared).toBeGreaterThan(30);
  });

  it('S6, S1: is recorded immediately, also while the step that it ends takes its time', async () => {
    const store = inProcessCalls();
    const stop$ = new Subject<void>();
    const below = createAgent({
      name: 'below',
      model: { name: 'never', stream$: () => NEVER },
      use: [on('postCall', () => NEVER)],
    });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, parent) => below.call$('?', { parent }),
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('ask')]),
      tools: [ask],
      use: [journalIn(store)],
    });
    const call = agent.call$('?', { callId: 'c', use: [interruptOn(stop$)] }).subscribe();
    expect(await stepsIn(store)).not.toContain('interrupt');
    stop$.next();
    expect(await stepsIn(store)).toContain('interrupt');
    call.unsubscribe();
  });
});
