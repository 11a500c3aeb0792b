import { MillraceError } from '@millrace/core';
import type pg from 'pg';
import type { SchedulerLike } from 'rxjs';
import { closed } from '../closing.js';
import { createPendingWork } from '../sql/pending-work.js';
import { memoryStatements } from '../sql/memory-statements.js';
import { makeTables } from '../sql/make-tables.js';
import { addedColumns, tableStatements } from '../sql/tables.js';
import { sqlFailure, toSqlError } from '../sql/sql-error.js';
import type { LazySql, Query, Sql } from '../sql/sql.js';
import { createConnections } from './connections.js';
import { notices$, notifier } from './notices.js';
import { createRepeat } from './repeat.js';
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
  const state: { opened?: Promise<Sql>; isStopped?: true; closed?: Promise<void> } = {};
  const failed = (error: unknown, more?: string): MillraceError =>
    state.isStopped === true ? closed() : toSqlError(error, 'Postgres', secrets, more);
  const repeat = createRepeat({
    retryMs,
    scheduler,
    failed: (error, forMs) => failed(error, forMs > 0 ? retried(forMs) : undefined),
  });

  const query: Query = (text, values = [], signal) =>
    pending.track(() =>
      repeat(() => connections.use((client) => queryOf(client)(text, values)), signal),
    );
  const transaction: Sql['transaction'] = (work, signal) =>
    pending.track(async () => {
      const attempt = transactionAttempt(connections, work);
      try {
        return await repeat(attempt, signal);
      } catch (error) {
        throw attempt.isInDoubt() ? inDoubt(error) : error;
      }
    });
  /** Not repeated: all who wait for it share it, and each of them repeats it for its own time. */
  const connect = async (): Promise<Sql> => {
    const once: Query = (text, values) =>
      connections.use((client) => queryOf(client)(text, values));
    await makeTables(
      {
        query: once,
        transaction: (work) => transactionAttempt(connections, work)(),
        schema,
      },
      tableStatements(schema),
      'versions',
      addedColumns(schema),
    );
    const hasVectors = await makeVectors(once, schema);
    const channel = `${schema}_changes`;
    return {
      schema,
      query,
      transaction,
      hasVectors,
      notify: notifier(query, channel),
      notices$: notices$(config, channel, scheduler),
    };
  };
  const stop = (): void => {
    state.isStopped = true;
    repeat.stop();
  };
  const end = async (): Promise<void> => {
    stop();
    await state.opened?.catch(() => undefined);
    await pending.settled();
    await connections.end();
  };
  return {
    open: (signal) => {
      if (state.closed !== undefined) return Promise.reject(closed());
      return repeat(() => {
        // The next caller retries a failed attempt.
        state.opened ??= pending.track(connect).catch((error: unknown) => {
          delete state.opened;
          throw error;
        });
        return state.opened;
      }, signal);
    },
    stop,
    close: () => {
      state.closed ??= end();
      return state.closed;
    },
  };
};

const retried = (forMs: number): string => ` Retried for ${Math.round(forMs / 100) / 10} s.`;

const inDoubt = (error: unknown): MillraceError => {
  const { message } = toSqlError(error, 'Postgres');
  return new MillraceError('store', `${message} It is not known whether the change was made.`, {
    cause: error,
    retryable: true,
  });
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
