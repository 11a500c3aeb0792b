export { openSqlite, type SqliteOptions } from './open-sqlite.js';
export type { FileCallsOptions } from '../files/file-calls.js';
export type { DatabaseStore, Store } from '../store.js';
