import type { MillraceError } from '@millrace/core';
import pg from 'pg';
import { Observable, retry, type SchedulerLike, share, timer } from 'rxjs';
import { closed } from '../closing.js';
import { createTracked } from '../sql/tracked.js';
import { migrate } from '../sql/migrate.js';
import { makeVectors } from './make-vectors.js';
import { sqlFailure } from '../sql/sql-failure.js';
import type { LazySql, Query, Sql } from '../sql/sql.js';

/** How long until it is tried again to listen. */
const listenAgainMs = 1_000;

/** Opens a database on a server when it is first used. */
export const postgresSql = (
  config: pg.PoolConfig,
  schema: string,
  scheduler: SchedulerLike,
): LazySql => {
  const secrets = secretsIn(config);
  const tracked = createTracked();
  const failed = (error: unknown): MillraceError =>
    state.closed === undefined ? sqlFailure(error, 'Postgres', secrets) : closed();
  const state: { pool?: pg.Pool; opened?: Promise<Sql>; closed?: Promise<void> } = {};

  const connect = async (): Promise<Sql> => {
    const pool = (state.pool ??= poolOf(config));
    const query: Query = async (text, values = []) => {
      try {
        return await tracked.track(
          async () => (await pool.query<Record<string, unknown>>(text, [...values])).rows,
        );
      } catch (error) {
        throw failed(error);
      }
    };
    const transaction = <T>(work: (query: Query) => Promise<T>): Promise<T> =>
      tracked.track(() => inTransaction(work));
    const inTransaction = async <T>(work: (query: Query) => Promise<T>): Promise<T> => {
      const client = await pool.connect().catch((error: unknown) => {
        throw failed(error);
      });
      const run: Query = async (text, values = []) =>
        (await client.query<Record<string, unknown>>(text, [...values])).rows;
      try {
        await run('begin');
        const result = await work(run);
        await run('commit');
        client.release();
        return result;
      } catch (error) {
        // A connection that cannot even roll back is not used again.
        await run('rollback').then(
          () => client.release(),
          () => client.release(true),
        );
        throw failed(error);
      }
    };
    await migrate({ query, transaction, schema });
    const hasVectors = await makeVectors(query, schema);
    const channel = `${schema}_changes`;
    return {
      schema,
      query,
      transaction,
      hasVectors,
      notify: notifier(query, channel),
      notices$: notices$(config, channel).pipe(
        retry({ delay: () => timer(listenAgainMs, scheduler) }),
        share(),
      ),
    };
  };
  const end = async (): Promise<void> => {
    await state.opened?.catch(() => undefined);
    await tracked.settled();
    await state.pool?.end();
  };
  return {
    open: () => {
      if (state.closed !== undefined) return Promise.reject(closed());
      // What failed is tried again by the next who asks.
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

const poolOf = (config: pg.PoolConfig): pg.Pool => {
  const pool = new pg.Pool({
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000,
    keepAlive: true,
    ...config,
  });
  // A connection that breaks while nobody uses it is replaced when somebody does.
  pool.on('error', () => undefined);
  return pool;
};

const secretsIn = ({ password, connectionString }: pg.PoolConfig): readonly string[] => {
  const inUrl = connectionString === undefined ? '' : new URL(connectionString).password;
  const given = typeof password === 'string' ? [password] : [];
  return [...given, inUrl, decodeURIComponent(inUrl)].filter((secret) => secret !== '');
};

/** Notices are sent beside the transactions, as these would wait for each other otherwise; those that come while one is on its way go together. */
const notifier = (query: Query, channel: string): ((topic: string) => void) => {
  const topics = new Set<string>();
  const state = { isSending: false };
  const send = (): void => {
    if (state.isSending || topics.size === 0) return;
    state.isSending = true;
    const sent = [...topics];
    topics.clear();
    query('select pg_notify($1, topic) from unnest($2::text[]) as topic', [channel, sent])
      // Who listens looks now and then anyway.
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
