/** Finds the candidates that are most similar to a name: up to `limit`, the nearest first. */
export const nearMatches = (
  name: string,
  candidates: Iterable<string>,
  limit = 3,
): readonly string[] => {
  const wanted = plain(name);
  return [...new Set(candidates)]
    .map((candidate) => ({ candidate, distance: distanceBetween(wanted, plain(candidate)) }))
    .filter(({ distance }) => distance < 1)
    .sort((a, b) => a.distance - b.distance || compare(a.candidate, b.candidate))
    .slice(0, limit)
    .map(({ candidate }) => candidate);
};

/** Longer names are compared by their first characters. */
const longest = 80;

const plain = (name: string): string => name.slice(0, longest).toLowerCase();

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** 0 for equal names, below 1 for similar ones. */
const distanceBetween = (a: string, b: string): number => {
  if (a === b) return 0;
  const allowed = 1 + Math.floor(Math.min(a.length, b.length) / 4);
  if (Math.min(a.length, b.length) < 3) return 1;
  if (a.includes(b) || b.includes(a)) return 0.9;
  return Math.abs(a.length - b.length) > allowed ? 1 : edits(a, b) / (allowed + 1);
};

/** Edit distance: insertions, deletions, replacements and swaps of neighbours (Damerau-Levenshtein). */
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
