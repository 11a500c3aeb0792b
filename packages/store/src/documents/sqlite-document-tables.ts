import { toSqlText } from '../sql/text.js';
import type { SqliteEngine } from '../sqlite/engine.js';
import { storedName } from '../stored-name.js';
import { type DocumentTables, embedderIn, indexRemoved, settingsIn } from './document-tables.js';
import { numberIn } from '../sql/text.js';
import type { IndexRow } from './document-tables.js';
import type { Row } from '../sql/sql.js';

/** The documents in a SQLite database. Compares a query with every vector of the index. */
export const sqliteDocumentTables = (engine: SqliteEngine, name: string): DocumentTables => {
  const key = storedName(name);
  const indexOf = (row: Row): IndexRow => ({
    place: numberIn(row, 'place'),
    hasVectors: true,
    ...settingsIn(row),
  });
  return {
    find: async () => {
      const row = await engine.run('findIndex', key);
      return row && indexOf(row);
    },
    make: async () => indexOf(await engine.run('makeIndex', key, toSqlText(name))),
    setEmbedder: async (index, embedder, dimensions) => {
      const values = [toSqlText(embedder), dimensions ?? null] as const;
      const row = await engine.run('setIndexEmbedder', index.place, ...values);
      if (row === undefined) throw indexRemoved(name);
      return { ...index, ...embedderIn(row) };
    },
    hashes: async ({ place }, keys) => new Map(await engine.run('documentHashes', place, keys)),
    write: async ({ place }, document, vectors) => {
      const values = vectors?.map((vector) => vector.values);
      const isWritten = await engine.run('writeDocument', place, document, values);
      if (isWritten === undefined) throw indexRemoved(name);
      return isWritten;
    },
    byWords: ({ place }, { terms, limit }) => engine.run('chunksByWords', place, terms, limit),
    byMeaning: ({ place }, { values }, threshold, limit) =>
      engine.run('chunksByMeaning', place, values, threshold, limit),
    sources: ({ place }, prefix) => engine.run('documentSources', place, prefix),
    remove: ({ place }, which) => engine.run('removeDocuments', place, which),
  };
};
