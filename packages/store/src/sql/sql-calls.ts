import type { CallStoreDriver } from '@millrace/core/journal';
import type { CallLeaseOptions } from './call-leases.js';
import { callOf, columnsOf, recordOf } from './call-rows.js';
import { callStatements } from './call-statements.js';
import type { CallTable } from './call-table.js';
import type { LazySql, Sql } from './sql.js';
import { tableCalls } from './table-calls.js';
import { numberIn, textIn, toSqlText } from './text.js';

/** The calls in a database that speaks the SQL of Postgres. */
export const postgresCallTable = (sql: Sql): CallTable => {
  const { query, schema, notices$ } = sql;
  const statements = callStatements(schema);
  return {
    claim: async ({ key, callId, owner, leaseMs, silent = null }) => {
      const values = [key, toSqlText(callId), owner, leaseMs, silent];
      const [row] = await query(statements.claim, values);
      return row && numberIn(row, 'last_position');
    },
    holder: async (key) => {
      const [row] = await query(statements.holder, [key]);
      return row && textIn(row, 'sign');
    },
    renew: async (key, owner, leaseMs) =>
      (await query(statements.renew, [key, owner, leaseMs])).length > 0,
    release: (key, owner) => query(statements.release, [key, owner]),
    releaseAll: (keys) => query(statements.releaseAll, [keys]),
    append: async ({ key, owner, records, sessionId, isSafe }) => {
      const written = await query(isSafe ? statements.append : statements.appendEvents, [
        key,
        owner,
        records.length,
        ...columnsOf(records),
        sessionId && toSqlText(sessionId),
      ]);
      if (written.length > 0) sql.notify(key);
      return written.length > 0;
    },
    read: async (key, { kind = null, after = 0, afterSeq = -1 }) =>
      (await query(statements.read, [key, after, afterSeq, kind])).map(recordOf),
    list: async ({ sessionId, writtenUntil = Infinity }, after) => {
      // A session usually needs only its latest calls.
      const [page, statement] =
        sessionId === undefined ? [50, statements.list] : [5, statements.listSession];
      const start = after ?? ['infinity', ''];
      const session = sessionId && toSqlText(sessionId);
      const rows = await query(statement, [...start, page, session]);
      const last = rows.at(-1);
      const end = last && [String(last['page_end']), textIn(last, 'key')];
      const calls = rows.map(callOf).filter(({ updatedAt }) => updatedAt <= writtenUntil);
      return { calls, end };
    },
    remove: (key, owner) => query(statements.remove, [key, owner]),
    notices$,
  };
};

/** The driver of calls in a database that speaks the SQL of Postgres. */
export const sqlCalls = (sql: LazySql, options: CallLeaseOptions): CallStoreDriver =>
  tableCalls(async () => postgresCallTable(await sql.open()), options);
