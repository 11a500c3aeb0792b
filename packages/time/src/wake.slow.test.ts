import { describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, type Model, suspend, tool, toolResults } from 'millrace';
import { calls$, journal } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import fc from 'fast-check';
import { concatMap, defer, lastValueFrom, of, throwError, toArray } from 'rxjs';
import { wake$ } from './index.js';
import { collect, createWorld, day, mortal } from './world.test-support.js';

const toThreeDays = [toolCall('sleep', { days: 3 }, 'nap')];
const back = [text('I am back.')];
const typesOf = (notices: readonly { readonly type: string }[]) => notices.map(({ type }) => type);

const statuses = async (store: ReturnType<typeof createWorld>['store']) => {
  const calls = await lastValueFrom(calls$(store).pipe(toArray()));
  return Object.fromEntries(calls.map(({ callId, status }) => [callId, status]));
};

describe('wake$', () => {
  it('continues a call after three days, to the millisecond, with what the model needs to know', () => {
    const { runTo, start } = createWorld();
    const { ask, notices, model } = start([toThreeDays, back]);
    runTo(1_000);
    const seen = ask('ada', 'Come back in three days.', 'c1');
    expect(seen).toMatchObject([{ reason: 'suspended', suspensions: [{ from: 'program' }] }]);
    runTo(3 * day + 999);
    expect(notices).toEqual([]);
    runTo(3 * day + 1_000);
    const sleep = { callId: 'c1', sessionId: 'ada', agent: 'helper', at: 3 * day + 1_000 };
    expect(notices).toMatchObject([{ type: 'woken', sleep, value: { text: 'I am back.' } }]);
    expect(model.requests[1]?.messages.at(-1)?.content[0]).toHaveProperty(
      'content.0.text',
      'The sleep has ended, at 1970-01-04T00:00:01.000Z. It is 1970-01-04T00:00:01.000Z.',
    );
  });

  it('continues what was due while no process ran, and each sleep of a chain once', () => {
    const { runTo, start } = createWorld();
    const first = start([toThreeDays]);
    first.ask('ada', 'Come back in three days.', 'c1');
    runTo(day);
    first.stop();
    runTo(9 * day);
    const second = start([[toolCall('sleep', { hours: 1 })], back]);
    runTo(9 * day + 1);
    expect(second.notices).toMatchObject([{ type: 'woken', value: { reason: 'suspended' } }]);
    runTo(20 * day);
    expect(second.notices).toMatchObject([
      { type: 'woken', sleep: { callId: 'c1' } },
      { type: 'woken', sleep: { callId: 'c1~woken1' }, value: { id: 'c1~woken2/1' } },
    ]);
    expect(second.model.requests).toHaveLength(2);
  });

  it('is done by one of many processes', () => {
    const { runTo, start } = createWorld();
    const processes = [toThreeDays, back, back].map((answer) => start([answer, back]));
    processes[0]?.ask('ada', 'Come back in three days.', 'c1');
    runTo(4 * day);
    expect(processes.flatMap(({ notices }) => typesOf(notices))).toEqual(['woken']);
    expect(processes.reduce((sum, { model }) => sum + model.requests.length, 0)).toBe(2);
  });

  it('leaves a sleep that a message has cancelled, or that was answered before', () => {
    const { runTo, start } = createWorld();
    const { ask, notices, model } = start([toThreeDays, back, toThreeDays, back]);
    ask('ada', 'Come back in three days.', 'c1');
    runTo(day);
    ask('ada', 'Or rather now.', 'c2');
    ask('eve', 'Come back in three days.', 'c3');
    ask('eve', toolResults({ nap: 'Woken early.' }), 'c4');
    runTo(9 * day);
    expect(notices).toMatchObject([
      { type: 'over', why: 'answered', sleep: { callId: 'c1' } },
      { type: 'over', why: 'answered', sleep: { callId: 'c3' } },
    ]);
    expect(model.requests).toHaveLength(4);
  });

  it('ends all sleeps of a message with the last one, and leaves them to who answers another tool call', () => {
    const sign = tool({ name: 'sign', description: 'Signs.', run: () => suspend() });
    const { runTo, start } = createWorld();
    const two = [toolCall('sleep', { days: 1 }), toolCall('sleep', { days: 2 })];
    const mixed = [toolCall('sleep', { days: 5 }), toolCall('sign')];
    const { ask, notices, model } = start([two, back, mixed], { tools: [sign] });
    ask('ada', 'Two naps.', 'c1');
    runTo(2 * day - 1);
    expect(notices).toEqual([]);
    runTo(2 * day);
    expect(typesOf(notices)).toEqual(['woken', 'woken']);
    expect(model.requests).toHaveLength(2);
    ask('eve', 'Sign, and come back.', 'c2');
    runTo(9 * day);
    expect(notices.slice(2)).toMatchObject([{ type: 'over', why: 'mixed' }]);
  });

  it('leaves a tool call of a person, even if its request looks like a sleep', () => {
    const { runTo, start, driver } = createWorld();
    const request = { sleep: 'x', at: 1 };
    const from = ['client', 'program', 'program'] as const;
    let asked = 0;
    const ask = tool({
      name: 'ask',
      description: 'Asks a person.',
      run: () => suspend({ ...request }, { from: from[asked++] }),
    });
    const both = [toolCall('sleep', { days: 1 }, 'nap'), toolCall('ask', {}, 'ask')];
    const { ask: send, notices, model } = start([both, both, both], { tools: [ask] });
    send('ada', 'Go.', 'c1');
    send('eve', 'Go.', 'c2');
    // The timer of another tool call.
    const ids = collect(driver.list$())
      .seen.flat()
      .map(({ callId }) => callId);
    request.sleep = ids.find((id) => id.startsWith('sleep:')) ?? '';
    expect(request.sleep).not.toBe('');
    send('joe', 'Go.', 'c3');
    runTo(2 * day);
    expect(notices).toMatchObject([{ why: 'mixed' }, { why: 'mixed' }, { why: 'mixed' }]);
    expect(model.requests).toHaveLength(3);
  });

  it('takes no call of a user for a timer', () => {
    const { runTo, start, driver } = createWorld();
    const { notices } = start([]);
    const record = { kind: 'step', name: 'sleep:a/call', seq: 0, text: '{"version":1}' } as const;
    collect(driver.claim$('sleep:a').pipe(concatMap(({ append$ }) => append$([record])))).stop();
    runTo(day);
    expect(notices).toEqual([]);
  });

  it('needs no tool of that name any more', () => {
    const { runTo, start, sessionStore, store, scheduler } = createWorld();
    const first = start([toThreeDays]);
    first.ask('ada', 'Come back in three days.', 'c1');
    first.stop();
    const agent = createAgent({ name: 'helper', model: scriptedModel(back) });
    const users = keepSessions(agent, sessionStore, { journal: journal(store), scheduler });
    const { seen } = collect(wake$(store, users, { scheduler }));
    runTo(4 * day);
    expect(seen).toMatchObject([{ type: 'woken', value: { text: 'I am back.' } }]);
  });

  it('wakes only the sleeps that it is asked to', () => {
    const { runTo, start } = createWorld();
    const { ask, notices } = start([toThreeDays], { where: ({ agent }) => agent !== 'helper' });
    ask('ada', 'Come back in three days.', 'c1');
    runTo(4 * day);
    expect(notices).toEqual([]);
  });

  it('lists a sleep as a call that is not finished, until it has ended', async () => {
    const { runTo, start, store } = createWorld();
    start([toThreeDays, back]).ask('ada', 'Come back in three days.', 'c1');
    const [id = ''] = Object.keys(await statuses(store)).filter((it) => it.startsWith('sleep:'));
    expect(await statuses(store)).toEqual({ c1: 'suspended', [id]: 'unfinished' });
    runTo(4 * day);
    expect(await statuses(store)).toEqual({ c1: 'suspended', 'c1~woken1': 'ended', [id]: 'ended' });
  });
});

