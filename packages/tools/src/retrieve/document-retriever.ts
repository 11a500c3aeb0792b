import type { Embedder } from 'millrace';
import {
  type RetrievalQuery,
  type RetrievedPassage,
  type Retriever,
  createMeaningIndex,
  fuseRankings,
} from 'millrace/retrieval';
import {
  checkOptions,
  having,
  isFunction,
  isText,
  numberFrom,
  type Rule,
  wholeNumber,
  termsOfRequest,
} from 'millrace/values';
import { catchError, defer, map, mergeMap, type Observable, of } from 'rxjs';
import type { Section } from '../search/document.js';
import { excerptOf } from '../search/excerpt.js';
import { indexOnce } from '../search/index-once.js';
import type { SearchDocumentsOptions } from '../search/search-documents.js';
import { type SectionIndex, significantTerms } from '../search/section-index.js';

/** Options of `documentRetriever`. */
export interface DocumentRetrieverOptions {
  /**
   * Loads the documents, as for `searchDocuments`: on the first query, and again after a failure.
   * `markdownFiles(directory)` creates such a function.
   */
  // No $ in the name, because it rarely returns an Observable.
  // eslint-disable-next-line rxjs-x/finnish
  readonly load: SearchDocumentsOptions['load'];
  /** Adds search by meaning. Default: search by words only. */
  readonly embedder?: Embedder | undefined;
  /** The minimum cosine similarity of query and section, from 0 to 1. Default: 0.3. */
  readonly threshold?: number | undefined;
  /** The maximum length of a passage in characters; longer sections are cut around the matches. Default: 2,000. */
  readonly passageLength?: number | undefined;
}

/**
 * Creates a retriever for documents in this process, which are split at their Markdown headings.
 *
 * It searches for words (BM25), as `searchDocuments` does, and with an `embedder` also by meaning; the rankings are
 * merged by reciprocal rank fusion. The first query builds and waits for the index and the vectors, which are kept. If
 * the embedder fails, the query gets a report and the results of the word search. Only the first and last 1,000
 * characters of a query count. A query without significant words finds nothing.
 *
 * A passage has the exact text of its span, the path as its source, and the headings as its title. Errors as `load`
 * does.
 */
export const documentRetriever = (options: DocumentRetrieverOptions): Retriever => {
  checkOptions('documentRetriever()', options, rules, ['load']);
  const { load, embedder, threshold = 0.3, passageLength = 2_000 } = options;
  const index$ = indexOnce(load).pipe(
    mergeMap((indexing) => (indexing.status === 'ready' ? [indexing.index] : [])),
  );
  const meaning = embedder && createMeaningIndex(embedder, wordsOf, threshold);
  const byMeaning$ = (
    { text, report }: RetrievalQuery,
    sections: readonly Section[],
  ): Observable<readonly Section[]> =>
    meaning === undefined
      ? of([])
      : meaning.rank$(text, sections).pipe(
          catchError((error: unknown) => {
            report?.(
              `Only words were searched, because the search by meaning failed.${why(error)}`,
            );
            return of([]);
          }),
        );
  return {
    retrieve$: (query) =>
      defer(() => {
        const { text, limit = 5, report } = query;
        checkOptions('retrieve$()', { text, limit, report }, queryRules, ['text']);
        const terms = significantTerms(termsOfRequest(text));
        if (terms.length === 0) return of([]);
        return index$.pipe(
          mergeMap((index) =>
            byMeaning$(query, index.sections).pipe(
              map((byMeaning) => best(index, { terms, byMeaning, limit })),
            ),
          ),
          map((found) => found.map((it) => passageOf(it, passageLength))),
        );
      }),
  };
};

const rules: Readonly<Record<keyof DocumentRetrieverOptions, Rule>> = {
  load: [isFunction[0], 'a function that returns the documents'],
  embedder: having('embed$', 'an embedder with a method embed$()'),
  threshold: numberFrom(0),
  passageLength: wholeNumber(100),
};

const queryRules: Readonly<Record<keyof RetrievalQuery, Rule>> = {
  text: isText,
  limit: wholeNumber(1),
  report: isFunction,
};

const wordsOf = ({ headings, text }: Section): string => [...headings.slice(-3), text].join('\n');

const why = (error: unknown): string => (error instanceof Error ? ` ${error.message}` : '');

interface Found {
  readonly item: Section;
  readonly score: number;
  readonly terms: readonly string[];
}

interface Search {
  readonly terms: readonly string[];
  readonly byMeaning: readonly Section[];
  readonly limit: number;
}

/** Results per ranking to merge. Later ones are hardly similar, but would add to the sum. */
const depth = 50;

const best = (index: SectionIndex, { terms, byMeaning, limit }: Search): readonly Found[] => {
  const most = Math.max(depth, limit);
  const byWords = index.rank(terms).slice(0, most);
  const found = new Map(byWords.map((it) => [it.section, it.terms]));
  return fuseRankings([byWords.map(({ section }) => section), byMeaning.slice(0, most)])
    .slice(0, limit)
    .map((it) => ({ ...it, terms: found.get(it.item) ?? [] }));
};

const passageOf = ({ item, score, terms }: Found, longest: number): RetrievedPassage => {
  const { path, headings, original, span } = item;
  const { from, to } = excerptOf(original, new Set(terms), longest);
  const before = original.slice(0, from).split('\n').length - 1;
  return {
    source: path,
    text: original.slice(from, to),
    span: { from: span.from + from, to: span.from + to, line: span.line + before },
    ...(headings.length > 0 ? { title: headings.join(' › ') } : {}),
    score,
  };
};
