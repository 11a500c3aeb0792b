import { catchError, defer, map, type Observable, of, type TimestampProvider } from 'rxjs';
import { messageOf } from '../../values/errors.js';
import { frozen } from '../../values/message.js';
import { isRecord } from '../../values/json.js';
import {
  checkOptions,
  having,
  isFunction,
  isNumber,
  isText,
  numberFrom,
  type Rule,
  wholeNumber,
} from '../../values/options.js';
import { createMeaningIndex, type Embedder, fuseRankings } from '../retrieval/meaning-index.js';
import { lookUpForm, termsIn, termsOfRequest } from '../../values/words.js';
import {
  checkScope,
  type LongTermMemory,
  type MemoryEntry,
  type MemoryQuery,
  type MemoryScope,
  type NewMemory,
  type RecalledMemory,
} from './long-term-memory.js';

export interface InProcessLongTermMemoryOptions {
  /** Also finds entries by meaning. Default: by keywords only. */
  readonly embedder?: Embedder | undefined;
  /** Minimum cosine similarity between a query and an entry, from 0 to 1. Default: 0.3. */
  readonly threshold?: number | undefined;
  /** Maximum number of entries per scope; evicts the least recently recorded or recalled. Default: 10,000. */
  readonly maxEntries?: number | undefined;
  /** Maximum number of users and sessions; evicts the least recently used. Default: 10,000. */
  readonly maxScopes?: number | undefined;
  /** Clock, such as a scheduler. Default: `Date`. */
  readonly clock?: TimestampProvider | undefined;
}

/**
 * Creates a long-term memory in this process. Finds entries by keywords (BM25) and, with an `embedder`, by meaning; the
 * rankings are merged by rank, and the newest of equals comes first. Vectors are created on demand and kept. If the
 * embedder fails, it calls the query's `report` and uses keywords. Of long queries, the ends of 1,000 characters count.
 */
export const inProcessLongTermMemory = (
  options: InProcessLongTermMemoryOptions = {},
): LongTermMemory => {
  checkOptions('inProcessLongTermMemory()', options, rules);
  const { embedder, threshold = 0.3, maxEntries = 10_000, maxScopes = 10_000 } = options;
  const { clock = Date } = options;
  const partitions = createPartitions(maxEntries, maxScopes);
  const order = new WeakMap<MemoryEntry, number>();
  let recorded = 0;

  const newestFirst = (a: MemoryEntry, b: MemoryEntry): number =>
    b.createdAt - a.createdAt || (order.get(b) ?? 0) - (order.get(a) ?? 0);
  const find$ = memorySearch(newestFirst, embedder, threshold);
  const newId = (partition: Partition): string => {
    const id = `memory-${recorded}`;
    if (partition.get(id) === undefined) return id;
    recorded += 1;
    return newId(partition);
  };
  const record = (
    scope: MemoryScope,
    partition: Partition,
    memory: NewMemory,
  ): readonly MemoryEntry[] => {
    const { text, kind = 'fact', createdAt = clock.now(), metadata } = memory;
    if (text.trim() === '') return [];
    const known = partition.find(memory.id, text);
    if (known !== undefined) {
      partition.touch(known);
      return [known];
    }
    recorded += 1;
    const { id = newId(partition) } = memory;
    const { userId, sessionId } = scope;
    const ownScope = sessionId === undefined ? { userId } : { userId, sessionId };
    const entry = { id, text, kind, scope: ownScope, createdAt, metadata: { ...metadata } };
    order.set(entry, recorded);
    partition.add(entry);
    return [entry];
  };
  return {
    record$: (scope, memories) =>
      defer(() => {
        checkScope('record$()', scope);
        for (const memory of memories) {
          checkOptions('record$(): a memory', memory, memoryRules, ['text']);
        }
        const partition = partitions.of(scope);
        return of(memories.flatMap((memory) => record(scope, partition, memory)));
      }),
    recall$: (scope, query) =>
      defer(() => {
        checkScope('recall$()', scope);
        checkOptions("recall$(): 'query'", query, queryRules, ['text']);
        return find$(partitions.visibleIn(scope), query);
      }),
    forget$: (scope, which) =>
      defer(() => {
        checkScope('forget$()', scope);
        return of(
          which === 'all' ? partitions.clear(scope) : forget(partitions.visibleIn(scope), which),
        );
      }),
  };
};

const forget = (partitions: readonly Partition[], ids: readonly string[]): number => {
  const known = partitions.flatMap((partition) =>
    [...new Set(ids)].flatMap((id) => {
      const entry = partition.get(id);
      return entry === undefined ? [] : [{ partition, entry }];
    }),
  );
  known.forEach(({ partition, entry }) => partition.remove(entry));
  return known.length;
};

