import type { Crashed } from './driver/crash-store.js';
import { isFair } from './contest/contest.js';
import { hitNames } from './driver/hits.js';
import { tableOf } from './table.js';

const header = [
  'store',
  'kills',
  'calls',
  'kept',
  'effects',
  'lost',
  'doubled',
  'uncertain',
  'interrupted',
  'went on',
  'wrong',
  'one writer',
  'resume p50 ms',
  'p95',
  's',
];

/** Writes what came of some stores as two tables: what was counted, and what was hit. */
export const reportOf = (stores: readonly Crashed[]): string => {
  const counts = stores.map(({ store, trials, rounds, ms }) => {
    const verdicts = trials.flatMap((trial) => trial.verdicts);
    const sum = (count: (verdict: (typeof verdicts)[number]) => number): number =>
      verdicts.reduce((all, verdict) => all + count(verdict), 0);
    const resumeMs = trials.flatMap((trial) => trial.resumeMs).toSorted((a, b) => a - b);
    return [
      store,
      trials.reduce((all, { kills }) => all + kills, 0),
      verdicts.length,
      sum(({ isKept }) => Number(isKept)),
      sum(({ effects }) => effects),
      sum(({ lost }) => lost.length),
      sum(({ doubled }) => doubled.length),
      sum(({ uncertain }) => uncertain),
      sum(({ isInterrupted }) => Number(isInterrupted)),
      sum(({ after }) => Number(after.length > 0)),
      wrongsOf([{ store, trials, rounds, ms }]).length,
      `${rounds.filter(isFair).length}/${rounds.length}`,
      quantile(resumeMs, 0.5),
      quantile(resumeMs, 0.95),
      (ms / 1_000).toFixed(1),
    ];
  });
  const hits = hitNames.map((hit) => [
    hit,
    ...stores.map(
      ({ trials }) => trials.flatMap((trial) => trial.hits).filter((it) => it === hit).length,
    ),
  ]);
  return [
    tableOf(header, counts),
    tableOf(['killed', ...stores.map(({ store }) => store)], hits),
  ].join('\n\n');
};

/** What is not as it must be. */
export const wrongsOf = (stores: readonly Crashed[]): readonly string[] =>
  stores.flatMap(({ store, trials, rounds }) => [
    ...trials.flatMap(({ wrongs }) => wrongs),
    ...rounds
      .filter((round) => !isFair(round))
      .map(
        ({ finished, refusals }) =>
          `${store}: of two processes ${finished} had a call to its end, and the refusals were ${refusals.join(', ') || 'none'}`,
      ),
  ]);

const quantile = (sorted: readonly number[], share: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(0);
