import { closings } from '../closings.js';
import { abortJob } from '../jobs/abort-job.js';
import { median } from '../median.js';
import { doTask } from '../runner/bench.js';
import { measureRounds } from '../runner/outcomes.js';
import { shown } from '../runner/show.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

/** Milliseconds of all aborts of an adapter. */
interface Stopped {
  readonly closedMs: readonly number[];
  readonly settledMs: readonly number[];
  /** Aborts after which the socket stayed open. */
  readonly open: number;
}

/** (h): how fast a call lets go. */
export const abort: Scenario = {
  letter: 'h',
  about:
    'an abort in the middle of a stream: until the socket is closed, and until the call has settled',
  run: async (bench) => {
    const times = bench.isSmall ? 3 : 20;
    const options = { script: '0x0-2000-1', times, afterDeltas: 20 };
    const outcomes = await measureRounds(
      { ...bench, rounds: 1 },
      '(h) abort',
      async (adapter): Promise<Stopped> => {
        const { result, seen } = await doTask(bench, adapter, { job: abortJob, options });
        const closed = closings(result.aborts, seen.cutAt, result.endedAt);
        return {
          closedMs: closed.filter((ms) => ms !== undefined),
          settledMs: result.aborts.map(({ abortedAt, settledAt }) => settledAt - abortedAt),
          open: closed.filter((ms) => ms === undefined).length,
        };
      },
    );
    return {
      tables: [
        {
          title: `(h) ${times} calls whose signal aborts them after 20 deltas, 1 ms apart: milliseconds`,
          about:
            'closed: until the server saw the socket close. settled: until whoever called heard of the end. open: sockets that stayed open until the next abort.',
          columns: [
            { name: 'adapter', isWords: true },
            ...['closed', 'worst', 'settled', 'worst', 'open'].map((name) => ({ name })),
          ],
          rows: outcomes.map((outcome) =>
            rowOf(outcome, ({ rounds }) =>
              rounds.flatMap(({ closedMs, settledMs, open }) => [
                ...spread(closedMs),
                ...spread(settledMs),
                open.toFixed(),
              ]),
            ),
          ),
          notes: failuresOf(outcomes),
        },
      ],
      failures: failuresOf(outcomes),
      raw: rawOf(outcomes),
    };
  },
};

const spread = (values: readonly number[]): readonly string[] => [
  shown(median(values)),
  shown(Math.max(...values)),
];
