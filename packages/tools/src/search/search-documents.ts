import { MillraceError, tool, type Tool } from '@millrace/core';
import { jsonSchema } from '@millrace/core/schema';
import { map, type ObservableInput } from 'rxjs';
import type { SearchDocument } from './document.js';
import { indexOnce } from './index-once.js';
import { countOf, reportPassages } from './report-passages.js';
import { queryTerms } from './section-index.js';

/** What `searchDocuments` is told. */
export interface SearchDocumentsOptions {
  /**
   * Gives the documents, one by one or in lists: an array, a Promise, an Observable or an AsyncIterable. Asked
   * for on the first search, and again only where it failed. `markdownFiles(directory)` makes one.
   */
  // It may give an Observable, and mostly gives none, so its name does not end in $.
  // eslint-disable-next-line rxjs-x/finnish
  readonly load: () => ObservableInput<SearchDocument | readonly SearchDocument[]>;
  /** Default: `search_docs`. Two searches of one agent need two names. */
  readonly name?: string;
  /** Tells a model what the documents are about. Default: that these are the documents it was given. */
  readonly description?: string;
}

/**
 * Makes a tool that finds the passages of documents that hold the words of a query.
 *
 * It is a keyword search (BM25, with singular and plural, beginnings and small misspellings), no search by
 * meaning, for languages that put spaces between words. Documents are split at their Markdown headings. The
 * index is built on the first search, which shows its progress, and kept.
 */
export const searchDocuments = (options: SearchDocumentsOptions): Tool => {
  const { load, name = 'search_docs', description = defaultDescription } = options;
  if (typeof load !== 'function') {
    throw new MillraceError(
      'config',
      `searchDocuments(): 'load' must be a function that gives the documents.`,
    );
  }
  const indexing$ = indexOnce(load);
  return tool({
    name,
    idempotent: true,
    description,
    input: jsonSchema({
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: 300,
          description: 'The words to search for: a few telling keywords, or a question.',
          examples: ['backpressure of streams', 'How do I write a tool?', 'maxIterations'],
        },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: 10,
          description: 'How many passages to give. Default: 3.',
        },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    run: ({ query, limit = 3 }) => {
      if (queryTerms(query).length === 0) {
        throw new Error(
          `'${query}' has no words to search for. Give keywords that the text may hold.`,
        );
      }
      return indexing$.pipe(
        map((indexing) =>
          indexing.status === 'ready'
            ? reportPassages(indexing.index, query, limit)
            : `Indexed ${countOf(indexing.files)}.\n`,
        ),
      );
    },
  });
};

const defaultDescription =
  'Searches the documents for words and gives the passages that fit best, each with its file, heading and ' +
  'relevance. Use it before answering a question that the documents may answer, and say which file it is from.';
