import { MillraceError } from 'millrace';
import {
  type RetrievalQuery,
  type RetrievedPassage,
  type Retriever,
  fuseRankings,
} from 'millrace/retrieval';
import {
  checkOptions,
  isDelay,
  isFunction,
  isRecord,
  isText,
  messageOf,
  type Rule,
  wholeNumber,
  endsOf,
  termsOfRequest,
} from 'millrace/values';
import {
  bufferCount,
  catchError,
  concatMap,
  defer,
  forkJoin,
  from,
  map,
  type Observable,
  type ObservableInput,
  of,
  reduce,
  scan,
  switchMap,
} from 'rxjs';
import { type DatabaseOfStore, databases } from '../databases.js';
import type { Row } from '../sql/sql.js';
import { numberIn } from '../sql/text.js';
import type { DatabaseStore } from '../store.js';
import { checkId } from '../stored-name.js';
import {
  type DocumentRow,
  documentRow,
  embeddedText,
  type IndexDocument,
  passageOf,
} from './document-rows.js';
import type { DocumentTables, IndexRow, Removal } from './document-tables.js';
import { type IndexEmbedder, type StoredVector, vectors$ } from './embed-texts.js';
import { checkSettings, differs, openIndex, type Settings } from './index-settings.js';
import { pullGroups$ } from './pull-groups.js';
import { sqlDocumentTables } from './sql-document-tables.js';
import { sqliteDocumentTables } from './sqlite-document-tables.js';

/** Options of `documentIndex`. */
export interface DocumentIndexOptions {
  /** The name of the index; a store can have many. Default: `documents`. */
  readonly name?: string | undefined;
  /**
   * Adds search by meaning; on a server, with pgvector. The index records its `id` and the length of its vectors. Default: full text
   * search only.
   */
  readonly embedder?: IndexEmbedder | undefined;
  /** The minimum cosine similarity of query and chunk in search by meaning, from 0 to 1. Default: 0.3. */
  readonly threshold?: number | undefined;
  /**
   * On Postgres: the text search configuration that stems words, such as `german`. Default: none, words are found in their
   * English forms.
   */
  readonly language?: string | undefined;
  /** The maximum number of texts per request to the embedder. Default: 64. */
  readonly batchSize?: number | undefined;
  /** How long the embedder may take for a request, in milliseconds. Default: 30,000. */
  readonly embedderMs?: number | undefined;
}

/** The progress after one document. The numbers are those of all documents so far. */
export interface IndexProgress {
  readonly source: string;
  readonly status: 'indexed' | 'unchanged';
  readonly indexed: number;
  readonly unchanged: number;
  /** The number of chunks of indexed documents. */
  readonly chunks: number;
}

/** An index of documents in a database, for `retrieve`. */
export interface DocumentIndex extends Retriever {
  /**
   * Adds documents, replaces changed ones, and skips those that are stored with the same content, chunks and settings.
   * Emits the progress after each document. Each is replaced in one transaction: a crash or an error leaves the old or
   * the new one. Documents of an AsyncIterable or Iterable are taken as they are needed; those of an Observable are
   * buffered. Cold; unsubscribing stops after the transaction in progress.
   *
   * Errors with `config` if the index has another embedder, number of dimensions or language, or if the database has no
   * pgvector; with `invalidRequest` for a document that is not valid; as the embedder and the store do.
   */
  add$(documents: ObservableInput<IndexDocument>): Observable<IndexProgress>;
  /**
   * Removes documents by their sources or by how these begin, or the whole index with `'all'`, which forgets its embedder
   * and language as well. Emits the number of documents, and completes. Cold.
   */
  remove$(which: readonly string[] | { readonly prefix: string } | 'all'): Observable<number>;
  /** Emits the sources of all documents, or of those that begin with the prefix, in order, and completes. Cold. */
  sources$(prefix?: string): Observable<readonly string[]>;
}

/**
 * Opens an index of documents in a store. It searches for words, weighted as in BM25, and with an `embedder` also by
 * meaning: exact, over all vectors of the index. The rankings are merged by reciprocal rank fusion. Opens and creates
 * nothing before its first use. Several processes may use and change an index on a server at the same time.
 *
 * A query errors if the database fails or if the settings of the index differ. If the embedder fails, or pgvector is
 * missing, the query gets a report and the results of the word search.
 */
