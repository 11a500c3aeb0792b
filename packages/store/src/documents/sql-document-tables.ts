import { makeTables } from '../sql/make-tables.js';
import type { LazySql, Sql } from '../sql/sql.js';
import { numberIn, textIn, toSqlText } from '../sql/text.js';
import { sharedAttempt } from '../shared-attempt.js';
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
  type Removal,
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
  const made = sharedAttempt(async () => createTables(await lazy.open()));
  const open = async (): Promise<OpenTables> => {
    await made();
    const sql = await lazy.open();
    return { ...sql, ...documentStatements(sql.schema) };
  };
  const find = async (): Promise<IndexRow | undefined> => {
    const { query, index, hasVectors } = await open();
    const [row] = await query(index, [key]);
    return row && { place: numberIn(row, 'place'), hasVectors, ...settingsIn(row) };
  };
  return {
    find,
    make: async () => {
      const { query, makeIndex } = await open();
      await query(makeIndex, [key, toSqlText(name), language ?? null]);
      const row = await find();
      if (row === undefined) throw indexRemoved(name);
      return row;
    },
    setEmbedder: async (index, embedder, dimensions) => {
      const { query, setEmbedder } = await open();
      const values = [index.place, toSqlText(embedder), dimensions ?? null];
      const [row] = await query(setEmbedder, values);
      if (row === undefined) throw indexRemoved(name);
      return { ...index, ...embedderIn(row) };
    },
    hashes: async ({ place }, keys) => {
      const { query, hashes } = await open();
      const rows = await query(hashes, [place, keys]);
      return new Map(rows.map((row) => [textIn(row, 'key'), textIn(row, 'hash')]));
    },
    write: async ({ place }, document, vectors) =>
      write(await open(), { name, place, document, vectors, language }),
    byWords: async ({ place }, { terms, text, limit }) => {
      const { query, byWords } = await open();
      const most = Math.max(candidates, limit);
      return query(byWords, [place, terms, language ?? null, toSqlText(text), limit, most]);
    },
    byMeaning: async ({ place }, vector, threshold, limit) => {
      const { query, byMeaning } = await open();
      return query(byMeaning, [place, vectorText(vector), threshold, limit]);
    },
    sources: async ({ place }, prefix) => {
      const { query, sources } = await open();
      const rows = await query(sources, [place, toSqlText(prefix)]);
      return rows.map((row) => textIn(row, 'source'));
    },
    remove: async ({ place }, which) => remove(await open(), place, which),
  };
};

type OpenTables = Sql & ReturnType<typeof documentStatements>;

const createTables = async (sql: Sql): Promise<void> => {
  const { schema, hasVectors } = sql;
  await makeTables(sql, documentTableStatements(schema), 'document_versions');
  if (hasVectors) await makeTables(sql, vectorTableStatements(schema), 'vector_versions');
};

interface Writing {
  readonly name: string;
  readonly place: number;
  readonly document: DocumentRow;
  readonly vectors: readonly StoredVector[] | undefined;
  readonly language: string | undefined;
}

const write = (tables: OpenTables, writing: Writing): Promise<boolean> =>
  tables.transaction(async (query) => {
    const { name, place, document } = writing;
    const [row] = await query(tables.lock, [place, document.key, toSqlText(document.source)]);
    if (row === undefined) throw indexRemoved(name);
    if (textIn(row, 'hash') === document.hash) return false;
    const at = numberIn(row, 'place');
    await query(tables.clear, [at]);
    await addChunks({ ...tables, query }, at, writing);
    await query(tables.finish, [at, document.hash]);
    return true;
  });

const addChunks = async (
  {
    query,
    addChunks: insertChunks,
    addVectors,
  }: Pick<OpenTables, 'query' | 'addChunks' | 'addVectors'>,
  at: number,
  { place, document: { chunks }, vectors, language }: Writing,
): Promise<void> => {
  for (let first = 0; first < chunks.length; first += batch) {
    const some = chunks.slice(first, first + batch);
    const positions = some.map((_, index) => first + index);
    await query(insertChunks, [place, at, language ?? null, positions, ...chunkColumns(some)]);
    if (vectors === undefined) continue;
    const texts = vectors.slice(first, first + batch).map(vectorText);
    await query(addVectors, [place, at, positions, texts]);
  }
};

const remove = (tables: OpenTables, place: number, which: Removal): Promise<number> =>
  tables.transaction(async (query) => {
    const isPrefix = which === 'all' || 'prefix' in which;
    const rows = isPrefix
      ? await query(tables.removePrefix, [place, toSqlText(which === 'all' ? '' : which.prefix)])
      : await query(tables.remove, [place, which.map((source) => storedName(source))]);
    if (which === 'all') await query(tables.removeIndex, [place]);
    return rows.length;
  });

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
