import { describe, expect, it } from '@jest/globals';
import { delay, mergeMap, of, VirtualTimeScheduler } from 'rxjs';
import { createAgent, inProcessMemory, type Model, tool, toolGroup } from '../index.js';
import { agentTool } from '../layers/teams/index.js';
import { finish, text, toolCall } from '../testing/index.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from './index.js';
import { all, event, step, write, journalIn } from './stored-calls.test-support.js';
import { createDeliveredSince } from './call-store.js';
import { sessions } from '../layers/sessions/index.js';

/** A model that asks for tools, and is done when it has their results. */
const asking = (
  time: VirtualTimeScheduler,
  ms: number,
  ...uses: readonly ReturnType<typeof toolCall>[]
): Model => ({
  name: 'asking',
  stream$: ({ messages }) =>
    of(messages.at(-1)?.role === 'tool').pipe(
      delay(ms, time),
      mergeMap((isDone) => [...(isDone ? [text('Done.')] : uses), finish()]),
    ),
});

/** An agent that asks two others at once, each in a session of its own. */
const asksTwo = (driver: CallStoreDriver, time: VirtualTimeScheduler) => {
  const memory = inProcessMemory();
  const note = tool({ name: 'note', description: 'Notes.', idempotent: true, run: () => 'Noted.' });
  const tools = ['ann', 'bob'].map((name, at) =>
    agentTool(
      createAgent({
        name,
        tools: [note],
        model: asking(time, 2 + at, toolCall('note')),
      }),
      { description: 'Helps.', session: name, memory },
    ),
  );
  const uses = ['ann', 'bob'].map((name) => toolCall(name, { user_prompt: '?' }));
  const durable = journal(createCallStore(driver));
  return createAgent({ model: asking(time, 1, ...uses), tools, use: [durable] });
};

/** An agent whose model activates a group of tools. */
const activates = (driver: CallStoreDriver, time: VirtualTimeScheduler) => {
  const look = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
  return createAgent({
    model: asking(time, 1, toolCall('manage_tools', { activate: ['web'] })),
    tools: [toolGroup({ name: 'web', description: 'Web.', tools: [look] })],
    use: [journal(createCallStore(driver))],
  });
};

/** Events of a type that a log holds, each as what it says. */
const toldIn = async (driver: CallStoreDriver, type: string) =>
  (await recordsIn(driver))
    .filter(({ name }) => name === type)
    .map(({ text: written }) => {
      const { at: _, seq: __, ...said } = JSON.parse(written) as Record<string, unknown>;
      return JSON.stringify(said);
    });

const recordsIn = async (driver: CallStoreDriver) => (await all(driver.read$('c'))).flat();

const fail = (error: unknown): never => {
  throw error;
};

describe('events of calls after their last step', () => {
  it('S7: is kept by call: a step forgets the events of its own call, and no others', () => {
    const told = createDeliveredSince();
    const [ann, bob] = ['c/ann', 'c/ann+2'];
    const records = [
      ...[step('c/call', {}), event(1), step(`${ann}/open`, {}), step(`${bob}/open`, {})],
      ...[event(2, { callId: ann }), event(3, { callId: bob }), event(4, { callId: bob })],
      ...[step(`${ann}/1`, {}), { ...event(5), text: '{' }],
    ];
    records.forEach((record, at) => told.add({ ...record, position: at + 1 }));
    expect(['c', ann, bob].map((id) => told.has(id, 'warning'))).toEqual([true, false, true]);
    const taken = [1, 2, 3].map(() => told.take(bob, 'warning'));
    expect(taken).toEqual([true, true, false]);
    told.add({ ...step('c/1/0', {}), position: 99 });
    expect(told.has('c', 'warning')).toBe(false);
  });

  it('S7: no event of parallel sub-agents is emitted twice', async () => {
    const type = 'messagesAppended';
    const whole = inProcessCalls();
    const time = new VirtualTimeScheduler();
    asksTwo(whole, time).call$('?', { callId: 'c' }).subscribe({ error: fail });
    time.flush();
    const once = await toldIn(whole, type);
    expect(once).toHaveLength(4);
    const records = await recordsIn(whole);
    for (let cut = 1; cut < records.length; cut += 1) {
      const driver = inProcessCalls();
      await write(driver, 'c', records.slice(0, cut));
      const later = new VirtualTimeScheduler();
      journalIn(driver).resume$(asksTwo(driver, later), 'c').subscribe({ error: fail });
      later.flush();
      const told = await toldIn(driver, type);
      expect(told.filter((it, at) => told.indexOf(it) !== at)).toEqual([]);
    }
  });

  it('S7: nor what a tool has changed in its session, if its result is recorded', async () => {
    const type = 'stateChanged';
    const whole = inProcessCalls();
    const time = new VirtualTimeScheduler();
    sessions(activates(whole, time))
      .open('s')
      .call$('?', { callId: 'c' })
      .subscribe({ error: fail });
    time.flush();
    const records = await recordsIn(whole);
    const done = records.findIndex(({ name }) => name === 'c/1/0') + 1;
    expect(done).toBeGreaterThan(0);
    expect(await toldIn(whole, type)).toHaveLength(1);
    for (let cut = done; cut < records.length; cut += 1) {
      const driver = inProcessCalls();
      await write(driver, 'c', records.slice(0, cut));
      const later = new VirtualTimeScheduler();
      let reason: string | undefined;
      journalIn(driver)
        .resume$(sessions(activates(driver, later)).open('s'), 'c')
        .subscribe({ next: (reply) => (reason = reply.reason), error: fail });
      later.flush();
      expect(reason).toBe('answer');
      expect(await toldIn(driver, type)).toHaveLength(1);
    }
  });
});
