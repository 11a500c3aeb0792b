import { afterAll, afterEach, beforeAll, describe, it, jest } from '@jest/globals';
import { journalContract, memoryContract, sessionStoreContract } from '@millrace/core/testing';
import pg from 'pg';
import { done, type Engines, startEngines } from './engine.test-support.js';

jest.setTimeout(120_000);

let engines: Engines;
let admin: pg.Client;
let count = 0;
beforeAll(async () => {
  engines = await startEngines();
  admin = new pg.Client(engines.server.url);
  await admin.connect();
}, 120_000);
afterEach(() => engines.close());
afterAll(async () => {
  await admin.end();
  await engines.stop();
});

const newStore = () => {
  count += 1;
  const schema = `contract_${count}`;
  const open = () => engines.open({ store: { schema, leaseMs: 600 } }).store;
  return { schema, open };
};

describe('the store of an engine', () => {
  const calls = journalContract(() => {
    const { schema, open } = newStore();
    const first = open();
    return {
      first: first.calls.driver,
      second: open().calls.driver,
      close: () => done(first.close$()),
      expire: (callId) =>
        admin.query(`update ${schema}.calls set expires_at = now() where id = $1`, [callId]),
    };
  });
  for (const { name, run } of calls) it(`S6: ${name}`, run);

  for (const { name, run } of sessionStoreContract(() => newStore().open().sessions)) it(name, run);

  for (const { name, run } of memoryContract(() => newStore().open().memory)) it(name, run);
});
