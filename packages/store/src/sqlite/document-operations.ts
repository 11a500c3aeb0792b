import { type ChunkRow, type DocumentRow, wordPlaces } from '../documents/document-rows.js';
import { candidates, type Removal } from '../documents/document-tables.js';
import { numberIn, textIn, toSqlText } from '../sql/text.js';
import { storedName } from '../stored-name.js';
import type { Database } from './database.js';
import { read, write } from './operation.js';
import { type Occurrences, rankOf, weightOf } from './rank-words.js';
import type { SqlRow } from './sqlite-driver.js';
import type { TablesOfPart } from './tables.js';
import { packedVector, similarityTo } from './vectors.js';
import { token, tokensOf, wordTable } from './words.js';

export const documentTables: TablesOfPart = {
  part: 'documents',
  format: 1,
  statements: [
    `create table document_indexes (
      place integer primary key autoincrement,
      key text not null unique,
      name text not null,
      language text,
      embedder text,
      dimensions integer
    ) strict`,
    `create table documents (
      place integer primary key autoincrement,
      index_place integer not null references document_indexes on delete cascade,
      key text not null,
      source text not null,
      hash text not null,
      unique (index_place, key)
    ) strict`,
    `create table chunks (
      place integer primary key autoincrement,
      document integer not null references documents on delete cascade,
      position integer not null,
      index_place integer not null,
      source text not null,
      title text not null,
      text text not null,
      start integer not null,
      stop integer not null,
      line integer not null,
      -- The number of its words.
      length integer not null,
      unique (document, position)
    ) strict`,
    `create index chunks_by_index on chunks (index_place)`,
    ...wordTable('chunk_words', 'title', 'text'),
    `create virtual table chunk_words_counts using fts5vocab (chunk_words, row)`,
    `create table chunk_vectors (
      chunk integer primary key references chunks on delete cascade,
      index_place integer not null,
      vector blob not null
    ) strict`,
    `create index chunk_vectors_by_index on chunk_vectors (index_place)`,
    `create trigger chunk_removed after delete on chunks begin
      delete from chunk_words where rowid = old.place;
    end`,
  ],
};

const findIndex = (database: Database, key: string): SqlRow | undefined =>
  database.get(
    'select place, language, embedder, dimensions from document_indexes where key = ?',
    key,
  );

const makeIndex = (database: Database, key: string, name: string): SqlRow => {
  database.run(
    'insert into document_indexes (key, name) values (?, ?) on conflict do nothing',
    key,
    name,
  );
  return findIndex(database, key) ?? {};
};

/** Replaces a document. Returns false if it is stored already, and undefined if the index was removed. */
const writeDocument = (
  database: Database,
  index: number,
  { key, source, hash, chunks }: DocumentRow,
  vectors: readonly (readonly number[])[] | undefined,
): boolean | undefined => {
  const before = database.get(
    'select place, hash from documents where index_place = ? and key = ?',
    index,
    key,
  );
  if (before?.['hash'] === hash) return false;
  const [document] = database.all(
    `insert into documents (index_place, key, source, hash)
    select place, ?2, ?3, ?4 from document_indexes where place = ?1
    on conflict (index_place, key) do update set source = excluded.source, hash = excluded.hash
    returning place`,
    index,
    key,
    toSqlText(source),
    hash,
  );
  if (document === undefined) return undefined;
  const place = numberIn(document, 'place');
  database.run('delete from chunks where document = ?', place);
  chunks.forEach((chunk, position) =>
    addChunk(database, { index, document: place, position, vector: vectors?.[position] }, chunk),
  );
  return true;
};

interface NewChunk {
  readonly index: number;
  readonly document: number;
  readonly position: number;
  readonly vector: readonly number[] | undefined;
}

