import { isRecord } from '@millrace/core/adapter';

/** A database server that was started for us. */
export interface DatabaseServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the server that the tests of the stores start, or takes the one that `MILLRACE_TEST_POSTGRES` names. It needs the package of the stores to be built. */
export const startDatabaseServer = async (): Promise<DatabaseServer> => {
  // It is not for users of that package, and so no entry of it.
  const support: unknown = await import(
    new URL('../../../store/dist/postgres/start-postgres.test-support.js', import.meta.url).href
  );
  if (!isRecord(support) || !isStart(support['startPostgres'])) {
    throw new Error('The tests of the stores start no server any more.');
  }
  return support['startPostgres']();
};

const isStart = (value: unknown): value is () => Promise<DatabaseServer> =>
  typeof value === 'function';
