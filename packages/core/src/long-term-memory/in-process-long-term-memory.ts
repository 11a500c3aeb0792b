import { defer, of, type TimestampProvider } from 'rxjs';
import {
  checkOptions,
  having,
  isFunction,
  isNumber,
  isText,
  numberFrom,
  type Rule,
  wholeNumber,
} from '../options.js';
import { isRecord } from '../json.js';
import type { Embedder } from '../retrieval/embedder.js';
import { checkScope } from './check-scope.js';
import type {
  LongTermMemory,
  MemoryEntry,
  MemoryQuery,
  MemoryScope,
  NewMemory,
} from './long-term-memory.js';
import { memorySearch } from './memory-search.js';
import type { Shelf } from './shelf.js';
import { createShelves } from './shelves.js';

/** What a memory in this process is told. */
export interface InProcessLongTermMemoryOptions {
  /** Finds entries by their meaning, too. Default: they are found by their words alone. */
  readonly embedder?: Embedder;
  /** The least cosine of the angle between query and entry that counts as alike in meaning, from 0 to 1. Default: 0.3. */
  readonly threshold?: number;
  /** Entries of one scope. One more, and the one that was recorded or recalled longest ago goes. Default: 10,000. */
  readonly maxEntries?: number;
  /** Users and sessions that are remembered: those that were asked about last. Default: 10,000. */
  readonly maxScopes?: number;
  /** What tells the time: a scheduler does. Default: `Date`. */
  readonly clock?: TimestampProvider;
}

/**
 * Makes a memory in this process, which lasts as long as it is held. It finds entries by their words (BM25), and with an
 * `embedder` by their meaning, too; the two rankings are merged by their places, and of equals the newest comes first.
 * Vectors are made at the first recall that needs them, and kept; an embedder that fails is reported to the query, and
 * what the words find is emitted. Of a long query the first and the last 1,000 characters count.
 */
export const inProcessLongTermMemory = (
  options: InProcessLongTermMemoryOptions = {},
): LongTermMemory => {
  checkOptions('inProcessLongTermMemory()', options, rules);
  const { embedder, threshold = 0.3, maxEntries = 10_000, maxScopes = 10_000 } = options;
  const { clock = Date } = options;
  const all = createShelves(maxEntries, maxScopes);
  const places = new WeakMap<MemoryEntry, number>();
  let recorded = 0;

  const newestFirst = (a: MemoryEntry, b: MemoryEntry): number =>
    b.createdAt - a.createdAt || (places.get(b) ?? 0) - (places.get(a) ?? 0);
  const find$ = memorySearch(newestFirst, embedder, threshold);
  const freshId = (shelf: Shelf): string => {
    const id = `memory-${recorded}`;
    if (shelf.get(id) === undefined) return id;
    recorded += 1;
    return freshId(shelf);
  };
  const record = (scope: MemoryScope, shelf: Shelf, memory: NewMemory): readonly MemoryEntry[] => {
    const { text, kind = 'fact', createdAt = clock.now(), metadata } = memory;
    if (text.trim() === '') return [];
    const known = shelf.find(memory.id, text);
    if (known !== undefined) {
      shelf.touch(known);
      return [known];
    }
    recorded += 1;
    const { id = freshId(shelf) } = memory;
    const { userId, sessionId } = scope;
    const own = sessionId === undefined ? { userId } : { userId, sessionId };
    const entry = { id, text, kind, scope: own, createdAt, metadata: { ...metadata } };
    places.set(entry, recorded);
    shelf.add(entry);
    return [entry];
  };
  return {
    record$: (scope, memories) =>
      defer(() => {
        checkScope('record$()', scope);
        for (const memory of memories) {
          checkOptions('record$(): a memory', memory, memoryRules, ['text']);
        }
        const shelf = all.of(scope);
        return of(memories.flatMap((memory) => record(scope, shelf, memory)));
      }),
    recall$: (scope, query) =>
      defer(() => {
        checkScope('recall$()', scope);
        checkOptions("recall$(): 'query'", query, queryRules, ['text']);
        return find$(all.visibleIn(scope), query);
      }),
    forget$: (scope, which) =>
      defer(() => {
        checkScope('forget$()', scope);
        return of(which === 'all' ? all.clear(scope) : forget(all.visibleIn(scope), which));
      }),
  };
};

const forget = (shelves: readonly Shelf[], ids: readonly string[]): number => {
  const known = shelves.flatMap((shelf) =>
    [...new Set(ids)].flatMap((id) => {
      const entry = shelf.get(id);
      return entry === undefined ? [] : [{ shelf, entry }];
    }),
  );
  known.forEach(({ shelf, entry }) => shelf.remove(entry));
  return known.length;
};

const rules: Readonly<Record<keyof InProcessLongTermMemoryOptions, Rule>> = {
  embedder: having('embed$', 'what makes vectors of texts by embed$()'),
  threshold: numberFrom(0),
  maxEntries: wholeNumber(1),
  maxScopes: wholeNumber(1),
  clock: having('now', 'what tells the time, such as a scheduler'),
};

const isId: Rule = [(value) => typeof value === 'string' && value !== '', 'a text, not empty'];

const memoryRules: Readonly<Record<keyof NewMemory, Rule>> = {
  id: isId,
  text: isText,
  kind: isId,
  createdAt: isNumber,
  metadata: [
    (value) => isRecord(value) && Object.values(value).every((it) => typeof it === 'string'),
    'an object of texts',
  ],
};

const queryRules: Readonly<Record<keyof MemoryQuery, Rule>> = {
  text: isText,
  limit: wholeNumber(1),
  report: isFunction,
};
