import { type CallStoreOptions, createCallStore } from 'millrace/journal';
import { concat, defer, from, ignoreElements, type SchedulerLike } from 'rxjs';
import { createClosing } from '../closing.js';
import { databases } from '../databases.js';
import type { DatabaseStore } from '../store.js';
import { storedName } from '../stored-name.js';
import { abortable$, type LazySql, abortedBy, type Row, type Sql } from './sql.js';
import type { CallLeaseOptions } from './call-leases.js';
import { postgresCallTable, sqlCalls } from './sql-calls.js';
import type { StoredMemoryOptions } from './memory-options.js';
import { sqlSessions } from './sql-sessions.js';
import type { LongTermMemory } from 'millrace/long-term-memory';
import { anyOf } from './memory-rows.js';
import { memoryStatements } from './memory-statements.js';
import type { MemoryTable } from './memory-table.js';
import { tableLongTermMemory } from './table-long-term-memory.js';
import type { StoredMemoryFactory } from '../memory/stored-memory.js';
import { conversationStatements } from './conversation-statements.js';
import { conversationWork, type ConversationWork } from './conversation-work.js';
import { tableMemory } from './table-memory.js';
import { runWork, type Work } from './work.js';

export interface DatabaseStoreOptions
  extends CallLeaseOptions, Omit<CallStoreOptions, 'scheduler'> {
  readonly longTermMemory: StoredMemoryOptions;
}

export const databaseStore = (
  sql: LazySql,
  { leaseMs, scheduler, longTermMemory, ...log }: DatabaseStoreOptions,
): DatabaseStore => {
  const closing = createClosing();
  const calls = closing.calls(sqlCalls(sql, { leaseMs, scheduler }));
  const store: DatabaseStore = {
    calls: createCallStore(calls, { scheduler, ...log }),
    memory: closing.memory(sqlMemory(sql)),
    sessions: closing.sessions(sqlSessions(sql)),
    longTermMemory: sqlLongTermMemory(sql, scheduler, longTermMemory),
    release$: (callIds) =>
      closing
        .whileOpen$(() => abortable$((signal) => release(sql, callIds, signal)))
        .pipe(ignoreElements()),
    // Release all leases before closing the connections.
    close$: () =>
      concat(
        defer(() => {
          sql.stop?.();
          return closing.close$();
        }),
        defer(() => from(sql.close())).pipe(ignoreElements()),
      ),
  };
  databases.set(store, { sql, scheduler });
  return store;
};

const release = async (
  sql: LazySql,
  callIds: readonly string[],
  signal: AbortSignal,
): Promise<void> => {
  await postgresCallTable(await sql.open(signal)).releaseAll(callIds.map(storedName), signal);
};

/** The long-term memory in a database that speaks the SQL of Postgres. */
const sqlLongTermMemory = (
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

/** Stores conversations in a database that speaks the SQL of Postgres. */
const sqlMemory = (lazy: LazySql): StoredMemoryFactory =>
  tableMemory((key, sessionId, signal) => {
    const workIn = (schema: string): ConversationWork =>
      conversationWork(conversationStatements(schema), key, sessionId);
    const read = async <T>(work: (on: ConversationWork) => Work<T>): Promise<T> => {
      const { query, schema } = abortedBy(await lazy.open(signal), signal);
      return runWork(query, work(workIn(schema)));
    };
    const write = async <T>(work: (on: ConversationWork) => Work<T>): Promise<T> => {
      const sql = abortedBy(await lazy.open(signal), signal);
      return sql.transaction((query) => runWork(query, work(workIn(sql.schema))));
    };
    return {
      load: (at) => read((on) => on.load(at)),
      last: (at) => read((on) => on.last(at)),
      append: (messages, options) => write((on) => on.append(messages, options)),
      branches: (at) => read((on) => on.branches(at)),
      moveHead: (to) => write((on) => on.moveHead(to)),
      remove: (at) => write((on) => on.remove(at)),
      all: () => read((on) => on.all()),
      replace: (entries, head) => write((on) => on.replace(entries, head)),
    };
  });
