import { expect, it } from '@jest/globals';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { firstValueFrom, VirtualTimeScheduler } from 'rxjs';
import { createAgent } from '../../agent.js';
import { scriptedModel, text } from '../../testing/index.js';
import { inProcessMemory } from '../../memories/in-process-memory.js';
import { type Message, textOf } from '../../values/message.js';
import { inProcessSessions, keepSessions, type KeptSession } from './index.js';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const messagesOf = async ({ memory }: KeptSession): Promise<readonly Message[]> =>
  firstValueFrom(memory.load$());

/** Only weak references are left in the caller. */
const weak = async (session: KeptSession): Promise<readonly WeakRef<Message>[]> =>
  (await messagesOf(session)).map((message) => new WeakRef(message));

it.each(['idle', 'closed', 'drained'])(
  'S3: a handle of a session that is %s holds none of its messages',
  async (why) => {
    const scheduler = new VirtualTimeScheduler();
    scheduler.maxFrames = 1;
    const store = inProcessSessions();
    const answers = [[text('Done.')], [text('Done.')]];
    const agent = createAgent({ model: scriptedModel(...answers) });
    const first = await keepSessions(agent, store).open('s');
    await first.call('One');
    await first.close();
    const kept = keepSessions(agent, store, { scheduler, idleMs: 100 });
    const session = await kept.open('s');
    const held = await weak(session);
    await turn();
    gc();
    expect(held.map((it) => it.deref() !== undefined)).toEqual([true, true]);
    if (why === 'closed') await session.close();
    if (why === 'drained') await kept.drain();
    if (why === 'idle') {
      scheduler.maxFrames = 101;
      scheduler.flush();
    }
    await turn();
    gc();
    expect(held.map((it) => it.deref())).toEqual([undefined, undefined]);
    const loaded = (await messagesOf(session)).map(textOf);
    expect(loaded).toEqual(why === 'closed' ? [] : ['One', 'Done.']);
  },
);

it('S3: an agent does not hold what was kept for it, such as the memory of a server that has closed', async () => {
  const agent = createAgent({ model: scriptedModel([text('Done.')]) });
  const memoryIsHeld = await (async () => {
    const memory = inProcessMemory();
    const session = await keepSessions(agent, inProcessSessions(), { memory }).open('s');
    await session.call('One');
    await session.close();
    const held = new WeakRef(memory);
    return () => held.deref() !== undefined;
  })();
  await turn();
  gc();
  expect(memoryIsHeld()).toBe(false);
  expect(agent.name).toBe('agent');
});
