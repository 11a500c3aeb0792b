/** A sentence that says what was probably meant, or what there is. */
export const didYouMean = (name: string, candidates: readonly string[], what: string): string => {
  const near = nearest(name, candidates);
  if (near !== undefined) return `Did you mean '${near}'?`;
  if (candidates.length === 0) return `There are no ${what}.`;
  const shown = candidates.slice(0, mostShown).join(', ');
  const more = candidates.length > mostShown ? ', …' : '';
  return `The ${what} are: ${shown}${more}.`;
};

const mostShown = 12;

/** Longer names are compared by their beginning. */
const longest = 64;

const plain = (name: string): string => name.slice(0, longest).toLowerCase();

/** The candidate that a name was probably meant to be: the first of the nearest. */
const nearest = (name: string, candidates: readonly string[]): string | undefined => {
  const wanted = plain(name);
  const allowed = 1 + Math.floor(wanted.length / 4);
  const near = candidates
    .map((candidate) => ({ candidate, distance: edits(wanted, plain(candidate)) }))
    .filter(({ distance, candidate }) => distance <= Math.min(allowed, candidate.length - 1))
    .sort((a, b) => a.distance - b.distance);
  return near[0]?.candidate;
};

/** How many characters must be put in, taken out, replaced, or swapped with their neighbours. */
const edits = (a: string, b: string): number => {
  let twoAbove: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, left] of Array.from(a).entries()) {
    const above: number[] = row;
    row = [i + 1];
    for (const [j, right] of Array.from(b).entries()) {
      const replaced = (above[j] ?? 0) + (left === right ? 0 : 1);
      const swaps = left === b[j - 1] && a[i - 1] === right;
      const swapped = swaps ? (twoAbove[j - 1] ?? 0) + 1 : Infinity;
      row.push(Math.min(replaced, swapped, (above[j + 1] ?? 0) + 1, (row[j] ?? 0) + 1));
    }
    twoAbove = above;
  }
  return row.at(-1) ?? 0;
};
