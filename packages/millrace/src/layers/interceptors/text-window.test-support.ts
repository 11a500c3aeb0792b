/** Cuts a text into pieces of these sizes, and the rest. */
export const cutAt = (whole: string, sizes: readonly number[]): readonly string[] => {
  const pieces: string[] = [];
  let rest = whole;
  for (const size of sizes) {
    pieces.push(rest.slice(0, size));
    rest = rest.slice(size);
  }
  return [...pieces, rest];
};

/** Tells whether a text has no half of a character in it. */
export const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);
