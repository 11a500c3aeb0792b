import type { Observable, SchedulerLike } from 'rxjs';

export type Row = Readonly<Record<string, unknown>>;

/** Runs one statement, with values for `$1`, `$2` and so on. Rejects with a `MillraceError`. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** A database that speaks the SQL of Postgres, with the tables of this package. */
export interface Sql {
  /** The schema of the tables, safe to use in a statement. */
  readonly schema: string;
  /** Whether the pgvector extension is available. */
  readonly hasVectors: boolean;
  readonly query: Query;
  /** Runs the work in a transaction; rolls back if it rejects. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** Notifies all listeners of a change, in other processes too. Delivery is not guaranteed. */
  notify(topic: string): void;
  /** The topics that changed; `''` after connecting, when any may have. Never completes. Listeners must also poll. */
  readonly notices$: Observable<string>;
}

/** A database that opens on first use. */
export interface LazySql {
  open(): Promise<Sql>;
  /** Does nothing if the database was never opened. */
  close(): Promise<void>;
}

/** The databases of stores, for parts that are loaded separately. */
export const databases = new WeakMap<
  object,
  { readonly sql: LazySql; readonly scheduler: SchedulerLike }
>();
