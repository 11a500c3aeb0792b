import pg from 'pg';
import { sqlFailure } from '../sql/sql-error.js';

/** The connections to a server. Opens them on first use. */
export interface Connections {
  /** Runs work with a connection. Discards it if the work calls `discard`, and all that its error shows to be useless. */
  use<T>(work: (client: pg.PoolClient, discard: () => void) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

export const createConnections = (config: pg.PoolConfig): Connections => {
  const pool = new pg.Pool({
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000,
    keepAlive: true,
    ...config,
  });
  // The pool replaces a broken idle connection on the next use.
  pool.on('error', ignore);
  // The statement in progress rejects as well. A server may shut down before a caller has the connection.
  pool.on('connect', (client) => client.on('error', ignore));
  /** Grows when the server turns out to be read-only: older connections are to a former primary. */
  let generation = 0;
  const generations = new WeakMap<object, number>();
  const isStale = (client: object): boolean => generations.get(client) !== generation;

  const acquire = async (): Promise<pg.PoolClient> => {
    const client = await pool.connect();
    if (!generations.has(client)) {
      generations.set(client, generation);
      await prepare(client);
    }
    if (!isStale(client)) return client;
    release(client, true);
    return acquire();
  };
  /** For single statements: the server, the database or the user may have another default. */
  const prepare = async (client: pg.PoolClient): Promise<void> => {
    try {
      await client.query(`set session characteristics as transaction ${isolation}`);
    } catch (error) {
      release(client, true);
      throw error;
    }
  };
  const release = (client: pg.PoolClient, isUseless: boolean): void => {
    client.release(isUseless);
  };
  return {
    use: async (work) => {
      const client = await acquire();
      const state = { isUseless: false };
      const discard = (): void => {
        state.isUseless = true;
      };
      try {
        return await work(client, discard);
      } catch (error) {
        const failure = sqlFailure(error);
        if (failure === 'readOnly' && !isStale(client)) generation += 1;
        if (failure === 'connection') discard();
        throw error;
      } finally {
        release(client, state.isUseless || isStale(client));
      }
    },
    end: () => pool.end(),
  };
};

/** The isolation of all transactions: locks and conditions of the statements are made for it. */
export const isolation = 'isolation level read committed';

/** The statement in progress rejects as well; without a listener, the process would end. */
const ignore = (): void => undefined;
