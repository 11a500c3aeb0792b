import { matches } from './matches.js';
import type { Value } from './value.js';
import { contentTokens, overlaps, senseOf, type Span, stemOf } from './words.js';

/** Where values are looked for. */
export interface Source {
  readonly text: string;
  /** What `it` and `the result` stand for. */
  readonly reference: string | undefined;
  /** Words that other parameters have taken. */
  readonly taken: readonly Span[];
  /** Stems and senses that call for the tool, and so are no value. */
  readonly ownStems: ReadonlySet<string>;
  /** The whole text may be the value: it was asked for. */
  readonly wholeText: boolean;
}

const nowhere: Span = { start: 0, end: 0 };

/** The words that carry meaning, in their order. They explain nothing: any text has some. */
export const queryIn = ({ text, ownStems, wholeText }: Source): readonly Value[] => {
  const tokens = contentTokens(text);
  const subject = tokens.filter(({ text: word }) => !isOwn(ownStems, word));
  const isCommand = tokens[0] !== undefined && isOwn(ownStems, tokens[0].text);
  const isSubject = isCommand && subject.length > 0 && !wholeText;
  const words = (isSubject ? subject : tokens).map((token) => token.text);
  return words.length === 0
    ? []
    : [{ ...nowhere, value: words.join(' ').slice(0, 300), telling: false }];
};

const isOwn = (own: ReadonlySet<string>, word: string): boolean =>
  own.has(stemOf(word)) || own.has(senseOf(stemOf(word)));

const quotes =
  /"[^"\n]{1,2000}"|“[^”\n]{1,2000}”|`[^`\n]{1,2000}`|(?<=^|[\s(,:])'[^\n]{1,2000}?'(?![\p{L}\p{N}])/gu;

/** A text without the marks around it. */
export const unquoted = (text: string): string => text.slice(1, -1);

const quoted = (text: string): readonly Value[] =>
  matches(text, quotes, false).map((it) => ({ ...it, value: unquoted(String(it.value)) }));

/** What is quoted, what follows a colon, or all that does not name the tool. */
export const proseIn = (source: Source): readonly Value[] => {
  const set = setApart(source.text);
  return set.length > 0 ? set : remainder(source);
};

const setApart = (text: string): readonly Value[] => {
  const inQuotes = quoted(text);
  const colon = text.indexOf(': ');
  const tail = text.slice(colon + 2).trim();
  if (inQuotes.length > 0 || colon < 0 || tail === '') return inQuotes;
  return [{ ...nowhere, value: tail, telling: false }];
};

/** Names: what is set apart in the same way, capitalised words, or all that does not name the tool. */
export const namesIn = (source: Source): readonly Value[] => {
  const set = setApart(source.text);
  if (set.length > 0) return set;
  const capitalised = matches(
    source.text,
    /(?<=[^.!?]\s)\p{Lu}[\p{L}\p{N}'’-]*(?: \p{Lu}[\p{L}\p{N}'’-]*){0,3}/gu,
    false,
  ).filter(({ value }) => value !== 'I');
  return capitalised.length > 0 ? capitalised : remainder(source);
};

/** The text from its first to its last word that is left. */
const remainder = ({ text, ownStems, taken, wholeText }: Source): readonly Value[] => {
  const left = contentTokens(text).filter(
    (token) =>
      !taken.some((span) => overlaps(span, token)) && (wholeText || !isOwn(ownStems, token.text)),
  );
  const [first, last] = [left[0], left.at(-1)];
  if (first === undefined || last === undefined) return [];
  const next = taken.map(({ start }) => start).filter((start) => start > first.start);
  const end = Math.min(last.end, ...next);
  const value = text
    .slice(first.start, end)
    .trim()
    .replace(/\s(?:to|into|in|from|for|as|at|with)$/iu, '');
  return [{ ...nowhere, value, telling: false }];
};
