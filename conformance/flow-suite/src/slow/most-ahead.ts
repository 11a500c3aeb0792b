import type { Mark } from '../server/seen-request.js';

/** The most by which one side was ahead of the other, looked at whenever that side made a mark. Marks are in order. */
export const mostAhead = (ahead: readonly Mark[], behind: readonly Mark[]): number => {
  let next = 0;
  return ahead.reduce((most, { at, deltas }) => {
    while ((behind[next]?.at ?? Infinity) <= at) next += 1;
    return Math.max(most, deltas - (behind[next - 1]?.deltas ?? 0));
  }, 0);
};
