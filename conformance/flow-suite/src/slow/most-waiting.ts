/** Events that may wait before the demand closes, where nobody says otherwise. */
const highWaterMark = 64;

/** Bytes that one read of the network gives at most. */
const readBytes = 65_536;

/**
 * The most deltas that may wait for a consumer that pulls: those below the high-water mark, and all of the read that
 * goes over it, which one in pieces may follow.
 */
export const mostWaiting = (wireBytes: number): number =>
  highWaterMark + Math.ceil((2 * readBytes) / wireBytes);
