export const wordsIn = (
  text: string,
): readonly { readonly text: string; readonly index: number }[] =>
  Array.from(text.matchAll(/[\p{L}\p{N}_]+/gu), ({ 0: word, index }) => ({ text: word, index }));

const unspaced =
  /([\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]+)/u;

/** Words, and parts of names such as `max_tokens`; in scripts without spaces, each pair of adjacent characters. */
export const termsIn = (text: string): string[] =>
  wordsIn(text).flatMap(({ text: word }) =>
    word.split(unspaced).flatMap((part, at) => (at % 2 === 1 ? pairsIn(part) : partsOf(part))),
  );

const partsOf = (word: string): readonly string[] => {
  const parts = word.split(/_+|(?<=[\p{Ll}\p{N}])(?=\p{Lu})/u).filter((part) => part !== '');
  return parts.length > 1 ? [word, ...parts] : parts;
};

const pairsIn = (run: string): readonly string[] => {
  const characters = Array.from(run);
  return characters.length === 1
    ? characters
    : characters.slice(1).map((character, at) => `${characters[at] ?? ''}${character}`);
};

/** The form in which terms are compared: lower case, singular, without `-ing`. Undefined for stop words. */
export const lookUpForm = (term: string): string | undefined => {
  const lower = term.normalize('NFKC').toLowerCase();
  return stopWords.has(lower) ? undefined : withoutIng(singular(lower));
};

const singular = (term: string): string => {
  if (term.length < 4 || /(?:ss|us|is)$/u.test(term)) return term;
  return term.replace(/ies$/u, 'y').replace(/s$/u, '');
};

/** `stopping` becomes `stop`, `testing` becomes `test`; `string` and `ring` stay. */
const withoutIng = (term: string): string => {
  const stem = /^(.*[aeiouy].*)ing$/u.exec(term)?.[1];
  return stem === undefined || stem.length < 3 ? term : stem.replace(/([bdgmnprt])\1$/u, '$1');
};

const stopWords: ReadonlySet<string> = new Set(
  [
    'a about an and any are as at be been but by can could did do does for from get had has have how i if in',
    'into is it its me mean my no not of on or our out please say should show so some such tell than that the',
    'their them then there these they this to us use used using was we were what when where which who why will',
    'with without work would you your',
  ].flatMap((words) => words.split(' ')),
);

export const termsOfRequest = (text: string): readonly string[] => {
  const terms = [...new Set(termsIn(endsOf(text)).flatMap((term) => lookUpForm(term) ?? []))];
  return terms.length <= maxTerms
    ? terms
    : [...terms.slice(0, maxTerms / 2), ...terms.slice(-maxTerms / 2)];
};

/** Bounded, as each term is also searched with typos, which is slow. */
const maxTerms = 60;

const maxCharacters = 2_000;

/** The start and end of a long text: the question stands before or after what a request encloses. */
export const endsOf = (text: string): string =>
  text.length <= maxCharacters
    ? text
    : `${text.slice(0, maxCharacters / 2)} ${text.slice(-maxCharacters / 2)}`;

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
