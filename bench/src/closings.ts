import type { Abort } from './jobs/abort-job.js';

/**
 * Milliseconds from each abort until its socket closed: the first that closed before the next abort, or before the end.
 * Undefined where none did.
 */
export const closings = (
  aborts: readonly Abort[],
  closedAt: readonly number[],
  endedAt: number,
): readonly (number | undefined)[] =>
  aborts.map(({ abortedAt }, index) => {
    const until = aborts[index + 1]?.abortedAt ?? endedAt;
    const closed = closedAt.find((at) => at >= abortedAt && at < until);
    return closed === undefined ? undefined : closed - abortedAt;
  });
