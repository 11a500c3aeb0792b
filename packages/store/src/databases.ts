import type { SchedulerLike } from 'rxjs';
import type { LazySql } from './sql/sql.js';
import type { SqliteEngine } from './sqlite/engine.js';

export type DatabaseOfStore = { readonly scheduler: SchedulerLike } & (
  { readonly sql: LazySql } | { readonly sqlite: SqliteEngine }
);

/** The databases of stores, for parts that are loaded separately. */
export const databases = new WeakMap<object, DatabaseOfStore>();
