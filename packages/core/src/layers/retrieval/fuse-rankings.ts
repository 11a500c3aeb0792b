export interface Fused<T> {
  readonly item: T;
  readonly score: number;
}

const k = 60;

/**
 * Merges rankings by reciprocal rank fusion: each rank scores 1 / (60 + rank), summed over the rankings. Ties keep the
 * order of the rankings. From Cormack, Clarke and Büttcher, “Reciprocal rank fusion outperforms Condorcet and
 * individual rank learning methods”, SIGIR 2009.
 */
export const fuseRankings = <T>(rankings: readonly (readonly T[])[]): readonly Fused<T>[] => {
  const scores = new Map<T, number>();
  for (const ranking of rankings) {
    for (const [index, item] of [...new Set(ranking)].entries()) {
      scores.set(item, (scores.get(item) ?? 0) + 1 / (k + index + 1));
    }
  }
  return [...scores].map(([item, score]) => ({ item, score })).sort((a, b) => b.score - a.score);
};
