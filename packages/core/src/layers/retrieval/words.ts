/** A word of a text, and where it stands. */
export interface Word {
  readonly text: string;
  readonly index: number;
}

/** Finds the words of a text, in the letters that it has them in. */
export const wordsIn = (text: string): readonly Word[] =>
  Array.from(text.matchAll(/[\p{L}\p{N}_]+/gu), ({ 0: word, index }) => ({ text: word, index }));

/** Scripts that are written without spaces between words. */
const unspaced =
  /([\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]+)/u;

/** Splits a text into terms: the words, and the parts of a name such as `createAgent` or `max_tokens`. Of scripts without spaces between words, each two characters that follow each other are a term. */
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

/** The form in which a term is looked up: lower case, singular, without `-ing`. Undefined for a word that says nothing. */
export const lookUpForm = (term: string): string | undefined => {
  const lower = term.normalize('NFKC').toLowerCase();
  return stopWords.has(lower) ? undefined : withoutIng(singular(lower));
};

const singular = (term: string): string => {
  if (term.length < 4 || /(?:ss|us|is)$/u.test(term)) return term;
  return term.replace(/ies$/u, 'y').replace(/s$/u, '');
};

/** `stopping` is `stop`, `testing` is `test`; `string` and `ring` stay. */
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

/** The words of a request that are worth looking for, each once. */
export const termsOfRequest = (text: string): readonly string[] => {
  const terms = [...new Set(termsIn(endsOf(text)).flatMap((term) => lookUpForm(term) ?? []))];
  return terms.length <= mostTerms
    ? terms
    : [...terms.slice(0, mostTerms / 2), ...terms.slice(-mostTerms / 2)];
};

/** Each is also looked for misspelt, which takes a while. */
const mostTerms = 60;

const mostCharacters = 2_000;

/** What is asked stands before or after what a long request encloses. */
export const endsOf = (text: string): string =>
  text.length <= mostCharacters
    ? text
    : `${text.slice(0, mostCharacters / 2)} ${text.slice(-mostCharacters / 2)}`;
