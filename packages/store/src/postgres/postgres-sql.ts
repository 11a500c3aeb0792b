import type { MillraceError } from '@millrace/core';
import pg from 'pg';
import { Observable, retry, type SchedulerLike, share, timer } from 'rxjs';
import { closed } from '../closing.js';
import { createPendingWork } from '../sql/pending-work.js';
import { memoryStatements } from '../sql/memory-statements.js';
import { makeTables } from '../sql/make-tables.js';
import { addedColumns, tableStatements } from '../sql/tables.js';
import { toSqlError } from '../sql/sql-error.js';
import type { LazySql, Query, Sql } from '../sql/sql.js';

/** Delay before it listens for notifications again after a lost connection. */
const reconnectMs = 1_000;

/** A database on a server. Connects on first use. */
export const postgresSql = (
  config: pg.PoolConfig,
  schema: string,
  scheduler: SchedulerLike,
): LazySql => {
  const secrets = secretsIn(config);
  const pending = createPendingWork();
  const failed = (error: unknown): MillraceError =>
    state.closed === undefined ? toSqlError(error, 'Postgres', secrets) : closed();
  const state: { pool?: pg.Pool; opened?: Promise<Sql>; closed?: Promise<void> } = {};

  const connect = async (): Promise<Sql> => {
    const pool = (state.pool ??= poolOf(config));
    const query: Query = async (text, values = []) => {
      try {
        return await pending.track(
          async () => (await pool.query<Record<string, unknown>>(text, [...values])).rows,
        );
      } catch (error) {
        throw failed(error);
      }
    };
    const transaction = <T>(work: (query: Query) => Promise<T>): Promise<T> =>
      pending.track(() => inTransaction(work));
    const inTransaction = async <T>(work: (query: Query) => Promise<T>): Promise<T> => {
      const client = await pool.connect().catch((error: unknown) => {
        throw failed(error);
      });
      // The statement in progress rejects as well; without a listener, the process would end.
      client.on('error', ignore);
      const run: Query = async (text, values = []) =>
        (await client.query<Record<string, unknown>>(text, [...values])).rows;
      try {
        await run('begin');
        const result = await work(run);
        await run('commit');
        client.release();
        return result;
      } catch (error) {
        // Discard a connection that cannot even roll back.
        await run('rollback').then(
          () => client.release(),
          () => client.release(true),
        );
        throw failed(error);
      } finally {
        client.off('error', ignore);
      }
    };
    await makeTables(
      { query, transaction, schema },
      tableStatements(schema),
      'versions',
      addedColumns(schema),
    );
    const hasVectors = await makeVectors(query, schema);
    const channel = `${schema}_changes`;
    return {
      schema,
      query,
      transaction,
      hasVectors,
      notify: notifier(query, channel),
      notices$: notices$(config, channel).pipe(
        retry({ delay: () => timer(reconnectMs, scheduler) }),
        share(),
      ),
    };
  };
  const end = async (): Promise<void> => {
    await state.opened?.catch(() => undefined);
    await pending.settled();
    await state.pool?.end();
  };
  return {
    open: () => {
      if (state.closed !== undefined) return Promise.reject(closed());
      // The next caller retries a failed attempt.
      state.opened ??= connect().catch((error: unknown) => {
        delete state.opened;
        throw failed(error);
      });
      return state.opened;
    },
    close: () => {
      state.closed ??= end();
      return state.closed;
    },
  };
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
  } catch {
    return false;
  }
};

const ignore = (): void => undefined;

const poolOf = (config: pg.PoolConfig): pg.Pool => {
  const pool = new pg.Pool({
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000,
    keepAlive: true,
    ...config,
  });
  // The pool replaces a broken idle connection on the next use.
  pool.on('error', ignore);
  return pool;
};

const secretsIn = ({ password, connectionString }: pg.PoolConfig): readonly string[] => {
  const inUrl = connectionString === undefined ? '' : new URL(connectionString).password;
  const given = typeof password === 'string' ? [password] : [];
  return [...given, inUrl, decodeURIComponent(inUrl)].filter((secret) => secret !== '');
};

/** Sends notifications outside the transactions, which would wait for each other otherwise. Batches pending topics. */
const notifier = (query: Query, channel: string): ((topic: string) => void) => {
  const topics = new Set<string>();
  const state = { isSending: false };
  const send = (): void => {
    if (state.isSending || topics.size === 0) return;
    state.isSending = true;
    const sent = [...topics];
    topics.clear();
    query('select pg_notify($1, topic) from unnest($2::text[]) as topic', [channel, sent])
      // Listeners also poll, so a lost notification only delays them.
      .catch(() => undefined)
      .finally(() => {
        state.isSending = false;
        send();
      });
  };
  return (topic) => {
    topics.add(topic);
    send();
  };
};

const notices$ = (config: pg.PoolConfig, channel: string): Observable<string> =>
  new Observable((subscriber) => {
    const client = new pg.Client({ connectionTimeoutMillis: 10_000, keepAlive: true, ...config });
    client.on('notification', ({ payload = '' }) => subscriber.next(payload));
    client.on('error', (error) => subscriber.error(error));
    client.on('end', () => subscriber.error(new Error('The connection has ended.')));
    client
      .connect()
      .then(() => client.query(`listen ${channel}`))
      .then(
        () => subscriber.next(''),
        (error: unknown) => subscriber.error(error),
      );
    return () => {
      client.end().catch(() => undefined);
    };
  });
