import MiniSearch, { type SearchResult } from 'minisearch';
import type { SearchDocument, Section } from './document.js';
import { snippetOf } from './snippet.js';
import { splitIntoSections } from './split-into-sections.js';
import { lookUpForm, termsIn } from './words.js';

/** A section that was found. */
export interface Passage {
  readonly path: string;
  readonly headings: readonly string[];
  readonly line: number;
  /** The part of it that holds what was looked for. */
  readonly snippet: string;
  /** The share of the query's words that it holds, from 0 to 1; a word that is only similar counts half. */
  readonly relevance: number;
  /** The BM25 score, weighted by the square of the relevance: good for comparing passages of one search, and for nothing else. */
  readonly score: number;
}

/** An index of documents by their words, which grows. */
export interface SectionIndex {
  /** How many documents it holds. */
  readonly size: number;
  add(documents: readonly SearchDocument[]): void;
  /** The passages that answer a query best, the best first; none where no word of it occurs. */
  search(query: string, limit: number): readonly Passage[];
}

/** Makes an empty index. Headings count more than text, words that begin or nearly are alike count less. */
export const createSectionIndex = (): SectionIndex => {
  const sections: Section[] = [];
  const index = new MiniSearch<IndexedSection>({
    fields: ['heading', 'path', 'text'],
    tokenize: termsIn,
    processTerm: lookUpForm,
    searchOptions: {
      boost: { heading: 2.5, path: 1.5 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      weights: { prefix: 0.5, fuzzy: 0.3 },
    },
  });
  let size = 0;
  return {
    get size() {
      return size;
    },
    add: (documents) => {
      size += documents.length;
      for (const section of documents.flatMap(splitIntoSections)) {
        const { headings, path, text } = section;
        index.add({ id: sections.push(section) - 1, heading: headings.join(' '), path, text });
      }
    },
    search: (query, limit) => {
      const wanted = queryTerms(query);
      return index
        .search(wanted.join(' '))
        .flatMap((result) => passageOf(sections[Number(result.id)], result, wanted))
        .sort((a, b) => b.score - a.score)
        .slice(0, limit);
    },
  };
};

interface IndexedSection {
  readonly id: number;
  readonly heading: string;
  readonly path: string;
  readonly text: string;
}

const mostTerms = 30;

/** The words of a query that are worth looking for, each once. */
export const queryTerms = (query: string): readonly string[] => {
  const terms = [...new Set(termsIn(query).flatMap((term) => lookUpForm(term) ?? []))];
  const telling = terms.filter((term) => !askingWords.has(term));
  return (telling.length > 0 ? telling : terms).slice(0, mostTerms);
};

/** `What does the documentation say about …` looks for what it is about, and not for documentation. */
const askingWords: ReadonlySet<string> = new Set(
  'doc document documentation describe explain find information mention search'.split(' '),
);

const passageOf = (
  section: Section | undefined,
  { terms, queryTerms: hit, score }: SearchResult,
  wanted: readonly string[],
): readonly Passage[] => {
  if (section === undefined) return [];
  const weights = wanted.map((term) => {
    if (terms.some((found) => found.startsWith(term))) return 1;
    return hit.includes(term) ? 0.5 : 0;
  });
  const relevance = weights.reduce<number>((sum, weight) => sum + weight, 0) / wanted.length;
  const { path, headings, line, text } = section;
  const snippet = snippetOf(text, new Set(terms));
  return [{ path, headings, line, snippet, relevance, score: score * relevance ** 2 }];
};
