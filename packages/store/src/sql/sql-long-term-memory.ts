import type { Embedder } from '@millrace/core';
import type { LongTermMemory } from '@millrace/core/long-term-memory';
import { checkOptions, having, numberFrom, type Rule } from '@millrace/core/values';
import type { SchedulerLike } from 'rxjs';
import { anyOf } from './memory-rows.js';
import { memoryStatements } from './memory-statements.js';
import type { MemoryTable } from './memory-table.js';
import { abortedBy, type LazySql, type Row, type Sql } from './sql.js';
import { tableLongTermMemory } from './table-long-term-memory.js';

/** Options of the long-term memory of a store. */
export interface StoredMemoryOptions {
  /** Enables semantic search. Use the same one for the life of a store. Default: none, entries are found by keyword. */
  readonly embedder?: Embedder;
  /** Minimum cosine similarity of query and entry in semantic search, from 0 to 1. Default: 0.3. */
  readonly threshold?: number;
  /**
   * The Postgres text search configuration that stems words, such as `german`. Default: none, words are found in their
   * English forms, as in the in-process memory.
   */
  readonly language?: string;
}

export const isMemoryOptions: Rule = [
  (value) => {
    checkOptions("'longTermMemory'", value, memoryRules);
    return true;
  },
  'options of a long-term memory',
];

const memoryRules: Readonly<Record<keyof StoredMemoryOptions, Rule>> = {
  embedder: having('embed$', 'an embedder with embed$()'),
  threshold: numberFrom(0),
  language: [
    (value) => typeof value === 'string' && /^[a-z_]{1,60}$/.test(value),
    "a Postgres text search configuration, such as 'german'",
  ],
};

/** The long-term memory in a database that speaks the SQL of Postgres. */
export const sqlLongTermMemory = (
  lazy: LazySql,
  scheduler: SchedulerLike,
  { language, ...options }: StoredMemoryOptions,
): LongTermMemory =>
  tableLongTermMemory(
    async (signal) => memoryTable(abortedBy(await lazy.open(signal), signal), language),
    scheduler,
    options,
  );

const memoryTable = (sql: Sql, language: string | undefined): MemoryTable => {
  const { query, schema, hasVectors } = sql;
  const statements = memoryStatements(schema);
  return {
    hasVectors,
    record: (memories) =>
      sql.transaction(async (query) => {
        const rows: Row[] = [];
        for (const memory of memories) {
          const { userKey, sessionKey, userId, sessionId, idKey, id, essence, text } = memory;
          const { kind, createdAt, metadata, words } = memory;
          const own = [userKey, sessionKey];
          const about = [userId, sessionId, idKey, id, essence, text, kind, createdAt, metadata];
          const values = [...own, ...about, words, language ?? null];
          const [added] = await query(statements.add, values);
          if (added !== undefined) rows.push(added);
          else rows.push(...(await query(statements.known, [...own, idKey, essence])));
        }
        return rows;
      }),
    newest: ({ userKey, sessionKeys }, limit) =>
      query(statements.newest, [userKey, sessionKeys, limit]),
    byWords: ({ userKey, sessionKeys }, { words, text }, limit) =>
      query(statements.byWords, [
        userKey,
        sessionKeys,
        anyOf(words),
        text,
        language ?? null,
        limit,
      ]),
    byMeaning: ({ userKey, sessionKeys }, vector, threshold, limit) =>
      query(statements.byMeaning, [userKey, sessionKeys, JSON.stringify(vector), threshold, limit]),
    withoutVector: ({ userKey, sessionKeys }, limit) =>
      query(statements.withoutVector, [userKey, sessionKeys, limit]),
    addVectors: (places, vectors) =>
      query(statements.addVectors, [places, vectors.map((vector) => JSON.stringify(vector))]),
    // Not a single statement: repeated, it would count nothing.
    forget: (...which) =>
      sql.transaction(async (query) => (await query(statements.forget, which)).length),
  };
};
