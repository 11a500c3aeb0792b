export { startPostgres, type TestServer } from './start-postgres.js';
