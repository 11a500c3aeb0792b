import { describe, expect, it } from '@jest/globals';
import { contest, isFair } from './contest/contest.js';
import { crashStore } from './driver/crash-store.js';
import type { StoreName } from './places/place.js';
import { wrongsOf } from './report.js';
import { withStore } from './with-store.js';

// Processes may have to wait for a busy machine.
const limitMs = 240_000;

/** A little of what the command does: to start a process takes longest, and that of an embedded database seconds. It has fewer kills, of more calls each. */
const amounts: readonly (readonly [StoreName, { kills: number; callsPerTrial: number }])[] = [
  ['files', { kills: 12, callsPerTrial: 3 }],
  ['embedded', { kills: 4, callsPerTrial: 6 }],
  ['postgres', { kills: 12, callsPerTrial: 3 }],
];

describe.each(amounts)('calls in %s', (store, amount) => {
  it(
    'S6: lose no effect and double none in silence, wherever their processes are killed',
    () =>
      withStore(store, 1, async ({ places, server }) => {
        const atOnce = store === 'embedded' ? 2 : 6;
        const crashed = await crashStore({ store, seed: 1, atOnce, ...amount }, places, server);
        expect(wrongsOf([crashed])).toEqual([]);
        const { trials } = crashed;
        expect(trials.reduce((all, { kills }) => all + kills, 0)).toBe(amount.kills);
        expect(trials.flatMap(({ verdicts }) => verdicts.flatMap((it) => it.lost))).toEqual([]);
        expect(trials.flatMap(({ verdicts }) => verdicts.flatMap((it) => it.doubled))).toEqual([]);
      }),
    limitMs,
  );

  it.each([
    ['has given them back', false],
    ['was killed just before', true],
  ])(
    'S7: go on in one of two processes alone, where the one before %s',
    (_, isKilled) =>
      withStore(store, 1, async ({ places, server }) => {
        const rounds = await contest({ name: 'contest', rounds: 5, isKilled }, places, server);
        expect(rounds.filter((round) => !isFair(round))).toEqual([]);
        expect(rounds).toHaveLength(5);
      }),
    limitMs,
  );
});
