import { lookUpForm, termsIn, wordsIn } from './words.js';

/** Cuts the part of a text that holds the most of some terms, at most some 600 characters, at ends of lines or words. */
export const snippetOf = (text: string, terms: ReadonlySet<string>): string => {
  if (text.length <= longest) return text;
  const start = beginningOf(text, bestHit(text, terms));
  const cut = text.slice(start, start + longest);
  const end = start + longest >= text.length ? cut.length : endOf(cut);
  return `${start > 0 ? '… ' : ''}${cut.slice(0, end).trim()}${start + end < text.length ? ' …' : ''}`;
};

const longest = 600;

/** Characters that are shown before the first hit. */
const before = 120;

interface Hit {
  readonly index: number;
  readonly terms: readonly string[];
}

/** Where the window begins that holds the most different terms; of equals, the first. */
const bestHit = (text: string, terms: ReadonlySet<string>): number => {
  const hits = wordsIn(text)
    .map(({ text: word, index }): Hit => ({
      index,
      terms: formsOf(word).filter((it) => terms.has(it)),
    }))
    .filter((hit) => hit.terms.length > 0);
  let best = { index: 0, found: 0 };
  for (const { index } of hits) {
    const within = hits.filter((it) => it.index >= index && it.index < index + longest - before);
    const found = new Set(within.flatMap((it) => it.terms)).size;
    if (found > best.found) best = { index, found };
  }
  return best.index;
};

const formsOf = (word: string): readonly string[] =>
  termsIn(word).flatMap((term) => lookUpForm(term) ?? []);

const beginningOf = (text: string, hit: number): number => {
  if (hit <= before) return 0;
  const lead = text.slice(hit - before, hit);
  const line = lead.indexOf('\n');
  const word = lead.search(/\s/u);
  return hit - before + Math.max(line >= 0 ? line : word, 0);
};

const endOf = (cut: string): number => {
  const line = cut.lastIndexOf('\n');
  const word = cut.search(/\s\S*$/u);
  if (line > longest * 0.6) return line;
  return word > longest * 0.6 ? word : cut.length;
};
