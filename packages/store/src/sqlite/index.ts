export { openSqlite, type SqliteMemoryOptions, type SqliteOptions } from './open-sqlite.js';
export { hasSqlite } from './sqlite-driver.js';
export type { FileCallsOptions } from '../files/file-calls.js';
export type { DatabaseStore, Store } from '../store.js';