const rules: Readonly<Record<keyof InProcessLongTermMemoryOptions, Rule>> = {
  embedder: having('embed$', 'an Embedder with embed$()'),
  threshold: numberFrom(0),
  maxEntries: wholeNumber(1),
  maxScopes: wholeNumber(1),
  clock: having('now', 'a clock with now(), such as a scheduler'),
};

const isId: Rule = [(value) => typeof value === 'string' && value !== '', 'a non-empty string'];

const memoryRules: Readonly<Record<keyof NewMemory, Rule>> = {
  id: isId,
  text: isText,
  kind: isId,
  createdAt: isNumber,
  metadata: [
    (value) => isRecord(value) && Object.values(value).every((it) => typeof it === 'string'),
    'an object with string values',
  ],
};

const queryRules: Readonly<Record<keyof MemoryQuery, Rule>> = {
  text: isText,
  limit: wholeNumber(1),
  report: isFunction,
};

type MemorySearch = (
  partitions: readonly Partition[],
  query: MemoryQuery,
) => Observable<readonly RecalledMemory[]>;

/** Ranks that count: later ones are hardly similar, but would add to the sum. */
const maxRank = 50;

const memorySearch = (
  newestFirst: (a: MemoryEntry, b: MemoryEntry) => number,
  embedder: Embedder | undefined,
  threshold: number,
): MemorySearch => {
  const meaning = embedder && createMeaningIndex<MemoryEntry>(embedder, textIn, threshold);
  const similarTo$ = (
    partitions: readonly Partition[],
    { text, report }: MemoryQuery,
  ): Observable<readonly MemoryEntry[]> =>
    meaning === undefined
      ? of([])
      : meaning.rank$(text, entriesOf(partitions)).pipe(
          catchError((error: unknown) => {
            report?.(
              `The search by meaning failed, so only keywords were searched: ${messageOf(error)}`,
            );
            return of([]);
          }),
        );
  const byWords = (partitions: readonly Partition[], text: string): readonly MemoryEntry[] =>
    [
      ...scoresByWords(
        partitions.map(({ words }) => words),
        termsOfRequest(text),
      ),
    ]
      .sort(([a, scoreOfA], [b, scoreOfB]) => scoreOfB - scoreOfA || newestFirst(a, b))
      .map(([entry]) => entry);
  return (partitions, query) => {
    const { text, limit = 5 } = query;
    if (text.trim() === '') return of([...entriesOf(partitions)].sort(newestFirst).slice(0, limit));
    const maxRanked = Math.max(maxRank, limit);
    return similarTo$(partitions, query).pipe(
      map((similar) =>
        fuseRankings([byWords(partitions, text).slice(0, maxRanked), similar.slice(0, maxRanked)])
          // Entries may be forgotten while vectors are created.
          .filter(({ item }) => partitions.some((partition) => partition.has(item)))
          .slice(0, limit)
          .map(({ item, score }): RecalledMemory => {
            partitions.forEach((partition) => partition.touch(item));
            return frozen({ ...item, score });
          }),
      ),
    );
  };
};

const textIn = ({ text }: MemoryEntry): string => text;

const entriesOf = (partitions: readonly Partition[]): readonly MemoryEntry[] =>
  partitions.flatMap((partition) => partition.entries());

interface Partitions {
  of(scope: MemoryScope): Partition;
  /** The partitions visible in a scope: that of the user and that of the session. */
  visibleIn(scope: MemoryScope): readonly Partition[];
  clear(scope: MemoryScope): number;
}

const createPartitions = (maxEntries: number, maxScopes: number): Partitions => {
  const byScope = new Map<string, { readonly scope: MemoryScope; readonly partition: Partition }>();
  const find = (scope: MemoryScope): readonly Partition[] => {
    const key = keyOf(scope);
    const found = byScope.get(key);
    if (found === undefined) return [];
    byScope.delete(key);
    byScope.set(key, found);
    return [found.partition];
  };
  return {
    of: (scope) => {
      const [known] = find(scope);
      if (known !== undefined) return known;
      const partition = createPartition(maxEntries);
      byScope.set(keyOf(scope), { scope: { ...scope }, partition });
      for (const oldest of byScope.keys()) {
        if (byScope.size <= maxScopes) break;
        byScope.delete(oldest);
      }
      return partition;
    },
    visibleIn: ({ userId, sessionId }) => [
      ...find({ userId }),
      ...(sessionId === undefined ? [] : find({ userId, sessionId })),
    ],
    clear: ({ userId, sessionId }) => {
      const cleared = [...byScope.values()].filter(
        ({ scope }) =>
          scope.userId === userId && (sessionId === undefined || scope.sessionId === sessionId),
      );
      return cleared.reduce((count, { scope, partition }) => {
        byScope.delete(keyOf(scope));
        // A concurrent search finds nothing in it.
        return count + partition.clear();
      }, 0);
    },
  };
};

