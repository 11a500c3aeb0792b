import { defer, finalize, from, type Observable } from 'rxjs';

export type Row = Readonly<Record<string, unknown>>;

/**
 * Runs one statement, with values for `$1`, `$2` and so on. Rejects with a `MillraceError`. A statement outside a
 * transaction may run twice, if the first answer was lost: it must change nothing the second time, and answer the same.
 * Aborting ends the wait for an unavailable server.
 */
export type Query = (
  text: string,
  values?: readonly unknown[],
  signal?: AbortSignal,
) => Promise<readonly Row[]>;

/** A database that speaks the SQL of Postgres, with the tables of this package. */
export interface Sql {
  /** The schema of the tables, safe to use in a statement. */
  readonly schema: string;
  /** Whether the pgvector extension is available. */
  readonly hasVectors: boolean;
  readonly query: Query;
  /** Runs the work in a transaction; rolls back if it rejects. Takes effect once, but the work may run several times. */
  transaction<T>(work: (query: Query) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Notifies all listeners of a change, in other processes too. Delivery is not guaranteed. */
  notify(topic: string): void;
  /** The topics that changed; `''` after connecting, when any may have. Never completes. Listeners must also poll. */
  readonly notices$: Observable<string>;
}

/** A database that opens on first use. */
export interface LazySql {
  /** Aborting ends the wait for an unavailable server. */
  open(signal?: AbortSignal): Promise<Sql>;
  /** Ends all waits for an unavailable server: the store is about to close. */
  stop?(): void;
  /** Does nothing if the database was never opened. */
  close(): Promise<void>;
}

/** Runs work on each subscription; unsubscribing aborts its signal. */
export const abortable$ = <T>(work: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  defer(() => {
    const left = new AbortController();
    return from(work(left.signal)).pipe(finalize(() => left.abort()));
  });

/** The database for work that may be aborted. */
export const abortedBy = (sql: Sql, signal: AbortSignal | undefined): Sql => ({
  ...sql,
  query: (text, values) => sql.query(text, values, signal),
  transaction: (work) => sql.transaction(work, signal),
});
