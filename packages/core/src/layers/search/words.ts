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
