import type { Outcome } from '../runner/outcomes.js';
import type { Bench } from '../runner/bench.js';
import type { Table } from '../table.js';

/** One thing that is measured of all adapters. */
export interface Scenario {
  /** What it is asked for by. */
  readonly letter: string;
  /** What is done, in some words. */
  readonly about: string;
  readonly run: (bench: Bench) => Promise<Report>;
}

/** What came of a scenario. */
export interface Report {
  readonly tables: readonly Table[];
  /** What failed, and why. */
  readonly failures: readonly string[];
  /** Everything that was measured, as plain JSON. */
  readonly raw: unknown;
}

/** The failures of adapters. */
export const failuresOf = (outcomes: readonly Outcome<unknown>[]): readonly string[] =>
  outcomes.flatMap(({ adapter, failure }) =>
    failure === undefined ? [] : [`${adapter.name} failed: ${failure}`],
  );

/** What is kept of outcomes. */
export const rawOf = (outcomes: readonly Outcome<unknown>[]): unknown =>
  outcomes.map(({ adapter: { name, floor }, ...rest }) => ({ adapter: name, floor, ...rest }));

/** The row of an adapter; of one that has failed, only that. */
export const rowOf = <T>(
  outcome: Outcome<T>,
  cells: (outcome: Outcome<T>) => readonly string[],
): readonly string[] => [
  outcome.adapter.name,
  ...(outcome.failure === undefined ? cells(outcome) : ['failed']),
];
