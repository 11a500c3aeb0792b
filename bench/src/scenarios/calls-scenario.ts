import { type Calls, callsJob, type Costs } from '../jobs/calls-job.js';
import { doTask } from '../runner/bench.js';
import { measureRounds, medianOf, type Outcome, ratiosOf } from '../runner/outcomes.js';
import { cellsOf, shown, shownRatio } from '../runner/show.js';
import { failuresOf, rawOf, type Report, rowOf, type Scenario } from './scenario.js';

/** Calls of one script, one after the other. */
export interface CallsScenario extends Pick<Scenario, 'letter' | 'about'> {
  readonly script: string;
  /** In a quick look. */
  readonly smallScript: string;
  /** Default: many, because the compiler counts calls. */
  readonly calls?: Calls;
  /** What the costs are told for, and how many of them a call has. Default: the call itself, in milliseconds. */
  readonly per?: { readonly name: string; readonly inCall: (script: string) => number };
  /** Whether the calls go over TLS. Default: false. */
  readonly isTls?: boolean;
}

const many: Calls = { before: 10, young: 50, between: 140, old: 50 };

/** For calls that do the same thousands of times each. */
export const few: Calls = { before: 1, young: 2, between: 0, old: 5 };

/** For a quick look. */
export const one: Calls = { before: 0, young: 1, between: 0, old: 1 };

/** The young calls by their numbers in the process: `calls 11 to 60`. */
export const youngCalls = ({ before, young }: Calls): string => numbered(before, young);

/** The old calls by their numbers in the process: `calls 201 to 250`. */
export const oldCalls = ({ before, young, between, old }: Calls): string =>
  numbered(before + young + between, old);

const numbered = (after: number, count: number): string =>
  count === 1 ? `call ${after + 1}` : `calls ${after + 1} to ${after + count}`;

/** Makes a scenario that measures the cost of a call. */
export const callsScenario = ({
  letter,
  about,
  script: fullScript,
  smallScript,
  calls: fullCalls = many,
  per,
  isTls = false,
}: CallsScenario): Scenario => ({
  letter,
  about,
  run: async (bench) => {
    const script = bench.isSmall ? smallScript : fullScript;
    const calls = bench.isSmall ? one : fullCalls;
    const options = { scripts: [script], ...calls };
    const outcomes = await measureRounds(bench, `(${letter}) ${script}`, async (adapter) => {
      const { result } = await doTask(bench, adapter, { job: callsJob, options, isTls });
      const [costs] = result.costs;
      if (costs === undefined) throw new Error('Nothing has been measured.');
      return costs;
    });
    return reportOf(outcomes, {
      title: `(${letter}) ${about}: ${script}`,
      unit: per?.name ?? 'ms',
      scale: per === undefined ? 1 : 1_000 / per.inCall(script),
      calls,
    });
  },
});

/** What a table says beside the numbers. */
interface Shown {
  readonly title: string;
  readonly unit: string;
  /** A cost in milliseconds, times this, is in the unit. */
  readonly scale: number;
  readonly calls: Calls;
}

const reportOf = (
  outcomes: readonly Outcome<Costs>[],
  { title, unit, scale, calls }: Shown,
): Report => {
  const young = (costs: Costs): number => costs.young.cpuMs * scale;
  const old = (costs: Costs): number => costs.old.cpuMs * scale;
  const wall = (costs: Costs): number => costs.old.wallMs * scale;
  return {
    tables: [
      {
        title,
        about: `CPU time in a young process (${youngCalls(calls)}) and in an old one (${oldCalls(calls)}), and the elapsed time of the latter. Medians of all rounds; ratios to the floor of the same round, and their range.`,
        columns: [
          { name: 'adapter', isWords: true },
          ...[
            ...[`young ${unit}`, 'ratio', 'range'],
            ...[`old ${unit}`, 'ratio', 'range'],
            ...[`wall ${unit}`, 'ratio'],
          ].map((name) => ({ name })),
        ],
        rows: outcomes.map((outcome) =>
          rowOf(outcome, () => [
            ...cellsOf(outcome, outcomes, young),
            ...cellsOf(outcome, outcomes, old),
            shown(medianOf(outcome, wall)),
            shownRatio(ratiosOf(outcome, outcomes, wall)),
          ]),
        ),
        notes: failuresOf(outcomes),
      },
    ],
    failures: failuresOf(outcomes),
    raw: { calls, outcomes: rawOf(outcomes) },
  };
};
