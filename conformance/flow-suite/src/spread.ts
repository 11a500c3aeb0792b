/** What lies in the middle of some numbers, and the greatest of them. */
export interface Spread {
  readonly median: number;
  readonly worst: number;
}

/** Tells how numbers are spread. Of none, both are 0. */
export const spreadOf = (values: readonly number[]): Spread => {
  const sorted = values.toSorted((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)] ?? 0, worst: sorted.at(-1) ?? 0 };
};