const addChunk = (
  database: Database,
  { index, document, position, vector }: NewChunk,
  chunk: ChunkRow,
): void => {
  const words = Array.from(wordPlaces(chunk), ([word, places]) => ({ word, places }));
  const { source, title, text, span } = chunk;
  const [added = {}] = database.all(
    `insert into chunks (document, position, index_place, source, title, text, start, stop, line, length)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning place`,
    ...[document, position, index, toSqlText(source), toSqlText(title), toSqlText(text)],
    ...[span.from, span.to, span.line, words.reduce((sum, { places }) => sum + places.length, 0)],
  );
  const place = numberIn(added, 'place');
  const tokensIn = (wanted: 'title' | 'text'): string =>
    words
      .flatMap(({ word, places }) =>
        places.filter(({ part }) => part === wanted).map(() => token(index, word)),
      )
      .join(' ');
  database.run(
    'insert into chunk_words (rowid, title, text) values (?, ?, ?)',
    place,
    tokensIn('title'),
    tokensIn('text'),
  );
  if (vector === undefined) return;
  database.run(
    'insert into chunk_vectors (chunk, index_place, vector) values (?, ?, ?)',
    place,
    index,
    packedVector(vector),
  );
};

/** The rarer a term is in the index, the more it counts, as in BM25. */
const byWords = (
  database: Database,
  index: number,
  terms: readonly string[],
  limit: number,
): readonly SqlRow[] => {
  const total = numberIn(
    database.get('select count(*) as total from chunks where index_place = ?', index) ?? {},
    'total',
  );
  const weights = database
    .all(
      `select term, doc as count from chunk_words_counts
      where term in (select value from json_each(?)) order by term`,
      tokensOf(index, terms),
    )
    .map((row) => [String(row['term']), weightOf(numberIn(row, 'count'), total)] as const);
  const best = database.all(
    `with weights (term, weight) as materialized (
      select value ->> 0, value ->> 1 from json_each(?1)
    )
    select chunk.place, chunk.document, chunk.position, chunk.length from (
      select doc, sum(weight) as weight
      from (select distinct term, doc from chunk_words_places where term in (select term from weights))
        cross join weights using (term)
      group by doc
    ) as hit cross join chunks as chunk on chunk.place = hit.doc
    order by hit.weight desc, chunk.document, chunk.position limit ?2`,
    JSON.stringify(weights),
    Math.max(candidates, limit),
  );
  const occurrences = occurrencesIn(database, weights, best);
  const scored = best.map((row) => {
    const found = occurrences.get(numberIn(row, 'place')) ?? new Map<string, Occurrences>();
    const length = numberIn(row, 'length');
    const score = weights.reduce((sum, [term, weight]) => {
      const times = found.get(term);
      return times === undefined ? sum : sum + weight * rankOf(times, length);
    }, 0);
    return { row, score };
  });
  return chunksAt(
    database,
    scored
      .sort((one, other) => other.score - one.score || inOrder(one.row, other.row))
      .slice(0, limit)
      .map(({ row }) => numberIn(row, 'place')),
  );
};

/** How often each term occurs in each of these chunks. */
const occurrencesIn = (
  database: Database,
  weights: readonly (readonly [term: string, weight: number])[],
  chunks: readonly SqlRow[],
): ReadonlyMap<number, ReadonlyMap<string, Occurrences>> => {
  const found = new Map<number, Map<string, Occurrences>>();
  const rows = database.all(
    `select doc, term, sum(col = 'title') as titles, count(*) as count from chunk_words_places
    where term in (select value ->> 0 from json_each(?1)) and doc in (select value from json_each(?2))
    group by doc, term`,
    JSON.stringify(weights),
    JSON.stringify(chunks.map((row) => numberIn(row, 'place'))),
  );
  for (const row of rows) {
    const place = numberIn(row, 'doc');
    const known = found.get(place) ?? new Map<string, Occurrences>();
    const titles = numberIn(row, 'titles');
    known.set(String(row['term']), { titles, texts: numberIn(row, 'count') - titles });
    found.set(place, known);
  }
  return found;
};

