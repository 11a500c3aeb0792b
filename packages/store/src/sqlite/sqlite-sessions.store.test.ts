import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it, jest } from '@jest/globals';
import type { SessionStore } from 'millrace/sessions';
import { sessionStoreContract } from 'millrace/testing';
import { closeStore } from '../close-store.test-support.js';
import { checkAppended, checkRefusedAppends } from '../sessions/appended-sessions.test-support.js';
import { countInProcesses } from '../sessions/count-in-processes.test-support.js';
import type { DatabaseStore } from '../store.js';
import { openSqlite } from './open-sqlite.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
const stores: DatabaseStore[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sqlite-sessions-'));
});
afterAll(async () => {
  await Promise.all(stores.map(closeStore));
  await rm(root, { recursive: true });
});

let made = 0;
const newPath = (): string => join(root, `${(made += 1)}.db`);
const sessionsIn = (path: string): Required<SessionStore> => {
  const store = openSqlite(path);
  stores.push(store);
  const { sessions } = store;
  const { append$ } = sessions;
  if (append$ === undefined) throw new Error('It appends.');
  return { ...sessions, append$ };
};

describe('openSqlite: sessions', () => {
  for (const { name, run } of sessionStoreContract(() => sessionsIn(newPath()))) {
    it(`S4: ${name}`, run);
  }

  it('S4: loses no save of several processes, and gives no version twice', async () => {
    const path = newPath();
    await countInProcesses(
      sessionsIn(path),
      `import { openSqlite } from './dist/sqlite/open-sqlite.js';
      const { sessions } = openSqlite(process.argv.at(-1));`,
      [path],
    );
  });

  it('S4: loads and finds what was saved and appended, as the pure function adds it', async () => {
    const path = newPath();
    const [one, other] = [sessionsIn(path), sessionsIn(path)];
    await checkAppended(one, other);
  });

  it('S4: appends to no session that another one has saved or removed', async () => {
    await checkRefusedAppends(sessionsIn(newPath()));
  });
});
