import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type MemoryFactory, type Message, noUsage } from 'millrace';
import type { SessionStore } from 'millrace/sessions';
import {
  journalContract,
  longTermMemoryContract,
  memoryContract,
  sessionStoreContract,
} from 'millrace/testing';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import {
  concat,
  concatMap,
  defer,
  endWith,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  NEVER,
  toArray,
} from 'rxjs';
import { checkEmptyClaims } from '../empty-claims.test-support.js';
import { killWhileBranching } from '../memory/branching-process.test-support.js';
import { checkTrees } from '../memory/memory-trees.test-support.js';
import { sharedMemoryContract } from '../memory/shared-memory.test-support.js';
import { checkAppended, checkRefusedAppends } from '../sessions/appended-sessions.test-support.js';
import { countInProcesses } from '../sessions/count-in-processes.test-support.js';
import { storedName } from '../stored-name.js';
import { closeStore } from '../close-store.test-support.js';
import type { DatabaseStore } from '../store.js';
import { openPostgres, type PostgresOptions } from './open-postgres.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let server: TestServer;
let admin: pg.Client;
const stores: DatabaseStore[] = [];
beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Client(server.url);
  await admin.connect();
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => closeStore(store)));
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const openStore = (schema: string, options: PostgresOptions = {}): DatabaseStore => {
  const store = openPostgres(server.url, { schema, leaseMs: 3_000, pool: { max: 3 }, ...options });
  stores.push(store);
  return store;
};

const sessionsIn = ({ sessions }: DatabaseStore): Required<SessionStore> => {
  const { append$ } = sessions;
  if (append$ === undefined) throw new Error('It appends.');
  return { ...sessions, append$ };
};

const newSchema = (): string => `t_${randomBytes(6).toString('hex')}`;

describe('openPostgres: calls', () => {
  const contract = journalContract(() => {
    const schema = newSchema();
    const store = openStore(schema);
    return {
      first: store.calls.driver,
      close: () => closeStore(store),
      second: openStore(schema).calls.driver,
      expire: (callId) =>
        // Without its owner, no renewal revives it.
        admin.query(
          `update ${schema}.calls set owner = 'gone/0', expires_at = now() where key = $1`,
          [storedName(callId)],
        ),
    };
  });
  for (const { name, run } of contract) it(`S6: ${name}`, run);

  it('S6: keeps nothing of a call without a record', async () => {
    const schema = newSchema();
    const { driver } = openStore(schema).calls;
    await checkEmptyClaims(driver);
    await firstValueFrom(driver.claim$('other'));
    await lastValueFrom(driver.remove$('other'), { defaultValue: undefined });
    const { rows } = await admin.query(`select id from ${schema}.calls`);
    expect(rows).toEqual([{ id: 'empty' }]);
  });

  it('S6: does not list what a process that was killed had not begun to write', async () => {
    const schema = newSchema();
    // Nothing renews the lease meanwhile.
    const { driver } = openStore(schema, { leaseMs: 600_000 }).calls;
    const hold = driver.claim$('c').subscribe({ error: () => undefined });
    const list = async () => (await lastValueFrom(driver.list$().pipe(toArray()))).flat();
    while ((await list()).length === 0);
    await admin.query(`update ${schema}.calls set expires_at = now()`);
    expect(await list()).toEqual([]);
    hold.unsubscribe();
  });

  it('S6: writes events again that a crash of the server has lost', async () => {
    const schema = newSchema();
    const { driver } = openStore(schema).calls;
    const event = (seq: number) => ({ kind: 'event', name: 'e', seq, text: '1' }) as const;
    const lose = `with lost as (delete from ${schema}.records where position > 2)
      update ${schema}.calls set last_position = 2`;
    const written = driver.claim$('c').pipe(
      concatMap(({ append$ }) =>
        concat(
          append$([{ kind: 'step', name: 's', seq: 0, text: '1' }]),
          ...[1, 2, 3].map((seq) => append$([event(seq)])),
          defer(() => admin.query(lose)),
          append$([{ kind: 'step', name: 't', seq: 3, text: '1' }]),
        ).pipe(toArray()),
      ),
    );
    await firstValueFrom(written);
    const records = (await lastValueFrom(driver.read$('c').pipe(toArray()))).flat();
    expect(records.map(({ position, name, seq }) => [position, name, seq])).toEqual([
      ...[
        [1, 's', 0],
        [2, 'e', 1],
        [3, 'e', 2],
        [4, 'e', 3],
        [5, 't', 3],
      ],
    ]);
  });

  it('S7: takes a call over from one that is gone also if the clock of the server was set back', async () => {
    const schema = newSchema();
    const { calls } = openStore(schema);
    // A call without records would be removed as soon as its claim is given back.
    const step = { kind: 'step', name: 's', seq: 0, text: '1' } as const;
    const written = calls.driver
      .claim$('c')
      .pipe(concatMap((claim) => claim.append$([step]).pipe(ignoreElements(), endWith(claim))));
    await firstValueFrom(written);
    const key = storedName('c');
    for (const owner of ['gone/600', 'gone/1000000']) {
      await admin.query(
        `update ${schema}.calls set owner = $2, expires_at = now() + interval '5 hours' where key = $1`,
        [key, owner],
      );
      const claimed = firstValueFrom(openStore(schema, { leaseMs: 600 }).calls.driver.claim$('c'));
      if (owner === 'gone/600') await claimed;
      // It may have a longer lease than we have.
      else await expect(claimed).rejects.toMatchObject({ code: 'conflict' });
    }
  });
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

  it('G2: has lost nothing that was confirmed to processes that were killed while they appended to branches', async () => {
    const schema = newSchema();
    await killWhileBranching(
      () => openStore(schema).memory('s'),
      `import { openPostgres } from '@millrace/store/postgres';
      const memory = openPostgres(process.argv[1], { schema: process.argv[2] }).memory('s');`,
      [server.url, schema],
      [90, 140],
    );
  });

  it('G2: has the trees that the pure functions make', async () => {
    const schema = newSchema();
    const [one, other] = [openStore(schema), openStore(schema)];
    let made = 0;
    const ofRun =
      ({ memory }: DatabaseStore, run: number): MemoryFactory =>
      () =>
        memory(`${run}`);
    await checkTrees(() => {
      made += 1;
      return Promise.resolve([ofRun(one, made), ofRun(other, made)]);
    }, 400);
  });
});

