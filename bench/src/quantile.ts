/** The least of some numbers that so large a part of them does not exceed: with 0.95, 95 of 100. Of none, it is not a number. */
export const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * part) - 1)] ?? NaN;
