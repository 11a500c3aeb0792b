import { MillraceError, tool, type Tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { map, type ObservableInput } from 'rxjs';
import type { SearchDocument } from './document.js';
import { indexOnce } from './index-once.js';
import { countOf, reportPassages } from './report-passages.js';
import { queryTerms } from './section-index.js';

/** Options of `searchDocuments`. */
export interface SearchDocumentsOptions {
  /**
   * Loads the documents, one by one or in lists: an array, a Promise, an Observable or an AsyncIterable. Called on the
   * first search, and again after a failure. `markdownFiles(directory)` creates such a function.
   */
  // No $ in the name, because it rarely returns an Observable.
  // eslint-disable-next-line rxjs-x/finnish
  readonly load: () => ObservableInput<SearchDocument | readonly SearchDocument[]>;
  /** Must be unique among the tools of an agent. Default: `search_docs`. */
  readonly name?: string | undefined;
  /** Describes the topic of the documents to the model. Default: a description of any documents. */
  readonly description?: string | undefined;
}

/**
 * Creates a tool that finds passages of documents by the words of a query.
 *
 * It is a keyword search (BM25, with singular and plural, prefixes and small misspellings), not a search by meaning,
 * for languages with spaces between words. Documents are split at their Markdown headings. The first search builds the
 * index, which is kept, and streams the progress.
 */
export const searchDocuments = (options: SearchDocumentsOptions): Tool => {
  const { load, name = 'search_docs', description = defaultDescription } = options;
  if (typeof load !== 'function') {
    throw new MillraceError(
      'config',
      `searchDocuments(): 'load' must be a function that returns the documents.`,
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
          description: 'The words to search for: a few specific keywords, or a question.',
          examples: ['backpressure of streams', 'How do I write a tool?', 'maxIterations'],
        },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: 10,
          description: 'The number of passages to return. Default: 3.',
        },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    run: ({ query, limit = 3 }) => {
      if (queryTerms(query).length === 0) {
        throw new Error(
          `'${query}' has no words to search for. Use keywords that the text may contain.`,
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
  'Searches the documents for words and returns the best passages, each with its file, heading and relevance. ' +
  'Use it before you answer a question that the documents may answer, and name the file that the answer is from.';
