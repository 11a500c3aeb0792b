import { growthExponent } from '../growth-exponent.js';
import { type Calls, callsJob, type Costs } from '../jobs/calls-job.js';
import { median } from '../median.js';
import { doTask } from '../runner/bench.js';
import { measureRounds, medianOf, ratiosOf } from '../runner/outcomes.js';
import { cellsOf, shown, shownRatio } from '../runner/show.js';
import { oldCalls, one, youngCalls } from './calls-scenario.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

const full: Calls = { before: 1, young: 2, between: 0, old: 3 };

/** (d): what the length of the loop does to its cost. */
export const growth: Scenario = {
  letter: 'd',
  about: '50 to 400 turns with one tool each: how the cost grows',
  run: async (bench) => {
    const turns = bench.isSmall ? [5, 10] : [50, 100, 200, 400];
    const calls = bench.isSmall ? one : full;
    const options = { scripts: turns.map((count) => `${count}x1-20`), ...calls };
    const outcomes = await measureRounds(bench, '(d) growth', async (adapter) => {
      const { result } = await doTask(bench, adapter, { job: callsJob, options });
      return result.costs;
    });
    const young = ([first]: readonly Costs[]): number => first?.young.cpuMs ?? NaN;
    const cpuAt = (place: number) => (costs: readonly Costs[]) => costs[place]?.old.cpuMs ?? NaN;
    const exponentOf = (costs: readonly Costs[]): number =>
      growthExponent(turns.map((size, place) => ({ size, cost: cpuAt(place)(costs) })));
    return {
      tables: [
        {
          title: `(d) ${turns.join(', ')} turns with one tool each, then an answer of 20 deltas: CPU of a call`,
          about: `Each turn sends all that came before, so the bytes grow with the square of the turns. The exponent is that of the CPU over the turns. One process runs all lengths: young is ${youngCalls(calls)} of the first; all other columns are ${oldCalls(calls)} of their length.`,
          columns: [
            { name: 'adapter', isWords: true },
            ...[{ name: `${turns[0]} young: ms` }, { name: 'ratio' }, { name: 'range' }],
            ...turns.flatMap((count) => [{ name: `${count}: ms` }, { name: 'ratio' }]),
            { name: 'exponent' },
          ],
          rows: outcomes.map((outcome) =>
            rowOf(outcome, ({ rounds }) => [
              ...cellsOf(outcome, outcomes, young),
              ...turns.flatMap((_, place) => [
                shown(medianOf(outcome, cpuAt(place))),
                shownRatio(ratiosOf(outcome, outcomes, cpuAt(place))),
              ]),
              median(rounds.map(exponentOf)).toFixed(2),
            ]),
          ),
          notes: failuresOf(outcomes),
        },
      ],
      failures: failuresOf(outcomes),
      raw: { calls, outcomes: rawOf(outcomes) },
    };
  },
};
