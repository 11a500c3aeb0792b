import type { Database } from './database.js';

/**
 * Work in the thread that holds the connection. Arguments and results are copied between threads. It returns every
 * expected outcome, also a refusal: an error is a failure of the database, and undoes the operation.
 *
 * - `read`: sees what is committed; waits for nothing.
 * - `write`: is on disk when it is answered, in one transaction with what other calls write at the same moment.
 * - `brief`: a write that need not outlast a crash of the machine, such as the renewal of a lease.
 */
export interface Operation<Given extends readonly unknown[], Result> {
  readonly kind: 'read' | 'write' | 'brief';
  run(database: Database, ...given: Given): Result;
}

const operation =
  (kind: 'read' | 'write' | 'brief') =>
  <Given extends readonly unknown[], Result>(
    run: (database: Database, ...given: Given) => Result,
  ): Operation<Given, Result> => ({ kind, run });

export const read = operation('read');
export const write = operation('write');
export const brief = operation('brief');
