import type { Pieces } from '../scenario.js';

/** Cuts bytes into pieces. Joined, they are the bytes again; none is empty. */
export const cut = (bytes: Buffer, pieces: Pieces): readonly Buffer[] => {
  if (pieces === 'whole') return bytes.length === 0 ? [] : [bytes];
  const cutBytes: Buffer[] = [];
  for (let from = 0; from < bytes.length;) {
    const size = typeof pieces === 'number' ? pieces : (pieces[cutBytes.length] ?? Infinity);
    const to = Math.min(bytes.length, from + Math.max(1, size));
    cutBytes.push(bytes.subarray(from, to));
    from = to;
  }
  return cutBytes;
};
