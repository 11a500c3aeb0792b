/** A string that grows piece by piece. Appending costs as much as the piece, and slicing as much as the slice. */
export interface GrowingText {
  readonly length: number;
  append(piece: string): void;
  slice(from: number, to?: number): string;
}

/** Pieces are joined into blocks of about this many characters. */
const blockLength = 4096;

export const growingText = (): GrowingText => {
  const blocks: string[] = [];
  const starts: number[] = [];
  let open = '';
  let openStart = 0;
  const blockAt = (index: number): number => countUpTo(starts, index) - 1;
  return {
    get length() {
      return openStart + open.length;
    },
    append: (piece) => {
      open += piece;
      if (open.length < blockLength) return;
      blocks.push(open);
      starts.push(openStart);
      openStart += open.length;
      open = '';
    },
    slice: (from, to = openStart + open.length) => {
      const parts: string[] = [];
      for (let at = Math.max(0, blockAt(from)); at < blocks.length; at += 1) {
        const start = starts[at] ?? 0;
        if (start >= to) break;
        parts.push((blocks[at] ?? '').slice(Math.max(0, from - start), Math.max(0, to - start)));
      }
      if (to > openStart) {
        parts.push(open.slice(Math.max(0, from - openStart), Math.max(0, to - openStart)));
      }
      return parts.join('');
    },
  };
};

/** How many of these sorted numbers are up to `limit`. */
export const countUpTo = (sorted: readonly number[], limit: number): number => {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
};
