import { randomUUID } from 'node:crypto';
import type { Embedder } from 'millrace';
import {
  checkScope,
  type LongTermMemory,
  type MemoryEntry,
  type MemoryQuery,
  type MemoryScope,
  type NewMemory,
  type RecalledMemory,
} from 'millrace/long-term-memory';
import { endsOf, messageOf, termsOfRequest } from 'millrace/values';
import { fuseRankings } from 'millrace/retrieval';
import { defer, lastValueFrom, type Observable, type SchedulerLike } from 'rxjs';
import { storedName } from '../stored-name.js';
import { entryOf, essenceOf, wordsOf } from './memory-rows.js';
import type { MemoryTable, NewMemoryRow, SeenMemories } from './memory-table.js';
import { abortable$, type Row } from './sql.js';
import { numberIn, toSqlText } from './text.js';

/** Entries of each ranking that are merged. */
const rankingDepth = 50;

/** Maximum number of entries that one recall embeds, and per request to the embedder. */
const maxNewVectors = 256;
const batch = 64;

export interface TableMemoryOptions {
  readonly embedder?: Embedder | undefined;
  readonly threshold?: number | undefined;
}

/** A long-term memory in a database, which opens on first use. Merges a search for words with one by meaning. */
export const tableLongTermMemory = (
  open: (signal: AbortSignal) => Promise<MemoryTable>,
  scheduler: SchedulerLike,
  options: TableMemoryOptions,
): LongTermMemory => {
  const byMeaning = searchByMeaning(options);

  const record = async (
    scope: MemoryScope,
    memories: readonly NewMemory[],
    signal: AbortSignal,
  ): Promise<readonly MemoryEntry[]> => {
    const rows = memories
      .filter(({ text }) => text.trim() !== '')
      .map((memory) => newRow(scope, memory, scheduler.now()));
    return (await (await open(signal)).record(rows)).map(entryOf);
  };

  const recall = async (
    scope: MemoryScope,
    memoryQuery: MemoryQuery,
    signal: AbortSignal,
  ): Promise<readonly RecalledMemory[]> => {
    const table = await open(signal);
    const { text, limit = 5 } = memoryQuery;
    const seen = { userKey: storedName(scope.userId), sessionKeys: sessionsIn(scope) };
    if (text.trim() === '') return (await table.newest(seen, limit)).map(entryOf);
    const most = Math.max(rankingDepth, limit);
    const similar = await byMeaning(table, seen, memoryQuery, most);
    const search = { words: termsOfRequest(text), text: toSqlText(endsOf(text)) };
    const matching = await table.byWords(seen, search, most);
    return fused([matching, similar]).slice(0, limit);
  };

  const forget = async (
    scope: MemoryScope,
    which: readonly string[] | 'all',
    signal: AbortSignal,
  ): Promise<number> => {
    const table = await open(signal);
    const { userId, sessionId } = scope;
    const ofAll = sessionId === undefined ? null : [sessionKeyOf(scope)];
    return which === 'all'
      ? table.forget(storedName(userId), ofAll, null)
      : table.forget(storedName(userId), sessionsIn(scope), which.map(storedName));
  };

  return {
    record$: scoped('record$()', record),
    recall$: scoped('recall$()', recall),
    forget$: scoped('forget$()', forget),
  };
};

type SearchByMeaning = (
  table: MemoryTable,
  seen: SeenMemories,
  query: MemoryQuery,
  most: number,
) => Promise<readonly Row[]>;

/** Finds nothing without an embedder, and if the database has no vectors, which it reports once. */
const searchByMeaning = ({ embedder, threshold = 0.3 }: TableMemoryOptions): SearchByMeaning => {
  let hasWarned = false;
  return async (table, seen, { text, report }, most) => {
    if (embedder === undefined) return [];
    if (!table.hasVectors) {
      if (!hasWarned) {
        report?.('Memories are searched by keywords only: the database has no pgvector extension.');
      }
      hasWarned = true;
      return [];
    }
    try {
      const [queryVector = []] = await vectorsOf(embedder, [endsOf(text)]);
      await addVectors(table, seen, embedder);
      return await table.byMeaning(seen, queryVector, threshold, most);
    } catch (error) {
      const why = messageOf(error);
      report?.(`Memories were searched by keywords only: semantic search failed: ${why}`);
      return [];
    }
  };
};

const scoped =
  <Input, Output>(
    owner: string,
    work: (scope: MemoryScope, input: Input, signal: AbortSignal) => Promise<Output>,
  ) =>
  (scope: MemoryScope, input: Input): Observable<Output> =>
    defer(() => {
      checkScope(owner, scope);
      return abortable$((signal) => work(scope, input, signal));
    });

const newRow = (scope: MemoryScope, memory: NewMemory, now: number): NewMemoryRow => {
  const { userId, sessionId } = scope;
  const { id = randomUUID(), text, kind = 'fact', createdAt = now, metadata = {} } = memory;
  return {
    userKey: storedName(userId),
    sessionKey: sessionKeyOf(scope),
    userId: toSqlText(userId),
    sessionId: sessionId === undefined ? null : toSqlText(sessionId),
    idKey: storedName(id),
    id: toSqlText(id),
    essence: essenceOf(text),
    text: toSqlText(text),
    kind: toSqlText(kind),
    createdAt,
    metadata: toSqlText(JSON.stringify(metadata)),
    words: wordsOf(text),
  };
};

/** Entries without a session have an empty key, which no session has. */
const sessionKeyOf = ({ sessionId }: MemoryScope): string =>
  sessionId === undefined ? '' : storedName(sessionId);

const sessionsIn = (scope: MemoryScope): readonly string[] => [
  ...new Set(['', sessionKeyOf(scope)]),
];

/** Embeds entries that have no vector yet. */
const addVectors = async (
  table: MemoryTable,
  seen: SeenMemories,
  embedder: Embedder,
): Promise<void> => {
  const missing = await table.withoutVector(seen, maxNewVectors);
  for (let at = 0; at < missing.length; at += batch) {
    const some = missing.slice(at, at + batch);
    const texts = some.map((row) => entryOf(row).text.slice(0, 8_000));
    const vectors = await vectorsOf(embedder, texts);
    await table.addVectors(
      some.map((row) => numberIn(row, 'place')),
      vectors,
    );
  }
};

const vectorsOf = async (
  embedder: Embedder,
  texts: readonly string[],
): Promise<readonly (readonly number[])[]> => {
  const vectors = await lastValueFrom(embedder.embed$(texts));
  if (vectors.length !== texts.length || !vectors.flat().every(Number.isFinite)) {
    throw new TypeError('the embedder must return one vector of finite numbers for each text');
  }
  return vectors;
};

const fused = (rankings: readonly (readonly Row[])[]): readonly RecalledMemory[] => {
  const placeOf = (row: Row): number => numberIn(row, 'place');
  const rows = new Map(rankings.flat().map((row) => [placeOf(row), row]));
  return fuseRankings(rankings.map((ranking) => ranking.map(placeOf))).flatMap(
    ({ item, score }) => {
      const row = rows.get(item);
      return row === undefined ? [] : [Object.freeze({ ...entryOf(row), score })];
    },
  );
};
