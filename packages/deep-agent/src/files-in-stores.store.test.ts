import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { openPostgres } from '@millrace/store/postgres';
import { openSqlite } from '@millrace/store/sqlite';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import { lastValueFrom } from 'rxjs';
import { filesInMemory } from './files-in-memory.js';
import { fileSystemContract } from './testing/file-system-contract.js';

const maxBytes = 10_000;
const directory = mkdtempSync(join(tmpdir(), 'deep-stores-'));
let server: TestServer;
let stores: Readonly<Record<string, ReturnType<typeof openSqlite>>>;
beforeAll(async () => {
  server = await startPostgres();
  stores = {
    SQLite: openSqlite(join(directory, 'store.db')),
    Postgres: openPostgres(server.url, { schema: 'deep_files' }),
  };
}, 180_000);
afterAll(async () => {
  for (const store of Object.values(stores)) {
    await lastValueFrom(store.close$(), { defaultValue: undefined });
  }
  await server.stop();
  rmSync(directory, { recursive: true });
});

let count = 0;

describe.each(['SQLite', 'Postgres'])('T25: files in a store of %s', (name) => {
  const create = () => {
    const memory = stores[name]?.memory;
    return filesInMemory({ memory, id: `files ${(count += 1)}`, maxBytes });
  };
  for (const check of fileSystemContract(create, { maxBytes })) it(check.name, check.run);
});
