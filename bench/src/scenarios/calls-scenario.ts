import { callsJob, type CallsOptions, type Cost } from '../jobs/calls-job.js';
import { type Bench, doTask } from '../runner/bench.js';
import { measureRounds, medianOf, type Outcome, ratiosOf } from '../runner/outcomes.js';
import { shown, shownRange, shownRatio } from '../runner/show.js';
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
}

/** How many calls are made. */
export type Calls = Pick<CallsOptions, 'warmUp' | 'measured'>;

const many: Calls = { warmUp: 200, measured: 50 };

/** Of calls that do the same thousands of times each. */
export const few: Calls = { warmUp: 3, measured: 5 };

/** Of a quick look. */
export const one: Calls = { warmUp: 1, measured: 1 };

/** Makes a scenario that measures what a call costs. */
export const callsScenario = ({
  letter,
  about,
  script: fullScript,
  smallScript,
  calls = many,
  per,
}: CallsScenario): Scenario => ({
  letter,
  about,
  run: async (bench) => {
    const script = bench.isSmall ? smallScript : fullScript;
    const outcomes = await measureCalls(
      bench,
      `(${letter}) ${script}`,
      script,
      bench.isSmall ? one : calls,
    );
    const scale = per === undefined ? 1 : 1_000 / per.inCall(script);
    return reportOf(outcomes, `(${letter}) ${about}: ${script}`, per?.name ?? 'ms', scale);
  },
});

const measureCalls = (
  bench: Bench,
  what: string,
  script: string,
  calls: Calls,
): Promise<readonly Outcome<Cost>[]> =>
  measureRounds(bench, what, async (adapter) => {
    const options = { scripts: [script], ...calls };
    const { result } = await doTask(bench, adapter, { job: callsJob, options });
    const [cost] = result.costs;
    if (cost === undefined) throw new Error('Nothing has been measured.');
    return cost;
  });

const reportOf = (
  outcomes: readonly Outcome<Cost>[],
  title: string,
  unit: string,
  scale: number,
): Report => {
  const cpu = ({ cpuMs }: Cost): number => cpuMs;
  const wall = ({ wallMs }: Cost): number => wallMs;
  const young = ({ youngMs }: Cost): number => youngMs;
  return {
    tables: [
      {
        title,
        about: 'Medians of all rounds; ratios to the floor of the same round, and their range.',
        columns: [
          { name: 'adapter', isWords: true },
          ...[
            `cpu ${unit}`,
            'ratio',
            'range',
            `wall ${unit}`,
            'ratio',
            `young ${unit}`,
            'ratio',
          ].map((name) => ({
            name,
          })),
        ],
        rows: outcomes.map((outcome) =>
          rowOf(outcome, () => {
            const ratios = ratiosOf(outcome, outcomes, cpu);
            return [
              ...[shown(medianOf(outcome, cpu) * scale), shownRatio(ratios), shownRange(ratios)],
              shown(medianOf(outcome, wall) * scale),
              shownRatio(ratiosOf(outcome, outcomes, wall)),
              shown(medianOf(outcome, young) * scale),
              shownRatio(ratiosOf(outcome, outcomes, young)),
            ];
          }),
        ),
        notes: failuresOf(outcomes),
      },
    ],
    failures: failuresOf(outcomes),
    raw: rawOf(outcomes),
  };
};
