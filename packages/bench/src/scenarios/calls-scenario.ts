import { callsJob, type Cost, type Enough } from '../jobs/calls-job.js';
import { type Bench, doTask } from '../runner/bench.js';
import { measureRounds, medianOf, type Outcome, ratiosOf } from '../runner/outcomes.js';
import { shown, shownRange, shownRatio } from '../runner/show.js';
import { failuresOf, rawOf, type Report, rowOf, type Scenario } from './scenario.js';

/** Calls of one script, one after the other. */
export interface CallsScenario extends Pick<Scenario, 'letter' | 'about'> {
  readonly script: string;
  /** In a quick look. */
  readonly smallScript: string;
  /** Default: many calls, because the compiler counts calls. */
  readonly enough?: Readonly<Record<'warmUp' | 'measured', Enough>>;
  /** What the costs are told for, and how many of them a call has. Default: the call itself, in milliseconds. */
  readonly per?: { readonly name: string; readonly inCall: (script: string) => number };
}

const many: Readonly<Record<'warmUp' | 'measured', Enough>> = {
  warmUp: { calls: 30, cpuMs: 1_500 },
  measured: { calls: 10, cpuMs: 1_000 },
};

/** Of calls that do the same thousands of times each. */
export const few: Readonly<Record<'warmUp' | 'measured', Enough>> = {
  warmUp: { calls: 2, cpuMs: 1_500 },
  measured: { calls: 2, cpuMs: 1_000 },
};

/** Of a quick look. */
export const one: Readonly<Record<'warmUp' | 'measured', Enough>> = {
  warmUp: { calls: 1, cpuMs: 0 },
  measured: { calls: 1, cpuMs: 0 },
};

/** Makes a scenario that measures what a call costs. */
export const callsScenario = ({
  letter,
  about,
  script: fullScript,
  smallScript,
  enough = many,
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
      bench.isSmall ? one : enough,
    );
    const scale = per === undefined ? 1 : 1_000 / per.inCall(script);
    return reportOf(outcomes, `(${letter}) ${about}: ${script}`, per?.name ?? 'ms', scale);
  },
});

const measureCalls = (
  bench: Bench,
  what: string,
  script: string,
  enough: Readonly<Record<'warmUp' | 'measured', Enough>>,
): Promise<readonly Outcome<Cost>[]> =>
  measureRounds(bench, what, async (adapter) => {
    const options = { scripts: [script], ...enough };
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
  return {
    tables: [
      {
        title,
        about: 'Medians of all rounds; ratios to the floor of the same round, and their range.',
        columns: [
          { name: 'adapter', isWords: true },
          ...[`cpu ${unit}`, 'ratio', 'range', `wall ${unit}`, 'ratio', 'calls'].map((name) => ({
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
              shown(medianOf(outcome, ({ calls }) => calls)),
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
