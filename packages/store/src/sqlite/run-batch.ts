import { type OpenDatabase, TransactionLost } from './database.js';
import { failureOf, isBusy } from './failure.js';
import type { Answer, Request } from './messages.js';
import type { Operation } from './operation.js';

export type AnyOperation = Operation<readonly unknown[], unknown>;

/** A request and what it asks for. */
interface Job {
  readonly id: number;
  readonly operation: AnyOperation;
  readonly given: readonly unknown[];
}

/**
 * Runs what has queued up: the reads before the first write, then all writes in one transaction, which costs one sync of
 * the disk, then the other reads, which see what was written before them. Each write is a part of the transaction of its
 * own: one that fails changes nothing for the others.
 */
export const runBatch = (
  database: OpenDatabase,
  requests: readonly Request[],
  operations: Readonly<Record<string, AnyOperation>>,
  answer: (answers: readonly Answer[]) => void,
): void => {
  const jobs = requests.map(({ id, name, given }): Job => {
    const operation = operations[name];
    if (operation === undefined) throw new Error(`There is no operation '${name}'.`);
    return { id, operation, given };
  });
  const isRead = ({ operation }: Job): boolean => operation.kind === 'read';
  const firstWrite = jobs.findIndex((job) => !isRead(job));
  const read = (some: readonly Job[]): void => {
    if (some.length === 0) return;
    // An operation may need several statements, and others write in between.
    answer(database.snapshot(() => some.map((job) => attempt(job, () => runJob(database, job)))));
  };
  if (firstWrite === -1) {
    read(jobs);
    return;
  }
  read(jobs.slice(0, firstWrite));
  const rest = jobs.slice(firstWrite);
  answer(
    writeAll(
      database,
      rest.filter((job) => !isRead(job)),
    ),
  );
  read(rest.filter(isRead));
};

const runJob = (database: OpenDatabase, { operation, given }: Job): unknown =>
  operation.run(database, ...given);

const attempt = ({ id }: Job, work: () => unknown): Answer => {
  try {
    return { id, result: work() };
  } catch (error) {
    if (error instanceof TransactionLost) throw error;
    return { id, failure: failureOf(error) };
  }
};

const writeAll = (database: OpenDatabase, jobs: readonly Job[]): readonly Answer[] => {
  try {
    database.waitForDisk(jobs.some(({ operation }) => operation.kind === 'write'));
    return database.transaction(() =>
      jobs.map((job) => attempt(job, () => database.part(() => runJob(database, job)))),
    );
  } catch (error) {
    // One that needs more room than there is must not fail the others.
    if (jobs.length > 1 && !isBusy(error)) return jobs.flatMap((job) => writeAll(database, [job]));
    const failure = failureOf(error instanceof TransactionLost ? error.cause : error);
    return jobs.map(({ id }) => ({ id, failure }));
  }
};
