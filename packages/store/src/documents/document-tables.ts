import { MillraceError } from '@millrace/core';
import { makeTables } from '../sql/make-tables.js';
import type { LazySql, Query, Row, Sql } from '../sql/sql.js';
import { numberIn, textIn, toSqlText } from '../sql/text.js';
import { storedName } from '../stored-name.js';
import { chunkColumns, type DocumentRow } from './document-rows.js';
import {
  documentStatements,
  documentTableStatements,
  vectorTableStatements,
} from './document-statements.js';
import type { StoredVector } from './embed-texts.js';

/** An index in the database. `embedder` and `dimensions` are known from its first vectors on. */
export interface IndexRow {
  readonly sql: Sql;
  readonly place: number;
  readonly language: string | undefined;
  readonly embedder: string | undefined;
  readonly dimensions: number | undefined;
}

/** How a search for words is made. */
export interface WordSearch {
  readonly terms: readonly string[];
  readonly text: string;
  readonly limit: number;
}

/** The rows of one index of documents. Each function rejects with a `MillraceError`. */
export interface DocumentTables {
  /** Undefined if nothing was ever added. */
  find(): Promise<IndexRow | undefined>;
  make(): Promise<IndexRow>;
  /** Records the embedder unless another one has added vectors, and returns the index with that which is recorded. */
  setEmbedder(index: IndexRow, embedder: string, dimensions?: number): Promise<IndexRow>;
  hashes(index: IndexRow, keys: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Replaces a document in one transaction. Returns false if another process has stored the same content meanwhile. */
  write(
    index: IndexRow,
    document: DocumentRow,
    vectors: readonly StoredVector[] | undefined,
  ): Promise<boolean>;
  byWords(index: IndexRow, search: WordSearch): Promise<readonly Row[]>;
  byMeaning(
    index: IndexRow,
    vector: StoredVector,
    threshold: number,
    limit: number,
  ): Promise<readonly Row[]>;
  sources(index: IndexRow, prefix: string): Promise<readonly string[]>;
  remove(index: IndexRow, which: Removal): Promise<number>;
}

/** Documents by their sources or by how these begin, or the whole index, with its embedder. */
export type Removal = readonly string[] | { readonly prefix: string } | 'all';

/** Chunks with the most and rarest words of a query, whose ranks are computed: that reads all of their words. */
const candidates = 300;

/** Chunks per statement. */
const batch = 500;

export const documentTables = (
  lazy: LazySql,
  name: string,
  language: string | undefined,
): DocumentTables => {
  const key = storedName(name);
  let made: Promise<unknown> | undefined;
  const open = async (): Promise<Sql> => {
    const sql = await lazy.open();
    // The next caller retries a failed attempt.
    await (made ??= createTables(sql).catch((error: unknown) => {
      made = undefined;
      throw error;
    }));
    return sql;
  };
  const find = async (): Promise<IndexRow | undefined> => {
    const sql = await open();
    const [row] = await sql.query(documentStatements(sql.schema).index, [key]);
    return row === undefined ? undefined : indexRow(sql, row);
  };
  const make = async (): Promise<IndexRow> => {
    const sql = await open();
    const { makeIndex } = documentStatements(sql.schema);
    await sql.query(makeIndex, [key, toSqlText(name), language ?? null]);
    const made = await find();
    if (made === undefined) throw removed(name);
    return made;
  };
  return {
    find,
    make,
    setEmbedder: async (index, embedder, dimensions) => {
      const { sql, place } = index;
      const { setEmbedder } = documentStatements(sql.schema);
      const values = [place, toSqlText(embedder), dimensions ?? null];
      const [row] = await sql.query(setEmbedder, values);
      if (row === undefined) throw removed(name);
      return { ...index, ...embedderIn(row) };
    },
    hashes: async ({ sql, place }, keys) => {
      const rows = await sql.query(documentStatements(sql.schema).hashes, [place, keys]);
      return new Map(rows.map((row) => [textIn(row, 'key'), textIn(row, 'hash')]));
    },
    write: ({ sql, place }, document, vectors) =>
      sql.transaction(async (query) => {
        const { lock, clear, finish } = documentStatements(sql.schema);
        const values = [place, document.key, toSqlText(document.source)];
        const [row] = await query(lock, values);
        if (row === undefined) throw removed(name);
        if (textIn(row, 'hash') === document.hash) return false;
        const at = numberIn(row, 'place');
        await query(clear, [at]);
        await addChunks(query, { schema: sql.schema, place, at, document, vectors, language });
        await query(finish, [at, document.hash]);
        return true;
      }),
    byWords: ({ sql, place }, { terms, text, limit }) =>
      sql.query(documentStatements(sql.schema).byWords, [
        place,
        terms,
        language ?? null,
        toSqlText(text),
        limit,
        Math.max(candidates, limit),
      ]),
    byMeaning: ({ sql, place }, { text }, threshold, limit) =>
      sql.query(documentStatements(sql.schema).byMeaning, [place, text, threshold, limit]),
    sources: async ({ sql, place }, prefix) => {
      const { sources } = documentStatements(sql.schema);
      const rows = await sql.query(sources, [place, toSqlText(prefix)]);
      return rows.map((row) => textIn(row, 'source'));
    },
    remove: ({ sql, place }, which) =>
      sql.transaction(async (query) => {
        const { remove, removePrefix, removeIndex } = documentStatements(sql.schema);
        const isPrefix = which === 'all' || 'prefix' in which;
        const rows = isPrefix
          ? await query(removePrefix, [place, toSqlText(which === 'all' ? '' : which.prefix)])
          : await query(remove, [place, which.map((source) => storedName(source))]);
        if (which === 'all') await query(removeIndex, [place]);
        return rows.length;
      }),
  };
};

const createTables = async (sql: Sql): Promise<void> => {
  const { schema, hasVectors } = sql;
  await makeTables(sql, documentTableStatements(schema), 'document_versions');
  if (hasVectors) await makeTables(sql, vectorTableStatements(schema), 'vector_versions');
};

interface Addition {
  readonly schema: string;
  readonly place: number;
  /** The place of the document. */
  readonly at: number;
  readonly document: DocumentRow;
  readonly vectors: readonly StoredVector[] | undefined;
  readonly language: string | undefined;
}

const addChunks = async (
  query: Query,
  { schema, place, at, document: { chunks }, vectors, language }: Addition,
): Promise<void> => {
  const { addChunks, addVectors } = documentStatements(schema);
  for (let first = 0; first < chunks.length; first += batch) {
    const some = chunks.slice(first, first + batch);
    const positions = some.map((_, index) => first + index);
    await query(addChunks, [place, at, language ?? null, positions, ...chunkColumns(some)]);
    if (vectors === undefined) continue;
    const texts = vectors.slice(first, first + batch).map(({ text }) => text);
    await query(addVectors, [place, at, positions, texts]);
  }
};

const indexRow = (sql: Sql, row: Row): IndexRow => ({
  sql,
  place: numberIn(row, 'place'),
  language: optionalText(row, 'language'),
  ...embedderIn(row),
});

const embedderIn = (row: Row): Pick<IndexRow, 'embedder' | 'dimensions'> => ({
  embedder: optionalText(row, 'embedder'),
  dimensions: row['dimensions'] === null ? undefined : numberIn(row, 'dimensions'),
});

const optionalText = (row: Row, column: string): string | undefined =>
  row[column] === null ? undefined : textIn(row, column);

const removed = (name: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The index '${name.slice(0, 100)}' was removed while documents were added to it. Add them again.`,
    { retryable: true },
  );