export const documentIndex = (
  store: DatabaseStore,
  options: DocumentIndexOptions = {},
): DocumentIndex => {
  const database = databases.get(store);
  if (database === undefined) {
    throw new MillraceError(
      'config',
      'documentIndex() takes a store that openSqlite() or openPostgres() has opened.',
    );
  }
  checkOptions('documentIndex()', options, rules);
  const { name = 'documents', embedder, threshold = 0.3, language } = options;
  checkId('An index of documents', name, 'config', 'a name');
  const { batchSize = 64, embedderMs = 30_000 } = options;
  const tables = tablesIn(database, name, language);
  const settings: Settings = { name, embedder, language };
  const limits = { embedderMs, scheduler: database.scheduler };
  return {
    add$: (documents) =>
      defer(() => from(openIndex(tables, settings))).pipe(
        switchMap((index) => {
          const writer = writerOf({ tables, settings, batchSize, limits }, index);
          const isFull = (group: readonly unknown[]): boolean =>
            group.length >= maxDocuments || countChunks(group) >= batchSize;
          return pullGroups$(documents, isFull, writer);
        }),
        scan(progressAfter, nothingYet),
      ),
    remove$: (which) =>
      withIndex$(tables, (index) => from(tables.remove(index, checkedRemoval(which))), 0),
    sources$: (prefix = '') =>
      withIndex$(tables, (index) => from(tables.sources(index, prefix)), []),
    retrieve$: (query) =>
      defer(() => {
        const { text, limit = 5, report } = query;
        checkOptions('retrieve$()', { text, limit, report }, queryRules, ['text']);
        if (text.trim() === '') return of([]);
        const search = (index: IndexRow): Observable<readonly RetrievedPassage[]> => {
          checkSettings(settings, index);
          const most = Math.max(depth, limit);
          const vector$ = queryVector$(index, embedder, query, limits);
          return forkJoin([
            byWords(tables, index, text, most, language !== undefined),
            vector$.pipe(
              concatMap((vector) =>
                vector === undefined ? of([]) : tables.byMeaning(index, vector, threshold, most),
              ),
            ),
          ]).pipe(map((rankings) => fused(rankings, limit)));
        };
        return withIndex$(tables, search, []);
      }),
  };
};

const rules: Readonly<Record<keyof DocumentIndexOptions, Rule>> = {
  name: isText,
  embedder: [
    (value) =>
      isRecord(value) &&
      typeof value['embed$'] === 'function' &&
      typeof value['id'] === 'string' &&
      value['id'] !== '',
    'an embedder with embed$() and an id that names its model',
  ],
  threshold: [(value) => typeof value === 'number' && value >= 0 && value <= 1, 'from 0 to 1'],
  language: [
    (value) => typeof value === 'string' && /^[a-z_]{1,60}$/.test(value),
    "a Postgres text search configuration, such as 'german'",
  ],
  batchSize: wholeNumber(1),
  embedderMs: isDelay,
};

const queryRules: Readonly<Record<keyof RetrievalQuery, Rule>> = {
  text: isText,
  limit: wholeNumber(1),
  report: isFunction,
};

type Limits = Parameters<typeof vectors$>[2];

const tablesIn = (
  database: DatabaseOfStore,
  name: string,
  language: string | undefined,
): DocumentTables => {
  if ('sql' in database) return sqlDocumentTables(database.sql, name, language);
  if (language === undefined) return sqliteDocumentTables(database.sqlite, name);
  throw new MillraceError(
    'config',
    `documentIndex(): only Postgres stems words of a language. Omit 'language', or open the store with openPostgres().`,
  );
};

const withIndex$ = <T>(
  tables: DocumentTables,
  work: (index: IndexRow) => Observable<T>,
  otherwise: T,
): Observable<T> =>
  defer(() => from(tables.find())).pipe(
    switchMap((index) => (index === undefined ? of(otherwise) : work(index))),
  );

const checkedRemoval = (which: Removal): Removal => {
  if (which === 'all') return which;
  if (Array.isArray(which) && which.every((source) => typeof source === 'string')) return which;
  // An empty prefix would remove everything.
  if (isRecord(which) && typeof which.prefix === 'string' && which.prefix !== '') return which;
  throw new MillraceError('config', "remove$() takes a list of sources, { prefix } or 'all'.");
};

// ---------------------------------------------------------------- adding

/** Documents that are looked up together. */
const maxDocuments = 32;

const countChunks = (documents: readonly unknown[]): number =>
  documents.reduce<number>((count, document) => {
    const chunks = isRecord(document) ? document['chunks'] : undefined;
    return count + (Array.isArray(chunks) ? chunks.length : 0);
  }, 0);

interface Writing {
  readonly tables: DocumentTables;
  readonly settings: Settings;
  readonly batchSize: number;
  readonly limits: Limits;
}

type Outcome = Pick<IndexProgress, 'source' | 'status' | 'chunks'>;

