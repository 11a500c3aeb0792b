import { type AtOnce, atOnceJob } from '../jobs/at-once-job.js';
import { type Bench, doTask } from '../runner/bench.js';
import { measureRounds, medianOf, ratiosOf } from '../runner/outcomes.js';
import { openFilesLimit } from '../runner/open-files-limit.js';
import { shown, shownRatio } from '../runner/show.js';
import { failuresOf, rawOf, type Report, rowOf, type Scenario } from './scenario.js';

/** (e): calls side by side. */
export const atOnce: Scenario = {
  letter: 'e',
  about: '1,000 and 5,000 calls at once, each 50 deltas 20 ms apart',
  run: async (bench) => {
    const reports: Report[] = [];
    for (const calls of bench.isSmall ? [20] : [1_000, 5_000])
      reports.push(await measured(bench, calls));
    return {
      tables: reports.flatMap(({ tables }) => tables),
      failures: reports.flatMap(({ failures }) => failures),
      raw: reports.map(({ raw }) => raw),
    };
  },
};

/** Files that a process has open beside its sockets. */
const otherFiles = 100;

const measured = async (bench: Bench, calls: number): Promise<Report> => {
  const script = bench.isSmall ? '0x0-10-5' : '0x0-50-20';
  const title = `(e) ${calls} calls at once: ${script}`;
  const limit = openFilesLimit();
  if (limit < calls + otherFiles) {
    const about = `Not measured: a process may have ${limit} files open here, and needs ${calls + otherFiles}. \`ulimit -n\` says and sets it.`;
    return {
      tables: [{ title, about, columns: [], rows: [] }],
      failures: [],
      raw: { calls, about },
    };
  }
  const options = { script, calls, warmUp: Math.min(calls, 200) };
  const outcomes = await measureRounds(bench, title, async (adapter) => {
    const { result } = await doTask(bench, adapter, { job: atOnceJob, options });
    return result;
  });
  const cpu = ({ cpuMs }: AtOnce): number => cpuMs / calls;
  const wall = ({ wallMs }: AtOnce): number => wallMs;
  const failures = [
    ...failuresOf(outcomes),
    ...outcomes.flatMap(({ adapter, rounds }) =>
      rounds
        .filter(({ failed }) => failed > 0)
        .map(({ failed, why }) => `${adapter.name}: ${failed} calls failed: ${why}`),
    ),
  ];
  return {
    tables: [
      {
        title,
        about:
          'cpu is of one call, wall of all. held is what all calls hold in the middle of their answers, in a second go; rss is how far the process grew at most in the first. Both are of one call.',
        columns: [
          { name: 'adapter', isWords: true },
          ...['cpu ms', 'ratio', 'wall ms', 'ratio', 'failed', 'held kB', 'rss kB'].map((name) => ({
            name,
          })),
        ],
        rows: outcomes.map((outcome) =>
          rowOf(outcome, () => [
            ...[shown(medianOf(outcome, cpu)), shownRatio(ratiosOf(outcome, outcomes, cpu))],
            ...[shown(medianOf(outcome, wall)), shownRatio(ratiosOf(outcome, outcomes, wall))],
            outcome.rounds.reduce((sum, { failed }) => sum + failed, 0).toFixed(),
            shown(medianOf(outcome, ({ heldBytes }) => heldBytes / calls / 1_000)),
            shown(medianOf(outcome, ({ rssBytes }) => rssBytes / calls / 1_000)),
          ]),
        ),
        notes: failures,
      },
    ],
    failures,
    raw: { calls, outcomes: rawOf(outcomes) },
  };
};