describe('wake$ of a function, for an engine', () => {
  const woken = (resume: Parameters<typeof wake$>[1]) => {
    const world = createWorld();
    const { ask, stop } = world.start([toThreeDays]);
    stop();
    ask('ada', 'Come back in three days.', 'c1');
    const seen = collect(wake$(world.store, resume as never, { scheduler: world.scheduler }));
    world.runTo(4 * day);
    return seen.seen;
  };

  it('gets the results, and the id of the next call', () => {
    const given: unknown[] = [];
    const notices = woken((waking: unknown) => {
      given.push(waking);
      return ['queued'];
    });
    expect(given).toMatchObject([
      { callId: 'c1', nextId: 'c1~woken1', sessionId: 'ada', results: { nap: { isError: false } } },
    ]);
    expect(notices).toMatchObject([{ type: 'woken', value: 'queued' }]);
  });

  it.each([
    ['over', new MillraceError('invalidResume', 'Answered.')],
    ['over', new MillraceError('conflict', 'Answered.')],
    ['failed', new MillraceError('refused', 'No.')],
  ])('is %s after an error of it that will not pass', (type, error) => {
    expect(woken(() => throwError(() => error))).toMatchObject([{ type }]);
  });

  it('tries an error that passes again, with a growing delay, and gives up after ten times', () => {
    const down = new MillraceError('connection', 'Down.', { retryable: true });
    const notices = woken(() => throwError(() => down));
    expect(notices.map((it) => (it.type === 'failed' ? it.retryMs : it))).toEqual([
      ...[1, 2, 4, 8, 16, 32, 64, 128, 256].map((seconds) => seconds * 1_000),
      undefined,
    ]);
  });

  it('never gives up on a store that fails', () => {
    let failures = 12;
    const broken = new MillraceError('store', 'The disk is full.');
    const notices = woken(() =>
      defer(() => (failures-- > 0 ? throwError(() => broken) : of('queued'))),
    );
    expect(typesOf(notices)).toEqual([...Array<string>(12).fill('failed'), 'woken']);
  });
});

