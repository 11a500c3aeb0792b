import { idleJob } from '../jobs/idle-job.js';
import { doTask } from '../runner/bench.js';
import { measureRounds } from '../runner/outcomes.js';
import { shown } from '../runner/show.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

/** (i): what conversations cost that nobody speaks in. */
export const idleSessions: Scenario = {
  letter: 'i',
  about: '10,000 sessions in memory, idle after one call each',
  run: async (bench) => {
    const sessions = bench.isSmall ? 100 : 10_000;
    const options = { script: '0x0-5', sessions, warmUp: bench.isSmall ? 50 : 500 };
    const outcomes = await measureRounds(
      { ...bench, rounds: 1 },
      '(i) sessions',
      async (adapter) => {
        const task = { job: idleJob, options, limitMs: 900_000 };
        const { result } = await doTask(bench, adapter, task);
        return result;
      },
    );
    return {
      tables: [
        {
          title: `(i) ${sessions.toLocaleString('en')} sessions, idle after one call each: 0x0-5`,
          about:
            'kB: what each holds on the heap. The floor holds an array of two messages, as they are sent. call: how long one took, with 16 side by side.',
          columns: [
            { name: 'adapter', isWords: true },
            { name: 'kB' },
            { name: 'call ms' },
            { name: '', isWords: true },
          ],
          rows: outcomes.map((outcome) =>
            rowOf(outcome, ({ rounds }) =>
              rounds.flatMap(({ isHeld, heapBytes, callMs }) =>
                isHeld
                  ? [shown(heapBytes / 1_000), shown(callMs)]
                  : ['', '', 'has no conversations in memory'],
              ),
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
