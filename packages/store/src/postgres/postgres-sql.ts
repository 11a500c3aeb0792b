import { MillraceError } from 'millrace';
import type pg from 'pg';
import type { SchedulerLike } from 'rxjs';
import { closed } from '../closing.js';
import { sharedAttempt } from '../shared-attempt.js';
import { createPendingWork, type PendingWork } from '../sql/pending-work.js';
import { memoryStatements } from '../sql/memory-statements.js';
import { makeTables } from '../sql/make-tables.js';
import { tableStatements } from '../sql/tables.js';
import { sqlFailure, toSqlError } from '../sql/sql-error.js';
import type { LazySql, Query, Sql } from '../sql/sql.js';
import { type Connections, createConnections } from './connections.js';
import { notices$, notifier } from './notices.js';
import { createRepeat, type Repeat } from './repeat.js';
import { queryOf, transactionAttempt } from './transactions.js';

export interface PostgresSqlOptions {
  readonly schema: string;
  readonly scheduler: SchedulerLike;
  /** How long a statement is repeated while the server is unavailable, in milliseconds. */
  readonly retryMs: number;
}

/** A database on a server. Connects on first use. */
export const postgresSql = (
  config: pg.PoolConfig,
  { schema, scheduler, retryMs }: PostgresSqlOptions,
): LazySql => {
  const secrets = secretsIn(config);
  const pending = createPendingWork();
  const connections = createConnections(config);
  const state: { isStopped?: true; closed?: Promise<void> } = {};
  const failed = (error: unknown, more?: string): MillraceError =>
    state.isStopped === true ? closed() : toSqlError(error, 'Postgres', secrets, more);
  const repeat = createRepeat({
    retryMs,
    scheduler,
    failed: (error, forMs) => failed(error, forMs > 0 ? retried(forMs) : undefined),
  });

  const { query, transaction } = repeatedStatements(connections, repeat, pending);
  /** Not repeated: all who wait for it share it, and each of them repeats it for its own time. */
  const connect = sharedAttempt(() =>
    pending.track(async (): Promise<Sql> => {
      const hasVectors = await prepareSchema(connections, schema);
      const channel = `${schema}_changes`;
      return {
        schema,
        query,
        transaction,
        hasVectors,
        notify: notifier(query, channel),
        notices$: notices$(config, channel, scheduler),
      };
    }),
  );
  const stop = (): void => {
    state.isStopped = true;
    repeat.stop();
  };
  const end = async (): Promise<void> => {
    stop();
    await pending.settled();
    await connections.end();
  };
  return {
    open: (signal) =>
      state.closed === undefined ? repeat(connect, signal) : Promise.reject(closed()),
    stop,
    close: () => {
      state.closed ??= end();
      return state.closed;
    },
  };
};

const repeatedStatements = (
  connections: Connections,
  repeat: Repeat,
  pending: PendingWork,
): Pick<Sql, 'query' | 'transaction'> => ({
  query: (text, values = [], signal) =>
    pending.track(() =>
      repeat(() => connections.use((client) => queryOf(client)(text, values)), signal),
    ),
  transaction: (work, signal) =>
    pending.track(async () => {
      const attempt = transactionAttempt(connections, work);
      try {
        return await repeat(attempt, signal);
      } catch (error) {
        throw attempt.isInDoubt() ? inDoubt(error) : error;
      }
    }),
});

const retried = (forMs: number): string => ` Retried for ${Math.round(forMs / 100) / 10} s.`;

const inDoubt = (error: unknown): MillraceError => {
  const { message } = toSqlError(error, 'Postgres');
  return new MillraceError('store', `${message} It is not known whether the change was made.`, {
    cause: error,
    retryable: true,
  });
};

/** Creates the tables, or what is missing of them. Resolves to whether there is a table of vectors. */
const prepareSchema = async (connections: Connections, schema: string): Promise<boolean> => {
  const query: Query = (text, values) => connections.use((client) => queryOf(client)(text, values));
  const transaction: Sql['transaction'] = (work) => transactionAttempt(connections, work)();
  const sql = { query, transaction, schema };
  await makeTables(sql, tableStatements(schema));
  return makeVectors(query, schema);
};

/** Creates the table of vectors if the server has pgvector and the user may use it. Resolves to whether it exists. */
const makeVectors = async (query: Query, schema: string): Promise<boolean> => {
  const [found] = await query(
    `select installed_version from pg_available_extensions where name = 'vector'`,
  );
  if (found === undefined) return false;
  try {
    if (found['installed_version'] === null) await query('create extension if not exists vector');
    const [table = {}] = await query('select to_regclass($1) is not null as there', [
      `${schema}.memory_vectors`,
    ]);
    if (table['there'] !== true) await query(memoryStatements(schema).makeVectors);
    return true;
  } catch (error) {
    // The next attempt to open the database finds out.
    if (sqlFailure(error) !== 'other') throw error;
    return false;
  }
};

const secretsIn = ({ password, connectionString }: pg.PoolConfig): readonly string[] => {
  const inUrl = connectionString === undefined ? '' : new URL(connectionString).password;
  const given = typeof password === 'string' ? [password] : [];
  return [...given, inUrl, decodeURIComponent(inUrl)].filter((secret) => secret !== '');
};