describe('a store that fails', () => {
  it('is read again, less and less often, and nothing is lost', () => {
    const world = createWorld();
    let isDown = false;
    let reads = 0;
    const { driver } = world.store;
    const calls = {
      ...world.store,
      driver: {
        ...driver,
        list$: (...query: Parameters<typeof driver.list$>) => {
          reads += 1;
          const down = new MillraceError('store', 'Unreachable.');
          return isDown ? throwError(() => down) : driver.list$(...query);
        },
      },
    };
    const { ask, notices } = world.start([toThreeDays, back], { stores: { calls } });
    ask('ada', 'Come back in three days.', 'c1');
    world.runTo(1_000);
    isDown = true;
    reads = 0;
    world.runTo(2 * day);
    expect(notices[0]).toMatchObject({ type: 'unavailable', retryMs: 1_000 });
    expect(notices.at(-1)).toMatchObject({ type: 'unavailable', retryMs: 300_000 });
    expect(reads).toBeLessThan(2 * (day / 300_000) + 20);
    isDown = false;
    world.runTo(4 * day);
    expect(notices.at(-1)).toMatchObject({ type: 'woken' });
  });
});

describe('S6: a sleep over the ends of processes', () => {
  /** Sleeps for three hours, then answers. */
  const model: Model = {
    name: 'sleeper',
    stream$: ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? of(text('I am back.'), finish())
        : of(toolCall('sleep', { hours: 3 }), finish()),
  };

  const processes = fc.array(
    fc.record({
      ms: fc.integer({ min: 1, max: 7_200_000 }),
      writes: fc.integer({ min: 0, max: 30 }),
    }),
    { maxLength: 8 },
  );

  it('continues once, wherever they end, at the time that was recorded first', () => {
    fc.assert(
      fc.property(processes, (ends) => {
        const world = createWorld();
        const { store, driver, runTo, scheduler, sessionStore, start } = world;
        const run = (ms: number, stores: ReturnType<typeof mortal>): void => {
          const { ask, resume, stop } = start(model, { stores });
          const begun = collect(driver.read$('c1')).seen.length > 0;
          if (begun) resume('ada', 'c1');
          else ask('ada', 'Come back in three hours.', 'c1');
          runTo(scheduler.now() + ms);
          stop();
        };
        for (const { ms, writes } of ends) run(ms, mortal(world, writes));
        const before = scheduler.now();
        run(8 * 3_600_000, { calls: store, sessionStore });
        const timers = collect(driver.list$()).seen.flat();
        const sleeps = timers.filter(({ callId }) => callId.startsWith('sleep:'));
        expect(sleeps).toHaveLength(1);
        const { createdAt = 0, updatedAt = 0 } = sleeps[0] ?? {};
        expect(updatedAt).toBeGreaterThanOrEqual(createdAt + 10_800_000);
        expect(updatedAt).toBeLessThanOrEqual(Math.max(before, createdAt + 10_800_000) + 1_200_000);
        const [saved] = collect(sessionStore.load$('ada')).seen;
        const messages = toMessages(saved?.state);
        // A tool that runs again after the time waits no more.
        expect(['user,assistant,tool,tool,assistant', 'user,assistant,tool,assistant']).toContain(
          messages.map(({ role }) => role).join(),
        );
      }),
      {
        examples: [
          [
            [
              { ms: 3_797_999, writes: 13 },
              { ms: 7_002_001, writes: 6 },
            ],
          ],
        ],
      },
    );
  });
});

const toMessages = (state: unknown): readonly { readonly role: string }[] => {
  const { messages } = state as { messages: { role: string }[] };
  return messages;
};
