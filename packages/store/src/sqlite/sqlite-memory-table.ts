import type { MemoryTable } from '../sql/memory-table.js';
import type { SqliteEngine } from './engine.js';

/** The long-term memory in a SQLite database. Compares a query with every vector of a user. */
export const sqliteMemoryTable = (engine: SqliteEngine): MemoryTable => ({
  hasVectors: true,
  record: (memories) => engine.run('recordMemories', memories),
  newest: (seen, limit) => engine.run('newestMemories', seen, limit),
  byWords: (seen, { words }, limit) => engine.run('memoriesByWords', seen, words, limit),
  byMeaning: (seen, vector, threshold, limit) =>
    engine.run('memoriesByMeaning', seen, vector, threshold, limit),
  withoutVector: (seen, limit) => engine.run('memoriesWithoutVector', seen, limit),
  addVectors: (places, vectors) => engine.run('addMemoryVectors', places, vectors),
  forget: (userKey, sessionKeys, idKeys) =>
    engine.run('forgetMemories', userKey, sessionKeys, idKeys),
});