/** Stores groups of documents in one index: looks them up, embeds what has changed, and writes one after the other. */
const writerOf = (
  { tables, settings, batchSize, limits }: Writing,
  index: IndexRow,
): ((group: readonly IndexDocument[]) => Observable<Outcome>) => {
  const { name, embedder, language } = settings;
  let { dimensions } = index;
  const confirmDimensions = async (vectors: readonly StoredVector[]): Promise<void> => {
    const [first] = vectors;
    if (embedder === undefined || first === undefined || first.dimensions === dimensions) return;
    const recorded = await tables.setEmbedder(index, embedder.id, first.dimensions);
    checkSettings(settings, recorded);
    dimensions = recorded.dimensions;
    if (dimensions === first.dimensions) return;
    const found = `vectors of ${String(dimensions)} dimensions`;
    throw differs(name, found, `of ${first.dimensions}, as the embedder '${embedder.id}' returns`);
  };
  const embedded$ = (texts: readonly string[]): Observable<readonly StoredVector[]> =>
    embedder === undefined
      ? of([])
      : from(texts).pipe(
          bufferCount(batchSize),
          concatMap((batch) => vectors$(embedder, batch, limits)),
          concatMap((vectors) => from(confirmDimensions(vectors)).pipe(map(() => vectors))),
          reduce<readonly StoredVector[], StoredVector[]>((all, some) => [...all, ...some], []),
        );
  return (group) =>
    defer(() => {
      const rows = group.map((document) => documentRow(document, [embedder?.id, language]));
      const keys = rows.map(({ key }) => key);
      return from(tables.hashes(index, keys)).pipe(
        switchMap((hashes) => {
          const isNew = ({ key, hash }: DocumentRow): boolean => hashes.get(key) !== hash;
          const texts = rows.filter(isNew).flatMap(({ chunks }) => chunks.map(embeddedText));
          return embedded$(texts).pipe(
            concatMap((vectors) => {
              let taken = 0;
              return from(rows).pipe(
                concatMap((row) => {
                  if (!isNew(row)) return of(outcome(row, false));
                  const own = vectors.slice(taken, (taken += row.chunks.length));
                  const written = tables.write(index, row, embedder && own);
                  return from(written).pipe(map((isWritten) => outcome(row, isWritten)));
                }),
              );
            }),
          );
        }),
      );
    });
};

const outcome = ({ source, chunks }: DocumentRow, isWritten: boolean): Outcome => ({
  source,
  status: isWritten ? 'indexed' : 'unchanged',
  chunks: isWritten ? chunks.length : 0,
});

const nothingYet: IndexProgress = {
  source: '',
  status: 'unchanged',
  indexed: 0,
  unchanged: 0,
  chunks: 0,
};

const progressAfter = (before: IndexProgress, { source, status, chunks }: Outcome) => ({
  source,
  status,
  indexed: before.indexed + (status === 'indexed' ? 1 : 0),
  unchanged: before.unchanged + (status === 'unchanged' ? 1 : 0),
  chunks: before.chunks + chunks,
});

// ---------------------------------------------------------------- searching

/** Results per ranking to merge. Later ones are hardly similar, but would add to the sum. */
const depth = 50;

const byWords = (
  tables: DocumentTables,
  index: IndexRow,
  text: string,
  limit: number,
  hasLanguage: boolean,
): ObservableInput<readonly Row[]> => {
  const terms = termsOfRequest(text);
  return terms.length === 0 && !hasLanguage
    ? of([])
    : tables.byWords(index, { terms, text: endsOf(text), limit });
};

/** Emits undefined if there is nothing to compare with, or if the embedder fails, which is reported. */
const queryVector$ = (
  index: IndexRow,
  embedder: IndexEmbedder | undefined,
  { text, report }: RetrievalQuery,
  limits: Limits,
): Observable<StoredVector | undefined> => {
  if (embedder === undefined || index.dimensions === undefined) return of(undefined);
  const onlyWords = (why: string): Observable<undefined> => {
    report?.(`Only words were searched: ${why}`);
    return of(undefined);
  };
  if (!index.hasVectors) return onlyWords('the database has no pgvector extension.');
  return vectors$(embedder, [endsOf(text)], limits).pipe(
    map(([vector]) => {
      if (vector?.dimensions === index.dimensions) return vector;
      const length = String(vector?.dimensions);
      throw new Error(`the embedder '${embedder.id}' returned ${length} dimensions.`);
    }),
    catchError((error: unknown) => onlyWords(messageOf(error))),
  );
};

const fused = (
  rankings: readonly (readonly Row[])[],
  limit: number,
): readonly RetrievedPassage[] => {
  const keyOf = (row: Row): string => `${numberIn(row, 'document')}/${numberIn(row, 'position')}`;
  const rows = new Map(rankings.flat().map((row) => [keyOf(row), row]));
  return fuseRankings(rankings.map((ranking) => ranking.map(keyOf)))
    .slice(0, limit)
    .flatMap(({ item, score }) => {
      const row = rows.get(item);
      return row === undefined ? [] : [passageOf(row, score)];
    });
};
