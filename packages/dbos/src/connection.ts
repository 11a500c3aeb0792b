import { DBOSClient } from '@dbos-inc/dbos-sdk';
import { ensureSystemDatabase } from '@dbos-inc/dbos-sdk/internal/system_database';
import { GlobalLogger } from '@dbos-inc/dbos-sdk/internal/telemetry/logs';
import pg from 'pg';
import {
  defer,
  exhaustMap,
  firstValueFrom,
  from,
  interval,
  Observable,
  timeout,
  timer,
} from 'rxjs';
import { closed } from './errors.js';

export type Row = Readonly<Record<string, unknown>>;

export const idsIn = (rows: readonly Row[]): readonly string[] => rows.map(({ id }) => String(id));

export type Run = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

export interface ConnectionOptions {
  readonly url: string;
  /** Scopes the queues: engines of other names do not see each other's calls. */
  readonly name: string;
  /** The schema of DBOS. */
  readonly schema: string;
  readonly pool?: pg.PoolConfig | undefined;
}

/** The connections of a process to the database of the engine. */
export interface Connection {
  /** Shared with DBOS in this process. */
  readonly pool: pg.Pool;
  readonly query: Run;
  readonly inTransaction: <T>(
    work: (run: Run, connection: pg.PoolClient) => Promise<T>,
  ) => Promise<T>;
  /** DBOS, once its tables are up to date. */
  readonly client: () => Promise<DBOSClient>;
  /**
   * Holds a connection that shows other workers that this one is alive. Emits an empty string once it does, then the id of
   * a call at each new message to it. Errors when the connection is lost. Cold.
   */
  presence$(worker: string): Observable<string>;
  close(): Promise<void>;
}

/** The topic of our messages in DBOS. */
export const topic = 'millrace';
const channel = 'dbos_notifications_channel';

/** The name of the connection that shows that a worker is alive. */
export const workerName = (id: string): string => `millrace ${id}`;

/** After this time, in milliseconds, a worker that says nothing is taken for dead. */
export const silentMs = 30_000;

/** How often a worker says something in this time. */
const beats = 6;

/** Distinguishes our locks from those of others. */
export const lockSeed = 7_205_759;

export const openConnection = ({
  url,
  name,
  schema,
  pool: config,
}: ConnectionOptions): Connection => {
  const pool = new pg.Pool({
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000,
    keepAlive: true,
    ...config,
    connectionString: url,
  });
  // The pool replaces a broken idle connection on the next use.
  pool.on('error', ignore);
  // The statement in progress rejects as well; without a listener, the process would end. A server may shut down before the first statement.
  pool.on('connect', (connection) => connection.on('error', ignore));
  let opening: Promise<DBOSClient> | undefined;
  let closing: Promise<void> | undefined;
  const query: Run = async (text, values = []) => {
    await client();
    return (await pool.query<Row>(text, [...values])).rows;
  };
  const inTransaction: Connection['inTransaction'] = async (work) => {
    await client();
    return transaction(pool, work);
  };
  const open = async (): Promise<DBOSClient> => {
    await migrate(pool, url, schema);
    return DBOSClient.create({
      systemDatabaseUrl: url,
      systemDatabasePool: pool,
      systemDatabaseSchemaName: schema,
      applicationName: name,
      logger: silent,
    });
  };
  const client = (): Promise<DBOSClient> => {
    if (closing !== undefined) return Promise.reject(closed());
    // The next caller repeats a failed attempt.
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  return {
    pool,
    query,
    inTransaction,
    client,
    presence$: (worker) => presence$({ ...config, connectionString: url }, worker),
    close: () => {
      closing ??= Promise.resolve(opening)
        .catch(ignore)
        .then(() => pool.end());
      return closing;
    },
  };
};

const transaction = async <T>(
  pool: pg.Pool,
  work: (run: Run, connection: pg.PoolClient) => Promise<T>,
): Promise<T> => {
  const connection = await pool.connect();
  const run: Run = async (text, values = []) =>
    (await connection.query<Row>(text, [...values])).rows;
  try {
    await run('begin');
    const result = await work(run, connection);
    await run('commit');
    connection.release();
    return result;
  } catch (error) {
    await run('rollback').then(
      () => connection.release(),
      () => connection.release(true),
    );
    throw error;
  }
};

/**
 * Brings the tables of DBOS up to date. One process at a time: others would use what is half done. They poll for the lock, as indexes are
 * created concurrently, which waits for all statements that wait.
 */
const migrate = async (pool: pg.Pool, url: string, schema: string): Promise<void> => {
  const connection = await pool.connect();
  const lock = [JSON.stringify(['migrate', schema]), lockSeed];
  const isOurs = async (): Promise<boolean> => {
    const { rows } = await connection.query<Row>(
      'select pg_try_advisory_lock(hashtextextended($1, $2)) as own',
      lock,
    );
    return rows[0]?.['own'] === true;
  };
  try {
    while (!(await isOurs())) await firstValueFrom(timer(migrationPollMs));
    await ensureSystemDatabase(url, new GlobalLogger(undefined, { logger: silent }), pool, schema);
  } finally {
    // Closing it frees the lock, also after an error.
    connection.release(true);
  }
};

const migrationPollMs = 50;

const presence$ = (config: pg.ClientConfig, worker: string): Observable<string> =>
  new Observable((subscriber) => {
    const client = new pg.Client({
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      ...config,
    });
    const fail = (error: unknown): void => subscriber.error(error);
    client.on('error', fail);
    client.on('end', () => fail(new Error('The connection has ended.')));
    client.on('notification', ({ payload = '' }) => {
      const at = payload.lastIndexOf(`::${topic}`);
      if (at > 0) subscriber.next(payload.slice(0, at));
    });
    const begin = async (): Promise<void> => {
      await client.connect();
      await client.query(`select set_config('application_name', $1, false)`, [workerName(worker)]);
      // The server notices within half a minute that the machine of a worker is gone. Embedded ones lack the settings.
      await client
        .query(
          'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3',
        )
        .catch(ignore);
      await client.query('select pg_advisory_lock(hashtextextended($1, $2))', [worker, lockSeed]);
      await client.query(`listen ${channel}`);
      subscriber.next('');
    };
    begin().catch(fail);
    const beat$ = defer(() => from(client.query('select 1'))).pipe(timeout(silentMs));
    const beating$ = interval(silentMs / beats).pipe(exhaustMap(() => beat$));
    subscriber.add(beating$.subscribe({ error: fail }));
    return () => {
      client.removeAllListeners('end');
      client.end().catch(ignore);
    };
  });

const ignore = (): void => undefined;

const silent = { info: ignore, debug: ignore, warn: ignore, error: ignore };