const inOrder = (one: SqlRow, other: SqlRow): number =>
  numberIn(one, 'document') - numberIn(other, 'document') ||
  numberIn(one, 'position') - numberIn(other, 'position');

/** Vectors that are compared before the best of them are chosen. */
const page = 2_000;

const byMeaning = (
  database: Database,
  index: number,
  vector: readonly number[],
  threshold: number,
  limit: number,
): readonly SqlRow[] => {
  const similarity = similarityTo(vector);
  interface Scored {
    readonly row: SqlRow;
    readonly score: number;
  }
  let best: readonly Scored[] = [];
  for (let after = 0; ;) {
    const rows = database.all(
      `select chunk.place, chunk.document, chunk.position, known.vector
      from chunk_vectors as known cross join chunks as chunk on chunk.place = known.chunk
      where known.index_place = ? and known.chunk > ? order by known.chunk limit ${page}`,
      index,
      after,
    );
    const last = rows.at(-1);
    if (last === undefined) break;
    after = numberIn(last, 'place');
    const similar = rows.flatMap(({ vector: stored, ...row }): readonly Scored[] => {
      const score = similarity(stored);
      return score >= threshold ? [{ row, score }] : [];
    });
    best = [...best, ...similar]
      .sort((one, other) => other.score - one.score || inOrder(one.row, other.row))
      .slice(0, limit);
  }
  return chunksAt(
    database,
    best.map(({ row }) => numberIn(row, 'place')),
  );
};

const chunksAt = (database: Database, places: readonly number[]): readonly SqlRow[] =>
  database.all(
    `select chunk.document, chunk.position, chunk.source, chunk.title, chunk.text, chunk.start,
      chunk.stop, chunk.line
    from json_each(?) as wanted cross join chunks as chunk on chunk.place = wanted.value
    order by wanted.key`,
    JSON.stringify(places),
  );

const beginning = 'substr(source, 1, length(?2)) = ?2';

const remove = (database: Database, index: number, which: Removal): number => {
  if (which !== 'all' && !('prefix' in which)) {
    return database.run(
      'delete from documents where index_place = ? and key in (select value from json_each(?))',
      index,
      JSON.stringify(which.map((source) => storedName(source))),
    );
  }
  const prefix = which === 'all' ? '' : which.prefix;
  const count = database.run(
    `delete from documents where index_place = ?1 and ${beginning}`,
    index,
    toSqlText(prefix),
  );
  if (which === 'all') database.run('delete from document_indexes where place = ?', index);
  return count;
};

/** The operations of `DocumentTables`. */
export const documentOperations = {
  findIndex: read(findIndex),
  makeIndex: write(makeIndex),
  /** The first embedder that adds vectors stays that of the index. */
  setIndexEmbedder: write(
    (database, index: number, embedder: string, dimensions: number | null): SqlRow | undefined =>
      database.all(
        `update document_indexes set embedder = iif(dimensions is null, ?2, embedder),
          dimensions = coalesce(dimensions, ?3)
        where place = ?1 returning embedder, dimensions`,
        index,
        embedder,
        dimensions,
      )[0],
  ),
  documentHashes: read((database, index: number, keys: readonly string[]) =>
    database
      .all(
        'select key, hash from documents where index_place = ? and key in (select value from json_each(?))',
        index,
        JSON.stringify(keys),
      )
      .map((row) => [textIn(row, 'key'), textIn(row, 'hash')] as const),
  ),
  writeDocument: write(writeDocument),
  chunksByWords: read(byWords),
  chunksByMeaning: read(byMeaning),
  documentSources: read((database, index: number, prefix: string) =>
    database
      .all(
        `select source from documents where index_place = ?1 and ${beginning} order by source`,
        index,
        toSqlText(prefix),
      )
      .map((row) => textIn(row, 'source')),
  ),
  removeDocuments: write(remove),
};
