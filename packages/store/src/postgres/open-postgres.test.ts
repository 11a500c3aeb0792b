import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, it } from '@jest/globals';
import { journalContract, memoryContract } from '@millrace/core/testing';
import pg from 'pg';
import { lastValueFrom } from 'rxjs';
import { sharedMemoryContract } from '../memory/shared-memory.test-support.js';
import { storedName } from '../stored-name.js';
import type { Store } from '../store.js';
import { openPostgres } from './open-postgres.js';
import { startPostgres, type TestServer } from './start-postgres.test-support.js';

let server: TestServer;
let admin: pg.Client;
const stores: Store[] = [];
beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Client(server.url);
  await admin.connect();
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => lastValueFrom(store.close$())));
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const openStore = (schema: string): Store => {
  const store = openPostgres(server.url, { schema, leaseMs: 600, pool: { max: 3 } });
  stores.push(store);
  return store;
};

const newSchema = (): string => `t_${randomBytes(6).toString('hex')}`;

describe('openPostgres: calls', () => {
  const contract = journalContract(() => {
    const schema = newSchema();
    return {
      first: openStore(schema).calls,
      second: openStore(schema).calls,
      expire: (callId) =>
        admin.query(`update ${schema}.calls set expires_at = now() where key = $1`, [
          storedName(callId),
        ]),
    };
  });
  for (const { name, run } of contract) it(`S6: ${name}`, run);
});

describe('openPostgres: memory', () => {
  for (const { name, run } of memoryContract(() => openStore(newSchema()).memory)) {
    it(`G2: ${name}`, run);
  }
  const shared = sharedMemoryContract(() => {
    const schema = newSchema();
    return Promise.resolve([openStore(schema).memory, openStore(schema).memory]);
  });
  for (const { name, run } of shared) it(`G2: ${name}`, run);
});
