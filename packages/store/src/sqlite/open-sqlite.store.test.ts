import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it, jest } from '@jest/globals';
import { journalContract } from '@millrace/core/testing';
import { closeStore } from '../close-store.test-support.js';
import { openSqlite } from './open-sqlite.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
const stores: ReturnType<typeof openSqlite>[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sqlite-'));
});
afterAll(async () => {
  await Promise.all(stores.map((store) => closeStore(store)));
  await rm(root, { recursive: true });
});

let made = 0;
const open = (path: string) => {
  const store = openSqlite(path, { leaseMs: 2_000 });
  stores.push(store);
  return store;
};

describe('openSqlite: calls', () => {
  const contract = journalContract(() => {
    const path = join(root, `${(made += 1)}.db`);
    const [first, second] = [open(path), open(path)];
    return {
      first: first.calls.driver,
      second: second.calls.driver,
      close: () => closeStore(first),
    };
  });
  for (const { name, run } of contract) it(`S6: ${name}`, run);
});
