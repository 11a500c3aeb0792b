import { proseOf } from './prose-of.js';
import type { RetrievedPassage, Span } from './retriever.js';

/** A number that a text cites. */
export interface CitedNumber {
  readonly number: number;
  /** Where the marks that hold it stand in the text, such as `[1]` or `[1, 3]`, in their order. */
  readonly spans: readonly Span[];
}

/** A passage that a text cites. */
export interface Citation extends CitedNumber {
  readonly passage: RetrievedPassage;
}

/** What a text cites. */
export interface Citations {
  /** In the order in which they are first cited. */
  readonly cited: readonly Citation[];
  /** Numbers that no passage has: made up, or no citations, such as a year. */
  readonly unknown: readonly CitedNumber[];
}

/**
 * Finds which of the passages that a model was shown by `numbered` its answer cites, and where. Marks are `[1]`,
 * `[1, 3]` and `[1][2]`; in code and in links they are none. That a passage is cited does not say that it bears
 * the statement out.
 */
export const citationsIn = (text: string, passages: readonly RetrievedPassage[]): Citations => {
  const cited: Citation[] = [];
  const unknown: CitedNumber[] = [];
  for (const [number, spans] of spansByNumber(text)) {
    const passage = passages[number - 1];
    if (passage === undefined) unknown.push({ number, spans });
    else cited.push({ number, passage, spans });
  }
  return { cited, unknown };
};

const mark = /(?<!\\)\[[ \t]*((?:0|[1-9]\d{0,8})(?:[ \t]*,[ \t]*(?:0|[1-9]\d{0,8}))*)[ \t]*\]/gu;

const spansByNumber = (text: string): ReadonlyMap<number, readonly Span[]> => {
  const found = new Map<number, Span[]>();
  for (const { 0: written, 1: numbers = '', index } of proseOf(text).matchAll(mark)) {
    const span = { from: index, to: index + written.length };
    for (const number of new Set(numbers.split(',').map(Number))) {
      const spans = found.get(number);
      if (spans === undefined) found.set(number, [span]);
      else spans.push(span);
    }
  }
  return found;
};
