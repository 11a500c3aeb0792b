import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
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
