import type { LongTermMemory } from 'millrace/long-term-memory';
import type { SchedulerLike } from 'rxjs';
import type { StoredMemoryOptions } from './memory-options.js';
import { anyOf } from './memory-rows.js';
import { memoryStatements } from './memory-statements.js';
import type { MemoryTable } from './memory-table.js';
import { abortedBy, type LazySql, type Row, type Sql } from './sql.js';
import { tableLongTermMemory } from './table-long-term-memory.js';

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
      sql.transaction(async (run) => {
        const rows: Row[] = [];
        for (const memory of memories) {
          const { userKey, sessionKey, userId, sessionId, idKey, id, essence, text } = memory;
          const { kind, createdAt, metadata, words } = memory;
          const own = [userKey, sessionKey];
          const about = [userId, sessionId, idKey, id, essence, text, kind, createdAt, metadata];
          const values = [...own, ...about, words, language ?? null];
          const [added] = await run(statements.add, values);
          if (added !== undefined) rows.push(added);
          else rows.push(...(await run(statements.known, [...own, idKey, essence])));
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
      sql.transaction(async (run) => (await run(statements.forget, which)).length),
  };
};
