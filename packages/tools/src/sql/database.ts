import { MillraceError } from 'millrace';
import { defer, finalize, from, type Observable } from 'rxjs';

export type Row = Readonly<Record<string, unknown>>;

interface Result {
  readonly rows: readonly Row[];
  /** The number of rows that were written, or `undefined`. */
  readonly affected: number | undefined;
}

/** Runs one statement; several are an error of the server. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<Result>;

export interface Limits {
  /** Of each statement, by the clock of the server. */
  readonly timeoutMs: number;
  /** Whether the transaction is read-only and never committed. */
  readonly isReadOnly: boolean;
}

export interface Database {
  /** Runs the work in a transaction and emits its result. Unsubscribing closes the connection, which ends the work. */
  transaction$<T>(limits: Limits, work: (query: Query) => Promise<T>): Observable<T>;
}

/** A pool of `pg`, or an object that works like one. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

interface PostgresClient {
  query(statement: Statement): Promise<{
    readonly rows: readonly Row[];
    readonly rowCount: number | null;
  }>;
  release(isBroken?: boolean): void;
  on?(event: 'error', listener: () => void): unknown;
  off?(event: 'error', listener: () => void): unknown;
}

interface Statement {
  readonly text: string;
  readonly values: unknown[];
  /** The extended protocol accepts a single statement only. */
  readonly queryMode: 'extended';
}

/** A database of PGlite, or an object that works like one. */
export interface PGliteLike {
  transaction<T>(work: (transaction: PGliteTransaction) => Promise<T>): Promise<T>;
}

interface PGliteTransaction {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly unknown[]; readonly affectedRows?: number }>;
  rollback(): Promise<void>;
}

/** Connects on first use. */
export const openDatabase = (postgres: string | PostgresPool | PGliteLike): Database => {
  if (typeof postgres !== 'string') {
    return 'connect' in postgres ? onServer(() => Promise.resolve(postgres)) : embedded(postgres);
  }
  const state: { pool?: Promise<PostgresPool> } = {};
  return onServer(() => {
    state.pool ??= poolOf(postgres).catch((error: unknown) => {
      delete state.pool;
      throw error;
    });
    return state.pool;
  });
};

const poolOf = async (connectionString: string): Promise<PostgresPool> => {
  const { default: pg } = await import('pg').catch((cause: unknown) => {
    throw new MillraceError('config', 'sqlTools() with a URL needs a driver: npm install pg', {
      cause,
    });
  });
  const pool = new pg.Pool({
    connectionString,
    max: 5,
    connectionTimeoutMillis: 10_000,
    allowExitOnIdle: true,
  });
  // The pool replaces a broken idle connection on the next use.
  pool.on('error', () => undefined);
  return pool;
};

// ---------------------------------------------------------------- a server

/**
 * For this transaction. The last setting lets the server notice a closed connection: it exists since Postgres 14, and
 * other systems than Linux may refuse it.
 */
const setLimits = `select set_config(name, case name when 'client_connection_check_interval' then '1000' else $1 end, true)
  from pg_settings where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')
    or (name = 'client_connection_check_interval' and version() like '%linux%')`;

const onServer = (pool: () => Promise<PostgresPool>): Database => ({
  transaction$: (limits, work) =>
    defer(() => {
      const abort = new AbortController();
      return from(runOnServer(pool, limits, work, abort.signal)).pipe(
        finalize(() => abort.abort()),
      );
    }),
});

const runOnServer = async <T>(
  pool: () => Promise<PostgresPool>,
  { timeoutMs, isReadOnly }: Limits,
  work: (query: Query) => Promise<T>,
  signal: AbortSignal,
): Promise<T> => {
  const client = await (await pool()).connect();
  // A pool listens to idle connections only: without a listener, one that is lost now would end the process.
  client.on?.('error', ignore);
  const release = once((isBroken: boolean) => {
    client.release(isBroken);
    // One that is closed may still report it.
    if (!isBroken) client.off?.('error', ignore);
  });
  const query: Query = async (text, values = []) => {
    const statement: Statement = { text, values: [...values], queryMode: 'extended' };
    const { rows, rowCount } = await client.query(statement);
    return { rows, affected: rowCount ?? undefined };
  };
  signal.addEventListener('abort', () => release(true), { once: true });
  try {
    signal.throwIfAborted();
    await query(isReadOnly ? 'begin transaction read only' : 'begin');
    await query(setLimits, [String(timeoutMs)]);
    const result = await work(query);
    await query(isReadOnly ? 'rollback' : 'commit');
    await unlocked(query);
    // A statement such as SET may have changed the connection for its next user.
    release(!isReadOnly);
    return result;
  } catch (error) {
    await query('rollback')
      .then(() => unlocked(query))
      .then(
        () => release(!isReadOnly),
        () => release(true),
      );
    throw error;
  }
};

/** The end of a transaction does not release these. */
const unlocked = (query: Query): Promise<unknown> => query('select pg_advisory_unlock_all()');

const ignore = (): void => undefined;

const once = <T>(action: (given: T) => void): ((given: T) => void) => {
  const state = { isDone: false };
  return (given) => {
    if (state.isDone) return;
    state.isDone = true;
    action(given);
  };
};

// ---------------------------------------------------------------- PGlite

const embedded = (database: PGliteLike): Database => ({
  transaction$: ({ isReadOnly }, work) =>
    defer(() =>
      database.transaction(async (transaction) => {
        const query: Query = async (text, values = []) => {
          const { rows, affectedRows } = await transaction.query(text, [...values]);
          return { rows: rows.filter(isRow), affected: affectedRows };
        };
        if (!isReadOnly) return work(query);
        await query('set transaction read only');
        // Only before the first query, the code could make the transaction writable again.
        await query('select 1');
        const result = await work(query);
        await transaction.rollback();
        return result;
      }),
    ),
});

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null;
