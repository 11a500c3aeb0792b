import { fieldOf } from './field-of.js';
import type { SqliteConnection, SqliteStatement, SqlRow, SqlValue } from './sqlite-driver.js';

/**
 * The database, as an operation in the thread uses it. Statements are prepared once, so their texts are constants: pass
 * lists as JSON to `json_each(?)`. Text is stored as `toSqlText` escapes it.
 */
export interface Database {
  /** Runs a statement and returns its rows. */
  all(sql: string, ...values: readonly SqlValue[]): readonly SqlRow[];
  /** Runs a statement and returns its first row. */
  get(sql: string, ...values: readonly SqlValue[]): SqlRow | undefined;
  /** Runs a statement and returns the number of rows that it inserted, updated or deleted. */
  run(sql: string, ...values: readonly SqlValue[]): number;
}

export interface OpenDatabase extends Database {
  /**
   * Whether commits wait for the disk. Without it, a crash of the machine may lose the last ones, but never one before
   * them.
   */
  waitForDisk(waits: boolean): void;
  close(): void;
  /** Runs work that reads, all of it from one state of the database: what others write meanwhile stays unseen. */
  snapshot<T>(work: () => T): T;
  /** Runs the work in a transaction that other processes see as a whole. Throws what it throws, and then undoes it. */
  transaction<T>(work: () => T): T;
  /** Runs a part of a transaction, and undoes this part if it throws. */
  part<T>(work: () => T): T;
}

export const databaseOn = (connection: SqliteConnection): OpenDatabase => {
  connection.exec('pragma synchronous = normal');
  const statements = new Map<string, SqliteStatement>();
  const prepared = (sql: string): SqliteStatement => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = connection.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  const state = { waits: false };
  return {
    waitForDisk: (waits) => {
      if (waits === state.waits) return;
      // Not prepared: this one runs when it is compiled.
      connection.exec(`pragma synchronous = ${waits ? 'full' : 'normal'}`);
      state.waits = waits;
    },
    close: () => connection.close(),
    all: (sql, ...values) => prepared(sql).all(values),
    get: (sql, ...values) => prepared(sql).all(values)[0],
    run: (sql, ...values) => prepared(sql).run(values),
    ...transactionsBy((sql) => prepared(sql).run([])),
  };
};

const transactionsBy = (
  run: (sql: string) => unknown,
): Pick<OpenDatabase, 'snapshot' | 'transaction' | 'part'> => ({
  snapshot: (work) => {
    run('begin');
    try {
      return work();
    } finally {
      ignoreFailure(() => run('rollback'));
    }
  },
  transaction: (work) => {
    run('begin immediate');
    try {
      const result = work();
      run('commit');
      return result;
    } catch (error) {
      ignoreFailure(() => run('rollback'));
      throw error;
    }
  },
  part: (work) => {
    run('savepoint part');
    try {
      const result = work();
      run('release part');
      return result;
    } catch (error) {
      try {
        run('rollback to part');
        run('release part');
      } catch {
        // SQLite has undone the whole transaction.
        throw new TransactionLost(error);
      }
      throw error;
    }
  },
});

/** A failure, such as a full disk, has undone more than the part of the transaction in which it happened. */
export class TransactionLost extends Error {
  constructor(cause: unknown) {
    super(String(fieldOf(cause, 'message')), { cause });
  }
}

/** After some failures, SQLite has already rolled back. */
const ignoreFailure = (work: () => unknown): void => {
  try {
    work();
  } catch {
    // The failure that led here is reported.
  }
};
