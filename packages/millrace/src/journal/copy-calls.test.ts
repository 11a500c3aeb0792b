import { describe, expect, it } from '@jest/globals';
import { createAgent, tool } from '../index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { calls$, copyCalls$, createCallStore, inProcessCalls, journal, replay$ } from './index.js';
import { all, write } from './stored-calls.test-support.js';

const clock = () => {
  let now = 0;
  return () => (now += 10);
};

/** A store with an ended call, one that waits for a decision, one that failed, and one that was cut off. */
const stored = async () => {
  const driver = inProcessCalls(clock());
  const store = createCallStore(driver);
  let runs = 0;
  const pay = tool({ name: 'pay', description: 'Pays.', run: () => `${(runs += 1)}` });
  const model = scriptedModel([text('Fine.')], [toolCall('pay')], [text('Done.')]);
  const agent = createAgent({ model, tools: [pay], use: [journal(store)] });
  await agent.call('How are you?', { callId: 'answered' });
  await agent.call('Pay.', { callId: 'paid' });
  await agent.call('Once more.', { callId: 'failed' }).catch(() => undefined);
  await write(driver, 'cut', [{ kind: 'step', name: 'cut/call', seq: 0, text: '{}' }]);
  return store;
};

const statuses = async (store: Parameters<typeof calls$>[0]) =>
  (await all(calls$(store))).map(({ callId, status }) => `${callId} ${status}`);

const events = async (store: Parameters<typeof replay$>[0], callId: string) =>
  all(replay$(store, callId));

describe('copyCalls$', () => {
  it('S7: copies calls whole and in order; what has ended there stays ended', async () => {
    const from = await stored();
    const to = createCallStore(inProcessCalls(clock()));
    expect(await all(copyCalls$(from, to))).toEqual(['answered', 'paid', 'failed', 'cut']);
    expect(await statuses(to)).toEqual(await statuses(from));
    const unfinished = await all(to.driver.list$({ isUnfinished: true }));
    expect(unfinished.flat().map(({ callId }) => callId)).toEqual(['cut']);
    for (const callId of ['answered', 'paid', 'failed']) {
      expect(await events(to, callId)).toEqual(await events(from, callId));
    }
  });

  it('S7: continues a copy that ended after any record, and copies nothing twice', async () => {
    const from = await stored();
    const records = (await all(from.driver.read$('paid'))).flat();
    expect(records.length).toBeGreaterThan(5);
    for (let copied = 0; copied <= records.length; copied += 1) {
      const driver = inProcessCalls(clock());
      await write(driver, 'paid', records.slice(0, copied));
      const to = createCallStore(driver);
      await all(copyCalls$(from, to));
      await all(copyCalls$(from, to));
      expect([...(await statuses(to))].sort()).toEqual([...(await statuses(from))].sort());
      expect(await events(to, 'paid')).toEqual(await events(from, 'paid'));
    }
  });

  it('S7: errors with `conflict` if a call continues in the other store', async () => {
    const from = await stored();
    const driver = inProcessCalls(clock());
    const held = driver.claim$('paid').subscribe();
    await expect(all(copyCalls$(from, { driver }))).rejects.toMatchObject({ code: 'conflict' });
    held.unsubscribe();
  });
});
