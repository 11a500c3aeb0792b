import type { CallStoreDriver, NewRecord, StoredCall } from 'millrace/journal';
import type { CallLeaseOptions } from './call-leases.js';
import { type CallStatements, callStatements, listStatement } from './call-statements.js';
import type { CallTable, RecordBatch } from './call-table.js';
import type { LazySql, Sql, Row } from './sql.js';
import { tableCalls } from './table-calls.js';
import { numberIn, recordOf, textIn, toSqlText } from './text.js';
import { isRecord } from 'millrace/values';

/** The number of events of a writer after which one append waits for the disk. */
const maxUnsafe = 500;

/** The calls in a database that speaks the SQL of Postgres, for one claim, or for reading. */
export const postgresCallTable = (sql: Sql): CallTable => {
  const { query, schema, notices$ } = sql;
  const statements = callStatements(schema);
  const append = appendTo(sql, statements);
  return {
    claim: async ({ key, callId, owner, leaseMs, silent = null }, signal) => {
      const values = [key, toSqlText(callId), owner, leaseMs, silent];
      const [row] = await query(statements.claim, values, signal);
      return row && numberIn(row, 'last_position');
    },
    holder: async (key) => {
      const [row] = await query(statements.holder, [key]);
      return row && textIn(row, 'sign');
    },
    renew: async (key, owner, leaseMs, signal) =>
      (await query(statements.renew, [key, owner, leaseMs], signal)).length > 0,
    release: (key, owner) => query(statements.release, [key, owner]),
    releaseAll: (keys, signal) => query(statements.releaseAll, [keys], signal),
    append: async (batch, signal) => {
      const isHeld = await append(batch, signal);
      if (isHeld) sql.notify(batch.key);
      return isHeld;
    },
    read: async (key, { kind = null, after = 0, afterSeq = -1 }, signal) =>
      (await query(statements.read, [key, after, afterSeq, kind], signal)).map(recordOf),
    list: async (which, after, signal) => {
      const rows = await query(...listStatement(schema, which, after), signal);
      const last = rows.at(-1);
      const end = last && [String(last['page_end']), textIn(last, 'key')];
      return { calls: rows.map(callOf), end };
    },
    remove: (key, owner) => query(statements.remove, [key, owner]),
    // Not a single statement: repeated, it would not know the sessions.
    removeAll: (keys) =>
      sql.transaction(async (run) =>
        (await run(statements.removeAll, [keys])).map((row) => ({
          key: textIn(row, 'key'),
          ...(row['session'] !== null && { sessionId: textIn(row, 'session') }),
        })),
      ),
    notices$,
  };
};

/** Appends batches, and remembers the events that a crash of the server may lose: it did not wait for its disk. */
const appendTo = ({ query }: Sql, statements: CallStatements): CallTable['append'] => {
  /** The last events of each writer. */
  const unsafe = new Map<string, readonly NewRecord[]>();
  /** The position of the last record of a call that the owner holds. */
  const positionOf = async ({ key, owner }: RecordBatch, signal: AbortSignal | undefined) => {
    const [row] = await query(statements.position, [key, owner], signal);
    return row && numberIn(row, 'last_position');
  };
  return async (batch, signal) => {
    const { key, owner, records, sessionId, isSafe, after: known } = batch;
    const after = known ?? (await positionOf(batch, signal));
    if (after === undefined) return false;
    const write = async (part: readonly NewRecord[], position: number, isPartSafe: boolean) => {
      const values = [
        ...[key, owner, part.length, ...columnsOf(part)],
        ...[sessionId && toSqlText(sessionId), position, part.at(-1)?.ends === true],
      ];
      const statement = isPartSafe ? statements.append : statements.appendEvents;
      return (await query(statement, values, signal)).length > 0;
    };
    // After an append that failed, it is not known which records the server has.
    if (known === undefined) unsafe.delete(owner);
    const kept = unsafe.get(owner) ?? [];
    const makesSafe = isSafe || kept.length > maxUnsafe;
    if (!(await write(records, after, makesSafe))) {
      // The answer to an earlier attempt may have been lost, or the server has crashed and lost the last events.
      const position = (await positionOf(batch, signal)) ?? NaN;
      const lost = kept.slice(position - after);
      const hasLost = position < after && lost.length === after - position;
      const isStored = hasLost
        ? await write([...lost, ...records], position, true)
        : position === after + records.length;
      if (!isStored) return false;
    }
    if (makesSafe) unsafe.delete(owner);
    else unsafe.set(owner, [...kept, ...records]);
    return true;
  };
};

/** The driver of calls in a database that speaks the SQL of Postgres. */
export const sqlCalls = (sql: LazySql, options: CallLeaseOptions): CallStoreDriver =>
  tableCalls(async (signal) => postgresCallTable(await sql.open(signal)), options);

/** The records as one array per column. */
const columnsOf = (records: readonly NewRecord[]): readonly (readonly unknown[])[] => [
  records.map(({ kind }) => kind),
  records.map(({ name }) => toSqlText(name)),
  records.map(({ seq }) => seq),
  records.map(({ text }) => toSqlText(text)),
];

const callOf = ({ first, last, ...row }: Row): StoredCall => ({
  callId: textIn(row, 'id'),
  createdAt: Math.floor(numberIn(row, 'created_ms')),
  updatedAt: Math.floor(numberIn(row, 'updated_ms')),
  isOpen: row['is_open'] === true,
  place: numberIn(row, 'place'),
  ...(isRecord(first) && { first: recordOf(first) }),
  ...(isRecord(last) && { last: recordOf(last) }),
});
