import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Bench, openBench } from './bench.js';
import { contest, isFair } from './contest/contest.js';
import { crashStore } from './driver/crash-store.js';
import type { StoreName } from './places/place.js';
import { wrongsOf } from './report.js';

// Processes may have to wait for a busy machine.
const limitMs = 240_000;

// CI runs a share of the kills.
const share = Number(process.env['MILLRACE_RUNS'] ?? 1);
const shareOf = (full: number, least: number): number => Math.max(least, Math.round(full * share));

/** A tenth of what the command does. */
const amounts: readonly (readonly [
  StoreName,
  { kills: number; callsPerTrial: number; atOnce: number },
])[] = [
  ['files', { kills: shareOf(20, 4), callsPerTrial: 3, atOnce: 5 }],
  ['sqlite', { kills: shareOf(20, 4), callsPerTrial: 3, atOnce: 5 }],
  ['postgres', { kills: shareOf(20, 4), callsPerTrial: 3, atOnce: 5 }],
];

const rounds = shareOf(5, 1);

describe.each(amounts)('calls in %s', (store, amount) => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await openBench(store, 1);
  }, limitMs);
  afterAll(() => bench.close());

  it(
    'S6: lose no effect and double none in silence, wherever their processes are killed',
    async () => {
      const crashed = await crashStore({ store, seed: 1, ...amount }, bench);
      expect(wrongsOf([crashed])).toEqual([]);
      const { trials } = crashed;
      expect(trials.reduce((all, { kills }) => all + kills, 0)).toBe(amount.kills);
      const verdicts = trials.flatMap((trial) => trial.verdicts);
      expect(verdicts.flatMap(({ lost, doubled }) => [...lost, ...doubled])).toEqual([]);
    },
    limitMs,
  );

  it(
    'S7: continue in one of two processes alone, if the one before has given them back or was killed',
    async () => {
      const contests = [false, true].map((isKilled) =>
        contest({ name: `contest-${isKilled}`, rounds, isKilled }, bench),
      );
      const ended = (await Promise.all(contests)).flat();
      expect(ended.filter((round) => !isFair(round))).toEqual([]);
      expect(ended).toHaveLength(2 * rounds);
    },
    limitMs,
  );
});
