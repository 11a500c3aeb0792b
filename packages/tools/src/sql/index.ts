// Tools for a Postgres database.
export {
  type PGliteLike,
  type PostgresPool,
  sqlTools,
  type SqlApprover,
  type SqlToolsOptions,
} from './sql-tools.js';
