export { openPostgres, type PostgresOptions } from './open-postgres.js';
export type { Store } from '../store.js';
