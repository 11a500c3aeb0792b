import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { noUsage } from 'millrace';
import type { SessionState } from 'millrace/sessions';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import { lastValueFrom, toArray } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { startFaultProxy } from './fault-proxy.test-support.js';
import { faults, runFault } from './faults.test-support.js';
import { openPostgres } from './open-postgres.js';

jest.setTimeout(240_000);

let server: TestServer;
beforeAll(async () => {
  server = await startPostgres();
}, 180_000);
afterAll(() => server.stop());

describe('C7: openPostgres under faults', () => {
  it.each(faults.map((fault) => [fault.name, fault] as const))(
    'fails no call, and does nothing twice: %s',
    async (name, fault) => {
      // Such a server must not be restarted.
      if (server.restart === undefined && /restart|crash/.test(name)) return;
      const result = await runFault(fault, server, (url) =>
        openPostgres(url, { schema: 'faults' + String(faults.indexOf(fault)) }),
      );
      expect(result).toMatchObject({ errors: [], failed: 0, failedAfter: 0, twice: 0 });
      expect(result.effects).toBe(result.expected);
    },
  );
});

const state: SessionState = {
  version: 1,
  messages: [],
  groups: {},
  approvals: [],
  usage: noUsage,
  interrupted: false,
};

describe('C7: a transaction of openPostgres', () => {
  it('is not done again if only the answer to its commit was lost', async () => {
    const proxy = await startFaultProxy(server.url);
    const store = openPostgres(proxy.url, { schema: 'outcome' });
    try {
      const { save$, load$ } = store.sessions;
      const first = await lastValueFrom(save$('s', state, undefined));
      // The statement itself: others name the isolation level.
      proxy.cutNext('answer', 'commit\0');
      // Done again, it would be in conflict with itself.
      const second = await lastValueFrom(save$('s', { ...state, interrupted: true }, first));
      expect(proxy.cuts()).toBe(1);
      expect(second).toBe(first + 1);
      const loaded = await lastValueFrom(load$('s').pipe(toArray()));
      expect(loaded).toMatchObject([{ version: second, state: { interrupted: true } }]);
    } finally {
      await closeStore(store);
      await proxy.close();
    }
  });

  it.each(['40001', '40P01'])('is repeated after %s, also with retryMs 0', async (code) => {
    const schema = `again_${code.toLowerCase()}`;
    const store = openPostgres(server.url, { schema, retryMs: 0 });
    const admin = new pg.Client(server.url);
    await admin.connect();
    try {
      const { save$ } = store.sessions;
      const first = await lastValueFrom(save$('s', state, undefined));
      // A sequence counts what is rolled back as well.
      await admin.query(`
        create sequence ${schema}.tries;
        create function ${schema}.fail() returns trigger language plpgsql as $$
        begin
          if nextval('${schema}.tries') <= 3 then raise exception 'busy' using errcode = '${code}'; end if;
          return new;
        end $$;
        create trigger fail before update on ${schema}.sessions for each row execute function ${schema}.fail();`);
      expect(await lastValueFrom(save$('s', state, first))).toBeGreaterThan(first);
      const { rows } = await admin.query(`select last_value::int as tries from ${schema}.tries`);
      expect(rows).toEqual([{ tries: 4 }]);
    } finally {
      await admin.end();
      await closeStore(store);
    }
  });
});
