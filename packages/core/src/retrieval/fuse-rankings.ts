/** Something that is ranked, and how well. */
export interface Fused<T> {
  readonly item: T;
  readonly score: number;
}

/** Dampens how much more a first place counts than a second. */
const k = 60;

/**
 * Merges rankings, each the best first, into one by reciprocal rank fusion: a place counts 1 / (60 + place), and what
 * stands in several rankings has the sum. Of equals, the one that an earlier ranking holds, or holds first, comes
 * first. From Cormack, Clarke and Büttcher, “Reciprocal rank fusion outperforms Condorcet and individual rank
 * learning methods”, SIGIR 2009.
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
