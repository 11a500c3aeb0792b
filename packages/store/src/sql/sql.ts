import type { Observable } from 'rxjs';

/** What a query gives. */
export type Row = Readonly<Record<string, unknown>>;

/** Runs one statement, with values for `$1`, `$2` and so on. Rejects with a `MillraceError`. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** A database that speaks the SQL of Postgres, with the tables of this package. */
export interface Sql {
  /** The schema that the tables are in, safe to be written in a statement. */
  readonly schema: string;
  /** Whether it has vectors. */
  readonly hasVectors: boolean;
  readonly query: Query;
  /** Does work in one transaction: all of it, or, where it rejects, nothing. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** Tells all who listen, also in other processes, that something has changed; without a promise. */
  notify(topic: string): void;
  /** What has changed; also `''` when anything may have, as it has just begun to listen. Never completes; who listens must look now and then itself. */
  readonly notices$: Observable<string>;
}

/** A database that is opened when it is first used. */
export interface LazySql {
  open(): Promise<Sql>;
  /** Ends all; nothing, where it was never used. */
  close(): Promise<void>;
}
