export type Random = () => number;

/** Makes the sequence of one step: the same for the same step id, so that a resumed run draws what it drew before. FNV-1a spreads the id over 32 bits when the first number is drawn, mulberry32 draws from there. */
export const randomOf = (stepId: string): Random => {
  let state: number | undefined;
  return () => {
    state = ((state ?? hashOf(stepId)) + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
};

const hashOf = (text: string): number =>
  new TextEncoder()
    .encode(text)
    .reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5);
