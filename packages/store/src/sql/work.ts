import type { Query, Row } from './sql.js';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * Work on a database, as the statements that it yields; it receives their rows. So the same work runs over a connection,
 * which awaits each statement, and in the thread of a database, which does not.
 */
export type Work<T> = Generator<Statement, T, readonly Row[]>;

export function* rowsOf(text: string, ...values: readonly unknown[]): Work<readonly Row[]> {
  return yield { text, values };
}

export const runWork = async <T>(query: Query, work: Work<T>): Promise<T> => {
  let step = work.next();
  while (step.done !== true) step = work.next(await query(step.value.text, step.value.values));
  return step.value;
};

/** Runs work if statements return their rows synchronously. */
export const runWorkNow = <T>(
  query: (text: string, values: readonly unknown[]) => readonly Row[],
  work: Work<T>,
): T => {
  let step = work.next();
  while (step.done !== true) step = work.next(query(step.value.text, step.value.values));
  return step.value;
};
