import { lookUpForm, termsIn } from '../retrieval/words.js';

export interface KeywordIndex<Item> {
  /** Items that there are. */
  readonly size: number;
  /** Terms of all items together. */
  readonly length: number;
  /** How often each item that holds a term holds it. */
  holding(term: string): ReadonlyMap<Item, number>;
  /** Terms that an item has. */
  lengthOf(item: Item): number;
  add(item: Item, text: string): void;
  /** Takes an item out; the text is the one that it was added with. */
  remove(item: Item, text: string): void;
}

export const createKeywordIndex = <Item extends object>(): KeywordIndex<Item> => {
  const holders = new Map<string, Map<Item, number>>();
  const lengths = new Map<Item, number>();
  let length = 0;
  return {
    get size() {
      return lengths.size;
    },
    get length() {
      return length;
    },
    holding: (term) => holders.get(term) ?? nowhere,
    lengthOf: (item) => lengths.get(item) ?? 0,
    add: (item, text) => {
      const terms = formsIn(text);
      lengths.set(item, terms.length);
      length += terms.length;
      for (const term of terms) {
        const held = holders.get(term) ?? new Map<Item, number>();
        holders.set(term, held.set(item, (held.get(item) ?? 0) + 1));
      }
    },
    remove: (item, text) => {
      length -= lengths.get(item) ?? 0;
      lengths.delete(item);
      for (const term of formsIn(text)) {
        const held = holders.get(term);
        held?.delete(item);
        if (held?.size === 0) holders.delete(term);
      }
    },
  };
};

const nowhere: ReadonlyMap<never, number> = new Map<never, number>();

const formsIn = (text: string): readonly string[] =>
  termsIn(text).flatMap((term) => lookUpForm(term) ?? []);

const k1 = 1.2;

const b = 0.75;

/** The items of all these indexes that hold some of the terms, with their BM25 score, in no order. From Robertson and Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond”, 2009, with the weight of terms of Lucene, which is never negative. */
export const scoresByWords = <Item extends object>(
  indexes: readonly KeywordIndex<Item>[],
  terms: readonly string[],
): ReadonlyMap<Item, number> => {
  const scores = new Map<Item, number>();
  const size = indexes.reduce((sum, index) => sum + index.size, 0);
  const average = indexes.reduce((sum, index) => sum + index.length, 0) / size;
  for (const term of new Set(terms)) {
    const held = indexes.map((index) => ({ index, items: index.holding(term) }));
    const df = held.reduce((sum, { items }) => sum + items.size, 0);
    const weight = Math.log(1 + (size - df + 0.5) / (df + 0.5));
    for (const { index, items } of held) {
      for (const [item, count] of items) {
        const share = index.lengthOf(item) / average;
        const saturated = (count * (k1 + 1)) / (count + k1 * (1 - b + b * share));
        scores.set(item, (scores.get(item) ?? 0) + weight * saturated);
      }
    }
  }
  return scores;
};
