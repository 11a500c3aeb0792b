import { isRecord } from 'millrace/values';
import type pg from 'pg';
import { errorCode } from '../files/file-system.js';
import { sqlFailure } from '../sql/sql-error.js';
import type { Query } from '../sql/sql.js';
import { type Connections, isolation } from './connections.js';

export const queryOf =
  (client: pg.ClientBase): Query =>
  async (text, values = []) =>
    (await client.query<Record<string, unknown>>(text, [...values])).rows;

/** An attempt at a transaction, which may be run again if it rejects. */
export interface TransactionAttempt<T> {
  (): Promise<T>;
  /** Whether the last attempt sent a commit whose answer was lost. */
  readonly isInDoubt: () => boolean;
}

/**
 * A transaction that takes effect once, however often it is attempted: if the answer to a commit was lost, the next
 * attempt asks the server what became of it.
 */
export const transactionAttempt = <T>(
  connections: Connections,
  work: (query: Query) => Promise<T>,
): TransactionAttempt<T> => {
  let inDoubt: { readonly id: string; readonly result: T } | undefined;
  const perform = (client: pg.PoolClient, discard: () => void): Promise<T> =>
    rollingBack(client, discard, async () => {
      const id = await begin(client);
      const result = await work(queryOf(client));
      try {
        await client.query('commit');
      } catch (error) {
        if (sqlFailure(error) === 'connection') inDoubt = { id, result };
        throw error;
      }
      return result;
    });
  const attempt = async (): Promise<T> => {
    if (inDoubt === undefined) return connections.use(perform);
    const { id, result } = inDoubt;
    const status = await connections.use((client) => statusOf(client, id));
    if (status === 'in progress') throw new InProgress();
    inDoubt = undefined;
    return status === 'committed' ? result : connections.use(perform);
  };
  return Object.assign(attempt, { isInDoubt: () => inDoubt !== undefined });
};

/** Begins a transaction, and returns its id, which the server remembers after the end of the transaction. */
const begin = async (client: pg.ClientBase): Promise<string> => {
  const results: unknown = await client.query(
    `begin ${isolation}; select pg_current_xact_id()::text as id`,
  );
  const last: unknown = Array.isArray(results) ? results.at(-1) : undefined;
  const rows: unknown = isRecord(last) ? last['rows'] : undefined;
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  return isRecord(row) ? String(row['id']) : '';
};

const statusOf = async (client: pg.ClientBase, id: string): Promise<string> => {
  try {
    const [row] = await queryOf(client)('select pg_xact_status($1::xid8) as status', [id]);
    return String(row?.['status']);
  } catch (error) {
    // The id is in the future of a server that took over without this transaction.
    if (errorCode(error) === '22023') return 'aborted';
    throw error;
  }
};

/** The backend of a lost connection has not noticed yet. Counts as a failure of the connection. */
class InProgress extends Error {
  readonly code = '40003';
  constructor() {
    super('A commit is still in progress');
  }
}

const rollingBack = async <T>(
  client: pg.ClientBase,
  discard: () => void,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    // A connection that cannot even roll back is in an unknown state.
    if (sqlFailure(error) !== 'connection') await client.query('rollback').catch(discard);
    throw error;
  }
};
