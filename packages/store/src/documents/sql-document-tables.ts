import { makeTables } from '../sql/make-tables.js';
import type { LazySql, Query, Sql } from '../sql/sql.js';
import { numberIn, textIn, toSqlText } from '../sql/text.js';
import { storedName } from '../stored-name.js';
import { type ChunkRow, type DocumentRow, wordPlaces } from './document-rows.js';
import {
  documentStatements,
  documentTableStatements,
  vectorTableStatements,
} from './sql-document-statements.js';
import {
  type DocumentTables,
  type IndexRow,
  candidates,
  indexRemoved,
  settingsIn,
  embedderIn,
} from './document-tables.js';
import type { StoredVector } from './embed-texts.js';

/** Chunks per statement. */
const batch = 500;

/** The documents in a database that speaks the SQL of Postgres. */
export const sqlDocumentTables = (
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
    return row === undefined
      ? undefined
      : { place: numberIn(row, 'place'), hasVectors: sql.hasVectors, ...settingsIn(row) };
  };
  const make = async (): Promise<IndexRow> => {
    const sql = await open();
    const { makeIndex } = documentStatements(sql.schema);
    await sql.query(makeIndex, [key, toSqlText(name), language ?? null]);
    const made = await find();
    if (made === undefined) throw indexRemoved(name);
    return made;
  };
  return {
    find,
    make,
    setEmbedder: async (index, embedder, dimensions) => {
      const sql = await open();
      const { setEmbedder } = documentStatements(sql.schema);
      const values = [index.place, toSqlText(embedder), dimensions ?? null];
      const [row] = await sql.query(setEmbedder, values);
      if (row === undefined) throw indexRemoved(name);
      return { ...index, ...embedderIn(row) };
    },
    hashes: async ({ place }, keys) => {
      const sql = await open();
      const rows = await sql.query(documentStatements(sql.schema).hashes, [place, keys]);
      return new Map(rows.map((row) => [textIn(row, 'key'), textIn(row, 'hash')]));
    },
    write: async ({ place }, document, vectors) => {
      const sql = await open();
      return sql.transaction(async (query) => {
        const { lock, clear, finish } = documentStatements(sql.schema);
        const values = [place, document.key, toSqlText(document.source)];
        const [row] = await query(lock, values);
        if (row === undefined) throw indexRemoved(name);
        if (textIn(row, 'hash') === document.hash) return false;
        const at = numberIn(row, 'place');
        await query(clear, [at]);
        await addChunks(query, { schema: sql.schema, place, at, document, vectors, language });
        await query(finish, [at, document.hash]);
        return true;
      });
    },
    byWords: async ({ place }, { terms, text, limit }) => {
      const sql = await open();
      return sql.query(documentStatements(sql.schema).byWords, [
        place,
        terms,
        language ?? null,
        toSqlText(text),
        limit,
        Math.max(candidates, limit),
      ]);
    },
    byMeaning: async ({ place }, vector, threshold, limit) => {
      const { query, schema } = await open();
      return query(documentStatements(schema).byMeaning, [
        place,
        vectorText(vector),
        threshold,
        limit,
      ]);
    },
    sources: async ({ place }, prefix) => {
      const sql = await open();
      const { sources } = documentStatements(sql.schema);
      const rows = await sql.query(sources, [place, toSqlText(prefix)]);
      return rows.map((row) => textIn(row, 'source'));
    },
    remove: async ({ place }, which) => {
      const sql = await open();
      return sql.transaction(async (query) => {
        const { remove, removePrefix, removeIndex } = documentStatements(sql.schema);
        const isPrefix = which === 'all' || 'prefix' in which;
        const rows = isPrefix
          ? await query(removePrefix, [place, toSqlText(which === 'all' ? '' : which.prefix)])
          : await query(remove, [place, which.map((source) => storedName(source))]);
        if (which === 'all') await query(removeIndex, [place]);
        return rows.length;
      });
    },
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
    const texts = vectors.slice(first, first + batch).map(vectorText);
    await query(addVectors, [place, at, positions, texts]);
  }
};

/** A vector as pgvector reads it. */
const vectorText = ({ values }: StoredVector): string =>
  `[${values.map((value) => value.toFixed(7)).join(',')}]`;

/** The columns of chunks, for `unnest`. */
const chunkColumns = (chunks: readonly ChunkRow[]): readonly (readonly unknown[])[] => [
  chunks.map(({ source }) => toSqlText(source)),
  chunks.map(({ title }) => toSqlText(title)),
  chunks.map(({ text }) => toSqlText(text)),
  chunks.map(({ span }) => span.from),
  chunks.map(({ span }) => span.to),
  chunks.map(({ span }) => span.line),
  chunks.map(wordsOf),
];

/** A `tsvector` of the words in their English forms; those of the title count more. */
const wordsOf = (chunk: ChunkRow): string =>
  Array.from(wordPlaces(chunk), ([form, places]) => {
    const at = places.map(({ part, place }) => `${place}${part === 'title' ? 'B' : ''}`);
    return `'${form}':${at.join(',')}`;
  }).join(' ');
