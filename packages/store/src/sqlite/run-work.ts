import { runWorkNow, type Work } from '../sql/work.js';
import type { Database } from './database.js';
import type { SqlValue } from './sqlite-driver.js';

/** Runs work that is shared with other databases. Lists in its statements become JSON. */
export const runWorkIn = <T>(database: Database, work: Work<T>): T =>
  runWorkNow((sql, values) => database.all(sql, ...values.map(sqlValue)), work);

const sqlValue = (value: unknown): SqlValue => {
  if (typeof value === 'string' || typeof value === 'number') return value;
  return value === null || value === undefined ? null : JSON.stringify(value);
};
