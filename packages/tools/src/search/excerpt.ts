import { lookUpForm, termsIn, wordsIn } from 'millrace/values';
import type { Span } from 'millrace/retrieval';

/**
 * Finds the part of `text` with the most different terms: up to `longest` characters, from the start to the end of a
 * line or word if possible. A shorter text is returned whole.
 */
export const excerptOf = (text: string, terms: ReadonlySet<string>, longest: number): Span => {
  if (text.length <= longest) return { from: 0, to: text.length };
  const lead = longest / 5;
  const start = startOf(text, bestHit(text, terms, longest - lead), lead);
  const cut = text.slice(start, betweenCharacters(text, start + longest));
  const kept = start + longest >= text.length ? cut : cut.slice(0, endOf(cut));
  const from = start + kept.length - kept.trimStart().length;
  return { from, to: from + kept.trim().length };
};

interface Hit {
  readonly index: number;
  readonly terms: readonly string[];
}

/** The start of the first window of this width with the most different terms. */
const bestHit = (text: string, terms: ReadonlySet<string>, width: number): number => {
  const hits = wordsIn(text)
    .map(({ text: word, index }): Hit => ({
      index,
      terms: formsOf(word).filter((it) => terms.has(it)),
    }))
    .filter((hit) => hit.terms.length > 0);
  const within = new Map<string, number>();
  let best = { index: 0, found: 0 };
  let end = 0;
  for (const { index, terms: leaving } of hits) {
    for (let next = hits[end]; next !== undefined && next.index < index + width;) {
      for (const term of next.terms) within.set(term, (within.get(term) ?? 0) + 1);
      next = hits[(end += 1)];
    }
    if (within.size > best.found) best = { index, found: within.size };
    for (const term of leaving) {
      const left = (within.get(term) ?? 0) - 1;
      if (left > 0) within.set(term, left);
      else within.delete(term);
    }
  }
  return best.index;
};

const formsOf = (word: string): readonly string[] =>
  termsIn(word).flatMap((term) => lookUpForm(term) ?? []);

const startOf = (text: string, hit: number, most: number): number => {
  if (hit <= most) return 0;
  const first = betweenCharacters(text, Math.ceil(hit - most));
  const lead = text.slice(first, hit);
  const line = lead.indexOf('\n');
  const word = lead.search(/\s/u);
  return first + Math.max(line >= 0 ? line : word, 0);
};

/** The end of the last line or word, unless that loses too much of the text. */
const endOf = (cut: string): number => {
  const line = cut.lastIndexOf('\n');
  const word = cut.search(/\s\S*$/u);
  if (line > cut.length * 0.6) return line;
  return word > cut.length * 0.6 ? word : cut.length;
};

/** The index, or the previous one if it is between the halves of a surrogate pair. */
const betweenCharacters = (text: string, index: number): number =>
  /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(index - 1, index + 1)) ? index - 1 : index;

/** Returns the part of `text` with the most different terms, about 600 characters long. */
export const snippetOf = (text: string, terms: ReadonlySet<string>): string => {
  const { from, to } = excerptOf(text, terms, maxLength);
  return `${from > 0 ? '… ' : ''}${text.slice(from, to)}${to < text.length ? ' …' : ''}`;
};

const maxLength = 600;
