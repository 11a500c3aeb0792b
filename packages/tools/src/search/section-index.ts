import { lookUpForm, termsIn } from '@millrace/core/adapter';
import MiniSearch, { type SearchResult } from 'minisearch';
import type { SearchDocument, Section } from './document.js';
import { snippetOf } from './snippet.js';
import { splitIntoSections } from './split-into-sections.js';

/** A section that was found. */
export interface Passage {
  readonly path: string;
  readonly headings: readonly string[];
  readonly line: number;
  /** The part of it that holds what was looked for. */
  readonly snippet: string;
  /** The share of the query's words that it holds, from 0 to 1; a word that is only similar counts half. */
  readonly relevance: number;
  /** The BM25 score, weighted by the square of the relevance and by what the heading says: good for comparing passages of one search, and for nothing else. */
  readonly score: number;
}

/** A section that holds some of the words that are looked for. */
export interface RankedSection {
  readonly section: Section;
  /** The words of it that are like those, in the form in which they are looked up. */
  readonly terms: readonly string[];
  /** As of a `Passage`. */
  readonly relevance: number;
  /** As of a `Passage`. */
  readonly score: number;
}

/** An index of documents by their words, which grows. */
export interface SectionIndex {
  /** How many documents it holds. */
  readonly size: number;
  /** What the documents were split into, in their order. */
  readonly sections: readonly Section[];
  add(documents: readonly SearchDocument[]): void;
  /** All sections that hold some of these terms, the best first. */
  rank(terms: readonly string[]): readonly RankedSection[];
  /** The passages that answer a query best, the best first; none where no word of it occurs. */
  search(query: string, limit: number): readonly Passage[];
}

/**
 * Makes an empty index. A section's own heading counts most, then those above it, then its path, then its prose,
 * and its code least; words that begin or nearly are alike count less than the same words.
 */
export const createSectionIndex = (): SectionIndex => {
  const sections: Section[] = [];
  const index = new MiniSearch<IndexedSection>({
    fields: ['heading', 'above', 'path', 'prose', 'code'],
    tokenize: termsIn,
    processTerm: lookUpForm,
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
      .flatMap((result) => ranked(sections[Number(result.id)], result, terms))
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

interface IndexedSection {
  readonly id: number;
  readonly heading: string;
  readonly above: string;
  readonly path: string;
  readonly prose: string;
  readonly code: string;
}

const mostTerms = 30;

/** The words of a query that are worth looking for, each once. */
export const queryTerms = (query: string): readonly string[] => {
  const terms = [...new Set(termsIn(query).flatMap((term) => lookUpForm(term) ?? []))];
  return tellingTerms(terms).slice(0, mostTerms);
};

/** Of terms, those that say what is asked about; all, where none does. */
export const tellingTerms = (terms: readonly string[]): readonly string[] => {
  const telling = terms.filter((term) => !askingWords.has(term));
  return telling.length > 0 ? telling : terms;
};

/**
 * `What does the documentation say about …` looks for what it is about, and not for documentation; `Why is it
 * called …` for what bears the name.
 */
const askingWords: ReadonlySet<string> = new Set(
  'called doc document documentation describe explain find information mention named search'.split(
    ' ',
  ),
);

const ranked = (
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
  return [{ section, terms, relevance, score: score * aptness(section, wanted, relevance) }];
};

const passageOf = ({ section, terms, relevance, score }: RankedSection): Passage => {
  const { path, headings, line, text } = section;
  return { path, headings, line, snippet: snippetOf(text, new Set(terms)), relevance, score };
};

/** How much more a section counts whose own heading is all of it in the query: it is about just that. */
const namedFactor = 2.5;

/** What a section in a directory counts of one above it: the main page comes before those of parts. */
const depthFactor = 0.9;

const aptness = (
  { headings, path }: Section,
  wanted: readonly string[],
  relevance: number,
): number => {
  const heading = queryTerms(headings.at(-1) ?? '');
  const asked = heading.filter((term) => wanted.includes(term)).length;
  const share = heading.length === 0 ? 0 : (asked / heading.length) ** 2;
  const depth = path.split('/').length - 1;
  return Math.max(relevance, share) ** 2 * (1 + (namedFactor - 1) * share) * depthFactor ** depth;
};
