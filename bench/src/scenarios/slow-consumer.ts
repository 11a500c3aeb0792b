import { type Slow, slowJob } from '../jobs/slow-job.js';
import { readAhead } from '../read-ahead.js';
import { doTask } from '../runner/bench.js';
import { measureRounds, medianOf } from '../runner/outcomes.js';
import { shown } from '../runner/show.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

/** What is known of one slow consumer. */
interface Taken extends Omit<Slow, 'takenAt'> {
  /** Deltas that the process had read ahead, at most; absent where the system does not tell. */
  readonly readAhead?: number;
  readonly seconds: number;
}

/** (f): a consumer that is slower than the answer comes. */
export const slowConsumer: Scenario = {
  letter: 'f',
  about: 'a consumer that takes 1 ms for each of 5,000 deltas: what waits, and where',
  run: async (bench) => {
    const script = bench.isSmall ? '0x0-500' : '0x0-5000';
    const options = { script, warmUpScript: '0x0-50', waitMs: 1 };
    const outcomes = await measureRounds(
      { ...bench, rounds: 1 },
      `(f) ${script}`,
      async (adapter): Promise<Taken> => {
        const task = { job: slowJob, options, isWatching: true };
        const { result, seen } = await doTask(bench, adapter, task);
        const { takenAt, ...taken } = result;
        const ahead = readAhead(seen.watched.at(-1) ?? [], takenAt);
        const seconds = ((takenAt.at(-1) ?? 0) - (takenAt[0] ?? 0)) / 1_000;
        return { ...taken, seconds, ...(ahead !== undefined && { readAhead: ahead }) };
      },
    );
    return {
      tables: [
        {
          title: `(f) a consumer that takes 1 ms for each delta: ${script}, once`,
          about:
            'read: deltas that the process had read from its socket and the consumer had not begun with, at most. chunks: those of them that had come out of the stream of the model. held and rss: what the process grew by, at most.',
          columns: [
            { name: 'adapter', isWords: true },
            ...['read', 'chunks', 'held MB', 'rss MB', 's'].map((name) => ({ name })),
            { name: '', isWords: true },
          ],
          rows: outcomes.map((outcome) =>
            rowOf(outcome, ({ rounds: [taken] }) =>
              taken?.isPulled === true
                ? [
                    taken.readAhead?.toFixed() ?? 'n/a',
                    taken.chunksAhead > 0 ? taken.chunksAhead.toFixed() : 'n/a',
                    shown(medianOf(outcome, ({ heldBytes }) => heldBytes / 1_000_000)),
                    shown(medianOf(outcome, ({ rssBytes }) => rssBytes / 1_000_000)),
                    shown(taken.seconds),
                  ]
                : ['', '', '', '', '', 'has no form that is pulled'],
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
