import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { openDatabase } from './database.js';
import { type Engines, startEngines } from './engine.test-support.js';
import { expiryOf, type Order } from './order.js';

let engines: Engines;
let admin: pg.Client;
beforeAll(async () => {
  engines = await startEngines();
  admin = new pg.Client(engines.server.url);
  await admin.connect();
});
afterEach(() => engines.close());
afterAll(async () => {
  await admin.end();
  await engines.stop();
});

describe('the database of an engine', () => {
  const order = (callId: string): Order => ({ callId, agent: 'a', sessionId: 's', input: 'x' });

  it('lets a suspended call finish that was put back into its queue, and holds the others', async () => {
    const database = openDatabase({ url: engines.server.url, name: 'held', schema: 'dbos' });
    await database.start(order('first'), { version: 'v1' });
    await database.start(order('second'), {});
    const expires = { callId: 'first', sessionId: 's', toolCallIds: ['t'] };
    await database.suspend(order('first'), { ...order(expiryOf('first')), expires }, {});
    await database.start(order('third'), {});
    const { rows } = await admin.query(
      `select workflow_uuid as id, status from dbos.workflow_status
      where application_name = 'held' and queue_partition_key = 's' and workflow_uuid not like '%expiry' order by 1`,
    );
    expect(rows).toEqual([
      { id: 'first', status: 'ENQUEUED' },
      { id: 'second', status: 'DELAYED' },
      { id: 'third', status: 'DELAYED' },
    ]);
    // The answer may come long after a deploy.
    await database.answer(order('first'), order('first~2'), { version: 'v2' });
    for (const callId of ['first~2', 'second', 'third']) {
      expect(await database.find(callId)).toMatchObject({ status: 'ENQUEUED', version: 'v2' });
    }
    await database.close();
  });

  it('keeps a session on the version of its unfinished calls', async () => {
    const database = openDatabase({ url: engines.server.url, name: 'kept', schema: 'dbos' });
    await database.start(order('v-1'), { version: 'v1' });
    await database.start(order('v-2'), {});
    await database.start(order('v-3'), { version: 'v2' });
    await database.start({ ...order('v-4'), sessionId: 'other' }, { version: 'v2' });
    const versions = ['v-1', 'v-2', 'v-3', 'v-4'].map(async (callId) => database.find(callId));
    expect((await Promise.all(versions)).map((call) => call?.version)).toEqual([
      ...['v1', 'v1', 'v1', 'v2'],
    ]);
    expect(await database.adopt('v1', 'v2')).toEqual(['v-1', 'v-2', 'v-3']);
    await database.close();
  });

  it('recovers only the calls of workers that are not connected', async () => {
    const database = openDatabase({ url: engines.server.url, name: 'gone', schema: 'dbos' });
    for (const callId of ['of-dead', 'of-live']) await database.start(order(callId), {});
    await admin.query(
      `update dbos.workflow_status set status = 'PENDING', application_version = 'gone/', owner_xid = 'x',
        executor_id = workflow_uuid where application_name = 'gone'`,
    );
    const live = database.presence$('of-live').subscribe({ error: () => undefined });
    const [queues, ours] = [['gone/a'], { id: 'me', version: 'gone/' }];
    const isAlone = async (): Promise<boolean> => (await database.gone(ours, queues)).length === 1;
    while (!(await isAlone()));
    const released: string[] = [];
    const release = async (ids: readonly string[]) => released.push(...ids);
    expect(await database.recover(['of-dead', 'of-live'], queues, release)).toEqual(['of-dead']);
    expect(released).toEqual(['of-dead']);
    expect(await database.owner('of-live')).toBe('x');
    live.unsubscribe();
    await database.close();
  });
});
