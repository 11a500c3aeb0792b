import { lookUpForm, termsIn } from './words.js';

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
