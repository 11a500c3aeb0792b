/** How often a word occurs in a chunk. */
export interface Occurrences {
  readonly titles: number;
  readonly texts: number;
}

/** The weight of a word that a number of chunks have, as in BM25: the rarer, the heavier. */
export const weightOf = (count: number, total: number): number =>
  Math.log(1 + (total - count + 0.5) / (count + 0.5));

/**
 * The rank of a chunk with a word, as `ts_rank` of Postgres computes it (tsrank.c, `calc_rank_or`, normalization 1), in 32-bit
 * floats: further occurrences count less and less, those in the title more, and all of them less in a long chunk.
 */
export const rankOf = ({ titles, texts }: Occurrences, length: number): number => {
  const { fround } = Math;
  const weightAt = (place: number): number => fround(place < titles ? 0.4 : 0.1);
  let sum = 0;
  for (let place = 0; place < titles + texts; place += 1) {
    sum = fround(sum + fround(weightAt(place) / (place + 1) ** 2));
  }
  // The limit of the sum of 1 / n².
  const part = fround(sum / 1.64493406685);
  return fround(part / Math.log2(length + 1));
};
