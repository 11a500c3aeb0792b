export { openPostgres, type PostgresOptions } from './open-postgres.js';
export type { DatabaseStore, Store } from '../store.js';
export type { StoredMemoryOptions } from '../sql/memory-options.js';
