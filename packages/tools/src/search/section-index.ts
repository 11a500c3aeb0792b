import { lookUpForm, termsIn, wordsIn } from 'millrace/values';
import MiniSearch, { type SearchResult } from 'minisearch';
import type { SearchDocument, Section } from './document.js';
import { snippetOf } from './excerpt.js';
import { splitIntoSections } from './split-into-sections.js';

export interface Passage {
  readonly path: string;
  readonly headings: readonly string[];
  readonly line: number;
  /** The part with the most matches. */
  readonly snippet: string;
  /** The share of the query's words that it contains, from 0 to 1; similar words count half. */
  readonly relevance: number;
  /** The BM25 score, weighted by squared relevance and by the heading. Only comparable within one search. */
  readonly score: number;
}

/** A section that contains some of the search terms. */
export interface RankedSection {
  readonly section: Section;
  /** Its words that match, in normalized form. */
  readonly terms: readonly string[];
  readonly relevance: number;
  readonly score: number;
}

/** A full-text index of documents. */
export interface SectionIndex {
  readonly size: number;
  readonly sections: readonly Section[];
  add(documents: readonly SearchDocument[]): void;
  /** Returns all sections that contain some of the terms, best first. */
  rank(terms: readonly string[]): readonly RankedSection[];
  /** Returns the passages that match a query best, best first. */
  search(query: string, limit: number): readonly Passage[];
}

/**
 * Creates an empty index. Boosts, in descending order: the heading of a section, the headings above it, its path, its
 * prose, its code. Prefixes and similar words count less than exact matches.
 */
export const createSectionIndex = (): SectionIndex => {
  const sections: Section[] = [];
  const termsOf = remembered(termsIn);
  const index = new MiniSearch<IndexedSection>({
    fields: ['heading', 'above', 'path', 'prose', 'code'],
    tokenize: (text) => wordsIn(text).flatMap((word) => termsOf(word.text) ?? []),
    processTerm: remembered(lookUpForm),
    searchOptions: {
      boost: { heading: 4, above: 2, path: 1.5, code: 0.3 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      weights: { prefix: 0.5, fuzzy: 0.3 },
    },
  });
  let size = 0;
  const rank = (terms: readonly string[]): readonly RankedSection[] =>
    index
      .search(terms.join(' '))
      .flatMap((result) => rankResult(sections[Number(result.id)], result, terms))
      .sort((a, b) => b.score - a.score);
  return {
    get size() {
      return size;
    },
    sections,
    add: (documents) => {
      size += documents.length;
      for (const section of documents.flatMap(splitIntoSections)) {
        const { headings, path, prose, code } = section;
        const heading = headings.at(-1) ?? '';
        const above = headings.slice(0, -1).join(' ');
        index.add({ id: sections.push(section) - 1, heading, above, path, prose, code });
      }
    },
    rank,
    search: (query, limit) => rank(queryTerms(query)).slice(0, limit).map(passageOf),
  };
};

/** Computes once for each word. Most words occur many times, and the index keeps every word anyway. */
const remembered = <Result>(compute: (word: string) => Result) => {
  const results = new Map<string, Result>();
  return (word: string): Result | undefined => {
    if (!results.has(word)) results.set(word, compute(word));
    return results.get(word);
  };
};

interface IndexedSection {
  readonly id: number;
  readonly heading: string;
  readonly above: string;
  readonly path: string;
  readonly prose: string;
  readonly code: string;
}

const maxTerms = 30;

/** The significant words of a query, without duplicates. */
export const queryTerms = (query: string): readonly string[] => {
  const terms = [...new Set(termsIn(query).flatMap((term) => lookUpForm(term) ?? []))];
  return significantTerms(terms).slice(0, maxTerms);
};

/** Removes stop words, unless there are no other terms. */
export const significantTerms = (terms: readonly string[]): readonly string[] => {
  const significant = terms.filter((term) => !stopWords.has(term));
  return significant.length > 0 ? significant : terms;
};

/** In `What does the documentation say about …` or `Why is it called …`, these words do not describe the topic. */
const stopWords: ReadonlySet<string> = new Set(
  'called doc document documentation describe explain find information mention named search'.split(
    ' ',
  ),
);

const rankResult = (
  section: Section | undefined,
  { terms, queryTerms: hit, score }: SearchResult,
  wanted: readonly string[],
): readonly RankedSection[] => {
  if (section === undefined) return [];
  const weights = wanted.map((term) => {
    if (terms.some((found) => found.startsWith(term))) return 1;
    return hit.includes(term) ? 0.5 : 0;
  });
  const relevance = weights.reduce<number>((sum, weight) => sum + weight, 0) / wanted.length;
  return [{ section, terms, relevance, score: score * boostOf(section, wanted, relevance) }];
};

const passageOf = ({ section, terms, relevance, score }: RankedSection): Passage => {
  const { path, headings, line, text } = section;
  return { path, headings, line, snippet: snippetOf(text, new Set(terms)), relevance, score };
};

/** The boost of a section if the query contains its whole heading. */
const headingFactor = 2.5;

/** The factor per directory level: main pages rank before those of parts. */
const depthFactor = 0.9;

const boostOf = (
  { headings, path }: Section,
  wanted: readonly string[],
  relevance: number,
): number => {
  const heading = queryTerms(headings.at(-1) ?? '');
  const matched = heading.filter((term) => wanted.includes(term)).length;
  const share = heading.length === 0 ? 0 : (matched / heading.length) ** 2;
  const depth = path.split('/').length - 1;
  return Math.max(relevance, share) ** 2 * (1 + (headingFactor - 1) * share) * depthFactor ** depth;
};
