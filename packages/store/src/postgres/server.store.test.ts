import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import { lastValueFrom, toArray } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { migrationsOf } from '../sql/migrations.js';
import type { Store } from '../store.js';
import { storedName } from '../stored-name.js';
import { openPostgres, type PostgresOptions } from './open-postgres.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let server: TestServer;
let admin: pg.Client;
const stores: Store[] = [];
beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Client(server.url);
  await admin.connect();
}, 180_000);
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => closeStore(store)));
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const open = (url: string, options?: PostgresOptions): Store => {
  const store = openPostgres(url, options);
  stores.push(store);
  return store;
};

const list = (store: Store): Promise<unknown> =>
  lastValueFrom(store.calls.driver.list$(), { defaultValue: [] });

const urlWith = (change: (url: URL) => void): string => {
  const url = new URL(server.url);
  change(url);
  return url.href;
};

describe('openPostgres', () => {
  it('S6: makes its tables once, however many begin at the same time', async () => {
    const many = Array.from({ length: 6 }, () =>
      open(server.url, { schema: 'm', pool: { max: 2 } }),
    );
    await Promise.all(many.map(list));
    const { rows } = await admin.query('select version from m.versions order by 1');
    expect(rows).toEqual([{ version: 1 }, { version: 2 }, { version: 3 }]);
  });

  it('S6: finds the calls of a session that were there before it was told them', async () => {
    const old = migrationsOf('old').slice(0, 2).flat();
    await admin.query('create schema old');
    await admin.query('create table old.versions (version integer primary key)');
    await admin.query('insert into old.versions values (1), (2)');
    for (const statement of old) await admin.query(statement);
    for (const [id, second] of [
      ['a', 20],
      ['b', 10],
    ] as const) {
      const begun = { version: 1, keySeed: 'k', agent: 'x', sessionId: 's t', input: [] };
      await admin.query(
        `insert into old.calls (key, id, last_position, created_at, updated_at)
        values ($1, $2, 1, to_timestamp($3), to_timestamp($3))`,
        [storedName(id), id, second],
      );
      await admin.query(`insert into old.records values ($1, 1, 'step', $2, 0, $3)`, [
        storedName(id),
        `${id}/call`,
        JSON.stringify(begun),
      ]);
    }
    const { driver } = open(server.url, { schema: 'old' }).calls;
    const [calls = []] = await lastValueFrom(driver.list$('s t').pipe(toArray()));
    expect(calls.map(({ callId, place }) => [callId, place])).toEqual([
      ['a', 2],
      ['b', 1],
    ]);
  });

  it('C7: refuses tables of a later version, and changes nothing', async () => {
    await list(open(server.url, { schema: 'later' }));
    await admin.query('insert into later.versions (version) values (99)');
    const refused = list(open(server.url, { schema: 'later' }));
    await expect(refused).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining('Install a newer @millrace/store'),
    });
  });

  it('C7: is retryable while connections are cut, and goes on by itself', async () => {
    const store = open(server.url, { schema: 'cut', pool: { max: 1 } });
    await list(store);
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null`;
    await admin.query('begin');
    await admin.query('lock table cut.calls in access exclusive mode');
    const reading = list(store);
    while ((await admin.query(`${cut} and wait_event_type = 'Lock'`)).rowCount === 0);
    await expect(reading).rejects.toMatchObject({ code: 'store', retryable: true });
    await admin.query('commit');
    await list(store);
    await admin.query(cut);
    // One that was cut while nobody used it is replaced, before or after it is noticed.
    await list(store).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'store', retryable: true });
    });
    await list(store);
  });

  it('X10: shows no password, whatever fails', async () => {
    const wrong = [
      urlWith((url) => (url.port = '1')),
      urlWith((url) => (url.username = 'nobody')),
      urlWith((url) => (url.pathname = '/nothing')),
      urlWith((url) => (url.hostname = 'localhost.invalid')),
    ];
    for (const url of wrong) {
      const error: unknown = await list(open(url)).catch((it: unknown) => it);
      expect(error).toMatchObject({ code: 'store' });
      const shown = inspect(error, { depth: 10, showHidden: true });
      expect(shown).not.toContain(server.password);
      expect(shown).not.toContain(new URL(server.url).password);
    }
    for (const url of [
      `${server.url}:x:y`.replace('postgres://', ''),
      `http://${server.password}`,
    ]) {
      expect(() => openPostgres(url)).toThrow('needs the URL of a database');
      expect(() => openPostgres(url)).not.toThrow(server.password);
    }
  });

  it('C7: says what to do where the user, or the database, is wrong', async () => {
    const wrong = urlWith((url) => (url.password = 'wrong'));
    await expect(list(open(wrong))).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining('Check the user and the password'),
    });
    const missing = urlWith((url) => (url.pathname = '/nothing'));
    await expect(list(open(missing))).rejects.toThrow('Create the database first');
  });

  it('C7: is of no use when it is closed', async () => {
    const store = open(server.url, { schema: 'closed' });
    await list(store);
    await closeStore(store);
    await expect(list(store)).rejects.toMatchObject({ code: 'store' });
  });

  it('C7: refuses options that cannot be', () => {
    expect(() => openPostgres(server.url, { schema: 'a"; drop' })).toThrow("'schema' must be");
    expect(() => openPostgres(server.url, { leaseMs: 1 })).toThrow("'leaseMs' must be");
  });
});
