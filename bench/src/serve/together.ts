import { measureRounds, medianOf, type Outcome, ratiosOf } from '../runner/outcomes.js';
import { quantile } from '../quantile.js';
import { shown, shownRatio } from '../runner/show.js';
import { ask } from './client.js';
import { fastPlan } from './plan.js';
import type { ServeBench, ServeReport } from './row.js';
import { type ServerName, serverNames } from './server.js';
import { withServer } from './server-process.js';

/** The result for calls that begin at the same moment. */
interface Together {
  readonly firstMs: readonly number[];
  /** CPU of a call, in milliseconds. */
  readonly cpuMs: number;
}

/** How long clients wait for the first byte if all ask at the same moment. */
export const together = async (bench: ServeBench): Promise<ServeReport> => {
  const calls = bench.isSmall ? 5 : 100;
  const subjects = serverNames.map((name) => ({ name, floor: 'hono' }));
  const outcomes = await measureRounds(
    { ...bench, adapters: subjects },
    'together',
    ({ name }: { readonly name: ServerName }) => measure(name, calls),
  );
  const first = (part: number) => (it: Together) => quantile(it.firstMs, part);
  return {
    tables: [
      {
        title: `together: ${calls} calls that begin at the same moment, each with an answer of ${fastPlan.deltas} deltas`,
        about:
          'first: from the request to the first byte of the body. cpu: of a call, in the server process.',
        columns: [
          { name: 'server', isWords: true },
          ...['first p50 ms', 'max', 'cpu ms', 'ratio'].map((name) => ({ name })),
        ],
        rows: outcomes.map((outcome) => rowOf(outcome, outcomes, first)),
      },
    ],
    raw: outcomes,
  };
};

const measure = (name: ServerName, calls: number): Promise<Together> =>
  withServer(name, async ({ port, used }) => {
    const all = () => Promise.all(Array.from({ length: calls }, () => ask(port, fastPlan)));
    await all();
    const before = await used();
    const answers = await all();
    const after = await used();
    if (answers.some(({ isDone }) => !isDone)) throw new Error('An answer is not whole.');
    return {
      firstMs: answers.map(({ firstMs }) => firstMs),
      cpuMs: (after.cpuMs - before.cpuMs) / calls,
    };
  });

const rowOf = (
  outcome: Outcome<Together>,
  all: readonly Outcome<Together>[],
  first: (part: number) => (it: Together) => number,
): readonly string[] => {
  const { name } = outcome.adapter;
  if (outcome.failure !== undefined) return [name, `failed: ${outcome.failure}`];
  const cpu = ({ cpuMs }: Together): number => cpuMs;
  return [
    name,
    shown(medianOf(outcome, first(0.5))),
    shown(medianOf(outcome, first(1))),
    shown(medianOf(outcome, cpu)),
    shownRatio(ratiosOf(outcome, all, cpu)),
  ];
};
