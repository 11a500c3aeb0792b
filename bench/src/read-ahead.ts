import type { StreamMark } from './mock/seen.js';

/**
 * How many deltas a process had read from its socket and its consumer had not begun with, at most. Of each mark it is
 * what the server had handed to the system, less what lay in the buffers of the system at both ends, less what had been taken by
 * then. Undefined without marks: only Linux tells of its buffers.
 */
export const readAhead = (
  marks: readonly StreamMark[],
  takenAt: readonly number[],
): number | undefined => {
  const last = marks.at(-1);
  if (last === undefined) return undefined;
  const bytesPerDelta = last.written / takenAt.length;
  let taken = 0;
  return marks.reduce((most, { at, written, sendQueue, receiveQueue }) => {
    while ((takenAt[taken] ?? Infinity) <= at) taken += 1;
    return Math.max(most, Math.round((written - sendQueue - receiveQueue) / bytesPerDelta) - taken);
  }, 0);
};
