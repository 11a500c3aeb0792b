import type { Value } from './value.js';

/** Finds the values that a pattern matches. */
export const matches = (text: string, pattern: RegExp, telling: boolean): readonly Value[] =>
  [...text.matchAll(pattern)].map(({ 0: value, index }) => ({
    value,
    start: index,
    end: index + value.length,
    telling,
  }));