const keyOf = ({ userId, sessionId }: MemoryScope): string => JSON.stringify([userId, sessionId]);

interface Partition {
  readonly words: KeywordIndex<MemoryEntry>;
  find(id: string | undefined, text: string): MemoryEntry | undefined;
  get(id: string): MemoryEntry | undefined;
  entries(): readonly MemoryEntry[];
  has(entry: MemoryEntry): boolean;
  /** Adds an entry; evicts the least recently used one if there are too many. */
  add(entry: MemoryEntry): void;
  touch(entry: MemoryEntry): void;
  remove(entry: MemoryEntry): void;
  clear(): number;
}

const createPartition = (maxEntries: number): Partition => {
  const byId = new Map<string, MemoryEntry>();
  const byText = new Map<string, MemoryEntry>();
  const words = createKeywordIndex<MemoryEntry>();
  const has = (entry: MemoryEntry): boolean => byId.get(entry.id) === entry;
  const remove = (entry: MemoryEntry): void => {
    if (!has(entry)) return;
    byId.delete(entry.id);
    byText.delete(normalized(entry.text));
    words.remove(entry, entry.text);
  };
  return {
    words,
    has,
    remove,
    get: (id) => byId.get(id),
    find: (id, text) =>
      (id === undefined ? undefined : byId.get(id)) ?? byText.get(normalized(text)),
    entries: () => [...byId.values()],
    add: (entry) => {
      frozen(entry);
      byId.set(entry.id, entry);
      byText.set(normalized(entry.text), entry);
      words.add(entry, entry.text);
      for (const oldest of byId.values()) {
        if (byId.size <= maxEntries) return;
        remove(oldest);
      }
    },
    clear: () => {
      const all = [...byId.values()];
      all.forEach(remove);
      return all.length;
    },
    touch: (entry) => {
      if (!has(entry)) return;
      byId.delete(entry.id);
      byId.set(entry.id, entry);
    },
  };
};

export const normalized = (text: string): string =>
  text.normalize('NFKC').replace(/\s+/gu, ' ').trim().toLowerCase();

interface KeywordIndex<Item> {
  readonly size: number;
  readonly length: number;
  /** The items with a term, and how often each contains it. */
  itemsWith(term: string): ReadonlyMap<Item, number>;
  lengthOf(item: Item): number;
  add(item: Item, text: string): void;
  remove(item: Item, text: string): void;
}

export const createKeywordIndex = <Item extends object>(): KeywordIndex<Item> => {
  const postings = new Map<string, Map<Item, number>>();
  const lengths = new Map<Item, number>();
  let length = 0;
  return {
    get size() {
      return lengths.size;
    },
    get length() {
      return length;
    },
    itemsWith: (term) => postings.get(term) ?? noItems,
    lengthOf: (item) => lengths.get(item) ?? 0,
    add: (item, text) => {
      const terms = termFormsIn(text);
      lengths.set(item, terms.length);
      length += terms.length;
      for (const term of terms) {
        const counts = postings.get(term) ?? new Map<Item, number>();
        postings.set(term, counts.set(item, (counts.get(item) ?? 0) + 1));
      }
    },
    remove: (item, text) => {
      length -= lengths.get(item) ?? 0;
      lengths.delete(item);
      for (const term of termFormsIn(text)) {
        const counts = postings.get(term);
        counts?.delete(item);
        if (counts?.size === 0) postings.delete(term);
      }
    },
  };
};

const noItems: ReadonlyMap<never, number> = new Map<never, number>();

const termFormsIn = (text: string): readonly string[] =>
  termsIn(text).flatMap((term) => lookUpForm(term) ?? []);

const k1 = 1.2;

const b = 0.75;

/**
 * Scores the items of several indexes by BM25, unsorted. From Robertson and Zaragoza, “The Probabilistic Relevance
 * Framework: BM25 and Beyond”, 2009, with Lucene's term weights, which are never negative.
 */
export const scoresByWords = <Item extends object>(
  indexes: readonly KeywordIndex<Item>[],
  terms: readonly string[],
): ReadonlyMap<Item, number> => {
  const scores = new Map<Item, number>();
  const size = indexes.reduce((sum, index) => sum + index.size, 0);
  const average = indexes.reduce((sum, index) => sum + index.length, 0) / size;
  for (const term of new Set(terms)) {
    const matches = indexes.map((index) => ({ index, items: index.itemsWith(term) }));
    const df = matches.reduce((sum, { items }) => sum + items.size, 0);
    const weight = Math.log(1 + (size - df + 0.5) / (df + 0.5));
    for (const { index, items } of matches) {
      for (const [item, count] of items) {
        const share = index.lengthOf(item) / average;
        const saturated = (count * (k1 + 1)) / (count + k1 * (1 - b + b * share));
        scores.set(item, (scores.get(item) ?? 0) + weight * saturated);
      }
    }
  }
  return scores;
};
