import { lookUpForm, termsIn } from 'millrace/values';

/** A stretch of text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A word between spaces, without surrounding punctuation. */
export interface Word extends Span {
  readonly text: string;
  /** The form that inflections share; empty for a word that says nothing about a subject, such as `the`. */
  readonly stem: string;
}

export interface Phrase {
  readonly text: string;
  readonly words: readonly Word[];
  /** The words that say something about a subject. */
  readonly content: readonly Word[];
}

export const readPhrase = (text: string): Phrase => {
  const words = Array.from(text.matchAll(/\S+/gu), ({ 0: chunk, index }) => bare(chunk, index));
  return { text, words, content: words.filter(({ stem }) => stem !== '') };
};

const opening = new Set('([{<"\'`“‘«*_');
const closing = new Set(')]}>"\'`”’»*_?!.,;:…');

const bare = (chunk: string, at: number): Word => {
  let start = 0;
  let end = chunk.length;
  while (start < end && opening.has(chunk.charAt(start))) start += 1;
  while (end > start && closing.has(chunk.charAt(end - 1))) end -= 1;
  const text = chunk.slice(start, end).replace(/['’]s$/u, '');
  return { text, start: at + start, end: at + start + text.length, stem: stemOf(text) };
};

/** The stems of the words of a string: `readFiles` has those of `read` and `file`. */
export const stemsIn = (text: string): readonly string[] =>
  termsIn(text)
    .map(stemOf)
    .filter((stem) => stem !== '');

/** The words of a name such as `order_status`, as one would say them. */
export const spoken = (name: string): string => {
  const [first = name, ...parts] = termsIn(name);
  return (parts.length === 0 ? [first] : parts).join(' ').toLowerCase();
};

/** Longer words are codes and the like, which have no inflections. */
const longestWord = 40;

const stemOf = (word: string): string => {
  if (!/[\p{L}\p{N}]/u.test(word)) return '';
  const lower = word.toLowerCase();
  if (word.length > longestWord) return lower;
  if (addressing.has(lower)) return '';
  return (lookUpForm(lower) ?? '').replace(/(?<=[\p{L}]{3})(?:ed?|er)$/u, '');
};

/** Words that a question has beside its subject, in addition to those that `lookUpForm` leaves out. */
const addressing = new Set(
  `again all also am another between both e.g each else every give hello help here hey hi i'd i'm i.e it's just
  know let let's like lot many may more much must need now ok okay out please than thank thanks that's
  there's today too up very want well what's where's who's whose yes yet`.split(/\s+/u),
);

/** Whether two stretches have a character in common. */
export const overlaps = (a: Span, b: Span): boolean => a.start < b.end && b.start < a.end;
