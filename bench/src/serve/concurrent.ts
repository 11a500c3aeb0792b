import { measureRounds, medianOf, type Outcome, ratiosOf } from '../runner/outcomes.js';
import { shown, shownRatio } from '../runner/show.js';
import { ask } from './client.js';
import { fastPlan, type Plan } from './plan.js';
import type { ServeBench, ServeReport } from './row.js';
import { type ServerName, serverNames } from './server.js';
import { withServer } from './server-process.js';

/** The result for a number of conversations at once. */
interface Crowd {
  readonly conversations: number;
  /** CPU of an event, in microseconds. */
  readonly eventUs: number;
  readonly wallMs: number;
}

/** What it costs to answer many clients at once, at the speed of a model. */
export const concurrent = async (bench: ServeBench): Promise<ServeReport> => {
  const counts = bench.isSmall ? [2, 5] : [10, 50, 200];
  const plan: Plan = { ...fastPlan, deltas: bench.isSmall ? 5 : 100, burst: 1, everyMs: 20 };
  const subjects = serverNames.map((name) => ({ name, floor: 'hono' }));
  const outcomes = await measureRounds(
    { ...bench, adapters: subjects },
    'concurrent',
    ({ name }: { readonly name: ServerName }) => measure(name, counts, plan),
  );
  return {
    tables: [
      {
        title: `concurrent: ${counts.join(', ')} conversations at once, each with an answer of ${plan.deltas} deltas, ${plan.everyMs} ms apart`,
        about: `CPU of an event in the server process, its ratio to the floor of the same round, and the time until all have ended; the model takes ${plan.deltas * plan.everyMs} ms.`,
        columns: [
          { name: 'server', isWords: true },
          ...counts.flatMap((count) => [
            { name: `${count}: µs` },
            { name: 'ratio' },
            { name: 'wall ms' },
          ]),
        ],
        rows: outcomes.map((outcome) => rowOf(outcome, outcomes, counts)),
      },
    ],
    raw: outcomes,
  };
};

const measure = (
  name: ServerName,
  counts: readonly number[],
  plan: Plan,
): Promise<readonly Crowd[]> =>
  withServer(name, async ({ port, used }) => {
    for (let time = 0; time < 30; time += 1) await ask(port, { ...plan, everyMs: 0 });
    const crowds: Crowd[] = [];
    for (const conversations of counts) {
      const startedAt = performance.now();
      const before = await used();
      const answers = await Promise.all(
        Array.from({ length: conversations }, () => ask(port, plan)),
      );
      const wallMs = performance.now() - startedAt;
      const after = await used();
      if (answers.some(({ isDone }) => !isDone)) throw new Error('An answer is not whole.');
      const events = answers.reduce((sum, answer) => sum + answer.events, 0);
      crowds.push({
        conversations,
        wallMs,
        eventUs: ((after.cpuMs - before.cpuMs) * 1_000) / events,
      });
    }
    return crowds;
  });

type Crowds = Outcome<readonly Crowd[]>;

const rowOf = (
  outcome: Crowds,
  all: readonly Crowds[],
  counts: readonly number[],
): readonly string[] => {
  const { name } = outcome.adapter;
  if (outcome.failure !== undefined) return [name, `failed: ${outcome.failure}`];
  const cells = counts.flatMap((_, index) => {
    const us = (crowds: readonly Crowd[]): number => crowds[index]?.eventUs ?? NaN;
    return [
      shown(medianOf(outcome, us)),
      shownRatio(ratiosOf(outcome, all, us)),
      shown(medianOf(outcome, (crowds) => crowds[index]?.wallMs ?? NaN)),
    ];
  });
  return [name, ...cells];
};
