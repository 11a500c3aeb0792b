import { randomUUID } from 'node:crypto';
import type { Embedder } from '@millrace/core';
import { checkOptions, having, numberFrom, type Rule } from '@millrace/core/values';
import { checkScope } from '@millrace/core/long-term-memory';
import { endsOf, fuseRankings, termsOfRequest } from '@millrace/core/search';
import type {
  LongTermMemory,
  MemoryEntry,
  MemoryQuery,
  MemoryScope,
  NewMemory,
  RecalledMemory,
} from '@millrace/core/long-term-memory';
import { defer, from, lastValueFrom, type Observable, type SchedulerLike } from 'rxjs';
import { storedName } from '../stored-name.js';
import { memoryStatements } from './memory-statements.js';
import { anyOf, entryOf, essenceOf, wordsOf } from './memory-rows.js';
import type { LazySql, Row, Sql } from './sql.js';
import { numberIn, toSqlText } from './text.js';

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
    checkOptions("'longTermMemory'", value, rules);
    return true;
  },
  'options of a long-term memory',
];

const rules: Readonly<Record<keyof StoredMemoryOptions, Rule>> = {
  embedder: having('embed$', 'an embedder with embed$()'),
  threshold: numberFrom(0),
  language: [
    (value) => typeof value === 'string' && /^[a-z_]{1,60}$/.test(value),
    "a Postgres text search configuration, such as 'german'",
  ],
};

/** Entries of each ranking that are merged. */
const rankingDepth = 50;

/** Maximum number of entries that one recall embeds, and per request to the embedder. */
const maxNewVectors = 256;
const batch = 64;

export const sqlLongTermMemory = (
  lazy: LazySql,
  scheduler: SchedulerLike,
  { embedder, threshold = 0.3, language }: StoredMemoryOptions,
): LongTermMemory => {
  const state = { hasWarned: false };

  const record = async (
    scope: MemoryScope,
    memories: readonly NewMemory[],
  ): Promise<readonly MemoryEntry[]> => {
    const sql = await lazy.open();
    const { add, known } = memoryStatements(sql.schema);
    const { userId, sessionId } = scope;
    const keys = [storedName(userId), sessionKeyOf(scope)];
    return sql.transaction(async (query) => {
      const rows: Row[] = [];
      for (const memory of memories) {
        if (memory.text.trim() === '') continue;
        const { id = randomUUID(), text, kind = 'fact', metadata = {} } = memory;
        const { createdAt = scheduler.now() } = memory;
        const [added] = await query(add, [
          ...keys,
          toSqlText(userId),
          sessionId === undefined ? null : toSqlText(sessionId),
          storedName(id),
          toSqlText(id),
          essenceOf(text),
          toSqlText(text),
          toSqlText(kind),
          createdAt,
          toSqlText(JSON.stringify(metadata)),
          wordsOf(text),
          language ?? null,
        ]);
        if (added !== undefined) rows.push(added);
        else rows.push(...(await query(known, [...keys, storedName(id), essenceOf(text)])));
      }
      return rows.map(entryOf);
    });
  };

  const byMeaning = async (
    sql: Sql,
    seen: readonly unknown[],
    { text, report }: MemoryQuery,
    most: number,
  ): Promise<readonly Row[]> => {
    if (embedder === undefined) return [];
    if (!sql.hasVectors) {
      if (!state.hasWarned) {
        report?.('Memories are searched by keywords only: the database has no pgvector extension.');
      }
      state.hasWarned = true;
      return [];
    }
    const statements = memoryStatements(sql.schema);
    try {
      const [queryVector] = await vectorsOf(embedder, [endsOf(text)]);
      const missing = await sql.query(statements.withoutVector, [...seen, maxNewVectors]);
      for (let at = 0; at < missing.length; at += batch) {
        const some = missing.slice(at, at + batch);
        const vectors = await vectorsOf(
          embedder,
          some.map((row) => entryOf(row).text.slice(0, 8_000)),
        );
        await sql.query(statements.addVectors, [
          some.map((row) => numberIn(row, 'place')),
          vectors,
        ]);
      }
      return await sql.query(statements.byMeaning, [...seen, queryVector, threshold, most]);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      report?.(`Memories were searched by keywords only: semantic search failed: ${why}`);
      return [];
    }
  };

  const recall = async (
    scope: MemoryScope,
    memoryQuery: MemoryQuery,
  ): Promise<readonly RecalledMemory[]> => {
    const sql = await lazy.open();
    const { newest, byWords } = memoryStatements(sql.schema);
    const { text, limit = 5 } = memoryQuery;
    const seen = [storedName(scope.userId), sessionsIn(scope)];
    if (text.trim() === '') return (await sql.query(newest, [...seen, limit])).map(entryOf);
    const most = Math.max(rankingDepth, limit);
    const similar = await byMeaning(sql, seen, memoryQuery, most);
    const words = anyOf(termsOfRequest(text));
    const matching = await sql.query(byWords, [
      ...seen,
      words,
      toSqlText(endsOf(text)),
      language ?? null,
      most,
    ]);
    const rows = new Map([...similar, ...matching].map((row) => [numberIn(row, 'place'), row]));
    const places = (some: readonly Row[]): readonly number[] =>
      some.map((row) => numberIn(row, 'place'));
    return fuseRankings([places(matching), places(similar)])
      .slice(0, limit)
      .flatMap(({ item, score }) => {
        const row = rows.get(item);
        return row === undefined ? [] : [Object.freeze({ ...entryOf(row), score })];
      });
  };

  const forget = async (scope: MemoryScope, which: readonly string[] | 'all'): Promise<number> => {
    const { query, schema } = await lazy.open();
    const { userId, sessionId } = scope;
    const ofAll = sessionId === undefined ? null : [sessionKeyOf(scope)];
    const [sessions, ids] =
      which === 'all' ? [ofAll, null] : [sessionsIn(scope), which.map(storedName)];
    const { forget } = memoryStatements(schema);
    return (await query(forget, [storedName(userId), sessions, ids])).length;
  };

  return {
    record$: scoped('record$()', record),
    recall$: scoped('recall$()', recall),
    forget$: scoped('forget$()', forget),
  };
};

const scoped =
  <Input, Output>(owner: string, work: (scope: MemoryScope, input: Input) => Promise<Output>) =>
  (scope: MemoryScope, input: Input): Observable<Output> =>
    defer(() => {
      checkScope(owner, scope);
      return from(work(scope, input));
    });

/** Entries without a session have an empty key, which no session has. */
const sessionKeyOf = ({ sessionId }: MemoryScope): string =>
  sessionId === undefined ? '' : storedName(sessionId);

const sessionsIn = (scope: MemoryScope): readonly string[] => [
  ...new Set(['', sessionKeyOf(scope)]),
];

/** Embeds texts, and formats the vectors for pgvector. */
const vectorsOf = async (
  embedder: Embedder,
  texts: readonly string[],
): Promise<readonly string[]> => {
  const vectors = await lastValueFrom(embedder.embed$(texts));
  if (vectors.length !== texts.length || !vectors.flat().every(Number.isFinite)) {
    throw new TypeError('the embedder must return one vector of finite numbers for each text');
  }
  return vectors.map((vector) => JSON.stringify(vector));
};
