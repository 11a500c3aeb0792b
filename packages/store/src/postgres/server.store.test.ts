import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type Message, noUsage } from 'millrace';
import { checkSessionQuery, type SessionQuery, type SessionState } from 'millrace/sessions';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import { EMPTY, lastValueFrom } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { findStatement } from '../sql/sql-sessions.js';
import type { Store } from '../store.js';
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
    expect(rows).toEqual([{ version: 1 }]);
  });

  it.each([0, 2])(
    'S4: refuses tables of the format version %d, and changes nothing',
    async (version) => {
      const schema = `other${version}`;
      await list(open(server.url, { schema }));
      await admin.query(`update ${schema}.versions set version = ${version}`);
      await expect(list(open(server.url, { schema }))).rejects.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(
          `${schema}.versions has format version ${version}, but this release of Millrace reads only format version 1`,
        ),
      });
      const { rows } = await admin.query(`select version from ${schema}.versions`);
      expect(rows).toEqual([{ version }]);
    },
  );

  it('S4: finds sessions by text and time, and branches of a line without any', async () => {
    const state = (text: string, more: object = {}): SessionState => ({
      version: 1,
      messages: [{ id: 'm', role: 'user', content: [{ type: 'text', text }] }],
      groups: {},
      approvals: [],
      usage: noUsage,
      interrupted: false,
      ...more,
    });
    const { sessions } = open(server.url, { schema: 'found' });
    const ids = Array.from({ length: 105 }, (_, at) => `s${at}`);
    await Promise.all(
      ids.map((id) => lastValueFrom(sessions.save$(id, state(`Text \0 of ${id}.`), undefined))),
    );
    const said = (id: string): Message => ({ id, role: 'user', content: [] });
    const { memory } = open(server.url, { schema: 'found' });
    for (const id of ['a', 'b', 'c']) {
      await lastValueFrom(memory('line').append$([said(id)]), { defaultValue: undefined });
    }
    const { rows: stored } = await admin.query(
      'select head, after from found.conversations join found.messages on conversation = key',
    );
    expect(stored).toEqual([1, 2, 3].map(() => ({ head: null, after: null })));
    // As after all of it was replaced.
    await admin.query('update found.messages set position = position + 5');
    await admin.query('update found.conversations set length = length + 5');
    const many = Array.from({ length: 4 }, () => open(server.url, { schema: 'found' }).sessions);
    const find = (query: SessionQuery) =>
      Promise.all(many.map((each) => lastValueFrom(each.find$(query))));
    for (const found of await find({ limit: 200 })) expect(found).toHaveLength(105);
    for (const found of await find({ search: '\0 OF S10' })) {
      expect(found.map(({ id }) => id).sort()).toEqual([
        ...['s10', 's100', 's101', 's102', 's103', 's104'],
      ]);
    }
    const line = open(server.url, { schema: 'found' }).memory('line');
    expect(await lastValueFrom(line.load$())).toEqual(['a', 'b', 'c'].map(said));
    await lastValueFrom(line.append$([said('e')], { after: null }));
    for (const at of ['a', 'e']) {
      expect(await lastValueFrom(line.branches$?.(at) ?? EMPTY)).toEqual(['a', 'e']);
    }
    await lastValueFrom(line.append$([said('d')], { after: 'a' }));
    expect(await lastValueFrom(line.load$({ at: 'd' }))).toEqual([said('a'), said('d')]);
    expect(await lastValueFrom(line.load$())).toEqual(['a', 'b', 'c'].map(said));
    await admin.query(`update found.sessions set updated_at = '2026-01-01T00:00:00.123456Z'`);
    const all = await lastValueFrom(sessions.find$({ limit: 200 }));
    expect(new Set(all.map(({ savedAt }) => savedAt))).toEqual(new Set([1_767_225_600_123.456]));
    for (const at of [0, 1, 50, 103, 104]) {
      const before = all[at];
      const rest = await lastValueFrom(sessions.find$({ ...(before && { before }), limit: 7 }));
      expect(rest).toEqual(all.slice(at + 1, at + 8));
    }
    const version = (await lastValueFrom(sessions.load$('s1')))?.version;
    await lastValueFrom(sessions.save$('s1', state('New.', { title: 'Titled' }), version));
    expect(await find({ search: 'titled', prefix: 's1' })).toEqual(
      many.map(() => [{ id: 's1', title: 'Titled', savedAt: expect.any(Number) }]),
    );
  });

  it('S4: finds a page of many sessions by an index', async () => {
    const { sessions } = open(server.url, { schema: 'pages' });
    await lastValueFrom(sessions.find$());
    await admin.query(`insert into pages.sessions (key, id, state, search, updated_at)
      select 'i-' || at, 'user' || at % 1000 || '/' || at, '{}', '', now() - at * interval '1 s'
      from generate_series(1, 20000) as at`);
    await admin.query('analyze pages.sessions');
    const [first] = await lastValueFrom(sessions.find$());
    expect(first?.id).toBe('user1/1');
    expect(await lastValueFrom(sessions.find$({ prefix: 'user7/' }))).toHaveLength(20);
    for (const query of [{}, { prefix: 'user7/' }, { ...(first && { before: first }) }]) {
      const [statement, values] = findStatement('pages', checkSessionQuery(query));
      const { rows } = await admin.query(`explain ${statement}`, [...values]);
      expect(inspect(rows)).toMatch(/sessions_by_(?:id|time)/);
      expect(inspect(rows)).not.toContain('Seq Scan');
    }
  });

  it.each([0, 10_000])('C7: with retryMs %d, an answer that is cut off', async (retryMs) => {
    const schema = `cut${retryMs}`;
    const store = open(server.url, { schema, retryMs, pool: { max: 1 } });
    await list(store);
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null`;
    await admin.query('begin');
    await admin.query(`lock table ${schema}.calls in access exclusive mode`);
    const reading = list(store).catch((error: unknown) => error);
    while ((await admin.query(`${cut} and wait_event_type = 'Lock'`)).rowCount === 0);
    if (retryMs === 0) expect(await reading).toMatchObject({ code: 'store', retryable: true });
    await admin.query('commit');
    if (retryMs > 0) expect(await reading).toEqual([]);
    await list(store);
    await admin.query(cut);
    // One that was cut while nobody used it is replaced, before or after it is noticed.
    await list(store).catch((error: unknown) => {
      expect([retryMs, error]).toMatchObject([0, { code: 'store', retryable: true }]);
    });
    await list(store);
  });

  it('X10: shows no password, in any failure', async () => {
    const wrong = [
      urlWith((url) => (url.port = '1')),
      urlWith((url) => (url.username = 'nobody')),
      urlWith((url) => (url.pathname = '/nothing')),
      urlWith((url) => (url.hostname = 'localhost.invalid')),
    ];
    for (const url of wrong) {
      const since = performance.now();
      const error: unknown = await list(open(url, { retryMs: 100 })).catch((it: unknown) => it);
      // Not the default of 10 s.
      expect(performance.now() - since).toBeLessThan(8_000);
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

  it('C7: says what to do if the user, or the database, is wrong', async () => {
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
    expect(() => openPostgres(server.url, { retryMs: -1 })).toThrow("'retryMs' must be");
  });
});
