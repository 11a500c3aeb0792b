import { growthExponent } from '../growth-exponent.js';
import { callsJob, type Cost } from '../jobs/calls-job.js';
import { median } from '../median.js';
import { doTask } from '../runner/bench.js';
import { measureRounds, medianOf, ratiosOf } from '../runner/outcomes.js';
import { shown, shownRatio } from '../runner/show.js';
import { type Calls, one } from './calls-scenario.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

const calls: Calls = { warmUp: 3, measured: 3 };

/** (d): what the length of the loop does to its cost. */
export const growth: Scenario = {
  letter: 'd',
  about: '50 to 400 turns with one tool each: how the cost grows',
  run: async (bench) => {
    const turns = bench.isSmall ? [5, 10] : [50, 100, 200, 400];
    const options = {
      scripts: turns.map((count) => `${count}x1-20`),
      ...(bench.isSmall ? one : calls),
    };
    const outcomes = await measureRounds(bench, '(d) growth', async (adapter) => {
      const { result } = await doTask(bench, adapter, { job: callsJob, options });
      return result.costs;
    });
    const cpuAt = (place: number) => (costs: readonly Cost[]) => costs[place]?.cpuMs ?? NaN;
    const exponentOf = (costs: readonly Cost[]): number =>
      growthExponent(turns.map((size, place) => ({ size, cost: cpuAt(place)(costs) })));
    return {
      tables: [
        {
          title: `(d) ${turns.join(', ')} turns with one tool each, then an answer of 20 deltas: CPU of a call`,
          about:
            'Each turn sends all that came before, so the bytes grow with the square of the turns. The exponent is that of the CPU over the turns.',
          columns: [
            { name: 'adapter', isWords: true },
            ...turns.flatMap((count) => [{ name: `${count}: ms` }, { name: 'ratio' }]),
            { name: 'exponent' },
          ],
          rows: outcomes.map((outcome) =>
            rowOf(outcome, ({ rounds }) => [
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
      raw: rawOf(outcomes),
    };
  },
};
