import { randomUUID } from 'node:crypto';
import type { Embedder } from '@millrace/core';
import {
  checkOptions,
  checkScope,
  endsOf,
  fuseRankings,
  having,
  numberFrom,
  type Rule,
  termsOfRequest,
} from '@millrace/core/adapter';
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
import { anyOf, entryOf, essenceOf, wordsOf } from './rows-of-memories.js';
import type { LazySql, Row, Sql } from './sql.js';
import { numberIn, toSqlText } from './text.js';

/** What a long-term memory in a database is told. */
export interface StoredMemoryOptions {
  /** Finds entries by their meaning, too; the same one as long as the store lives. Default: they are found by their words alone. */
  readonly embedder?: Embedder;
  /** The least cosine of the angle between query and entry that counts as alike in meaning, from 0 to 1. Default: 0.3. */
  readonly threshold?: number;
  /**
   * How Postgres stems words, such as `german`: one of its text search configurations. Default: none; words are found in the forms of English that
   * the memory in a process knows, too.
   */
  readonly language?: string;
}

/** What options of a long-term memory may be. */
export const isMemoryOptions: Rule = [
  (value) => {
    checkOptions("'longTermMemory'", value, rules);
    return true;
  },
  'options of a long-term memory',
];

const rules: Readonly<Record<keyof StoredMemoryOptions, Rule>> = {
  embedder: having('embed$', 'what makes vectors of texts by embed$()'),
  threshold: numberFrom(0),
  language: [
    (value) => typeof value === 'string' && /^[a-z_]{1,60}$/.test(value),
    "a text search configuration of Postgres, such as 'german'",
  ],
};

/** Places of a ranking that count. */
const depth = 50;

/** Entries whose vectors are made in one recall, and at once. */
const mostNewVectors = 256;
const batch = 64;

/** Remembers users in a database. */
export const sqlLongTermMemory = (
  lazy: LazySql,
  scheduler: SchedulerLike,
  { embedder, threshold = 0.3, language }: StoredMemoryOptions,
): LongTermMemory => {
  const told = { isLacking: false };

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
      if (!told.isLacking) {
        report?.('Only words are looked for, as the database lacks the extension pgvector.');
      }
      told.isLacking = true;
      return [];
    }
    const statements = memoryStatements(sql.schema);
    try {
      const [asked] = await vectorsOf(embedder, [endsOf(text)]);
      const missing = await sql.query(statements.withoutVector, [...seen, mostNewVectors]);
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
      return await sql.query(statements.byMeaning, [...seen, asked, threshold, most]);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      report?.(`Only words were looked for, as the search by meaning failed: ${why}`);
      return [];
    }
  };

  const recall = async (
    scope: MemoryScope,
    asked: MemoryQuery,
  ): Promise<readonly RecalledMemory[]> => {
    const sql = await lazy.open();
    const { newest, byWords } = memoryStatements(sql.schema);
    const { text, limit = 5 } = asked;
    const seen = [storedName(scope.userId), sessionsIn(scope)];
    if (text.trim() === '') return (await sql.query(newest, [...seen, limit])).map(entryOf);
    const most = Math.max(depth, limit);
    const alike = await byMeaning(sql, seen, asked, most);
    const words = anyOf(termsOfRequest(text));
    const holding = await sql.query(byWords, [
      ...seen,
      words,
      toSqlText(endsOf(text)),
      language ?? null,
      most,
    ]);
    const rows = new Map([...alike, ...holding].map((row) => [numberIn(row, 'place'), row]));
    const places = (some: readonly Row[]): readonly number[] =>
      some.map((row) => numberIn(row, 'place'));
    return fuseRankings([places(holding), places(alike)])
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
  <Asked, Found>(owner: string, work: (scope: MemoryScope, asked: Asked) => Promise<Found>) =>
  (scope: MemoryScope, asked: Asked): Observable<Found> =>
    defer(() => {
      checkScope(owner, scope);
      return from(work(scope, asked));
    });

/** Entries of a user are of no session; the name of a session is never empty. */
const sessionKeyOf = ({ sessionId }: MemoryScope): string =>
  sessionId === undefined ? '' : storedName(sessionId);

const sessionsIn = (scope: MemoryScope): readonly string[] => [
  ...new Set(['', sessionKeyOf(scope)]),
];

/** Vectors as Postgres reads them. */
const vectorsOf = async (
  embedder: Embedder,
  texts: readonly string[],
): Promise<readonly string[]> => {
  const vectors = await lastValueFrom(embedder.embed$(texts));
  if (vectors.length !== texts.length || !vectors.flat().every(Number.isFinite)) {
    throw new TypeError('the embedder gave other vectors than one of numbers for each text');
  }
  return vectors.map((vector) => JSON.stringify(vector));
};