describe('openPostgres: sessions', () => {
  for (const { name, run } of sessionStoreContract(() => openStore(newSchema()).sessions)) {
    it(`S4: ${name}`, run);
  }

  it('S4: loads and finds what was saved and appended, as the pure function adds it', async () => {
    const schema = newSchema();
    await checkAppended(sessionsIn(openStore(schema)), sessionsIn(openStore(schema)));
  });

  it('S4: appends to no session that another one has saved or removed', () =>
    checkRefusedAppends(sessionsIn(openStore(newSchema()))));

  it('S4: writes what a conversation of 800 messages adds, not the whole of it', async () => {
    const sessions = sessionsIn(openStore(newSchema()));
    const rest = {
      version: 1,
      groups: {},
      approvals: [],
      usage: noUsage,
      interrupted: false,
    } as const;
    const words = randomBytes(1_500).toString('base64');
    const append = async (at: number, version: number): Promise<number> => {
      const message: Message = {
        id: `m${at}`,
        role: 'user',
        content: [{ type: 'text', text: words }],
      };
      const entries = [{ message, after: `m${at - 1}` }];
      return lastValueFrom(sessions.append$('s', { entries, head: message.id, rest }, version));
    };
    const first: Message = { id: 'm0', role: 'user', content: [] };
    let version = await lastValueFrom(
      sessions.save$('s', { ...rest, messages: [first] }, undefined),
    );
    const written: number[] = [];
    let at = 0;
    for (const count of [100, 100, 600]) {
      const { rows } = await admin.query<{ lsn: string }>(
        'select pg_current_wal_insert_lsn() as lsn',
      );
      for (let left = count; left > 0; left -= 1) {
        at += 1;
        version = await append(at, version);
      }
      const { rows: after } = await admin.query<{ bytes: string }>(
        'select pg_current_wal_insert_lsn() - $1::pg_lsn as bytes',
        [rows[0]?.lsn],
      );
      written.push(Number(after[0]?.bytes));
    }
    const [, early = 0, late = 0] = written;
    // Of 600 appends to a longer conversation, compared to 100: the exponent is 1 if they cost the same.
    expect(Math.log(late / early) / Math.log(6)).toBeLessThan(1.1);
  });

  it('S4: lets one process at a time follow a version', async () => {
    const schema = newSchema();
    const store = openStore(schema);
    await lastValueFrom(store.sessions.find$());
    await countInProcesses(
      store.sessions,
      `import { openPostgres } from '@millrace/store/postgres';
      const { sessions } = openPostgres(process.argv[1], { schema: process.argv[2] });`,
      [server.url, schema],
    );
  }, 180_000);
});

describe('openPostgres: longTermMemory', () => {
  for (const { name, run } of longTermMemoryContract(() => openStore(newSchema()).longTermMemory)) {
    it(`G3: ${name}`, run);
  }

  it('G3: finds words in the forms of a language', async () => {
    const ann = { userId: 'ann' };
    const german = openStore(newSchema(), { longTermMemory: { language: 'german' } });
    await lastValueFrom(german.longTermMemory.record$(ann, [{ text: 'Sie mag Häuser.' }]));
    const found = await lastValueFrom(
      german.longTermMemory.recall$(ann, { text: 'Haus oder Boot' }),
    );
    expect(found).toHaveLength(1);
  });

  it('G3: reports once that the server has no vectors', async () => {
    const { rows } = await admin.query(`select from pg_available_extensions where name = 'vector'`);
    if (rows.length > 0) return;
    const ann = { userId: 'ann' };
    const embedder = { embed$: () => NEVER };
    const { longTermMemory } = openStore(newSchema(), { longTermMemory: { embedder } });
    await lastValueFrom(longTermMemory.record$(ann, [{ text: 'tea' }]));
    const warnings: string[] = [];
    const query = { text: 'tea', report: (warning: string) => warnings.push(warning) };
    for (const _ of [1, 2]) {
      expect(await lastValueFrom(longTermMemory.recall$(ann, query))).toHaveLength(1);
    }
    expect(warnings).toEqual([expect.stringContaining('pgvector')]);
  });
});
