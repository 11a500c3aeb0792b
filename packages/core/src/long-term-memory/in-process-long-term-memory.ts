import { catchError, defer, map, type Observable, of, type TimestampProvider } from 'rxjs';
import { messageOf } from '../errors.js';
import { frozen } from '../frozen.js';
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
import { fuseRankings } from '../retrieval/fuse-rankings.js';
import { createMeaningIndex } from '../retrieval/meaning-index.js';
import { endsOf, termsOfRequest } from '../retrieval/request-terms.js';
import type { Embedder } from '../tools/embedding-selector.js';
import { checkScope } from './check-scope.js';
import { scoresByWords } from './keyword-index.js';
import type {
  LongTermMemory,
  MemoryEntry,
  MemoryQuery,
  MemoryScope,
  NewMemory,
  RecalledMemory,
} from './long-term-memory.js';
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
  const meaning = embedder && createMeaningIndex<MemoryEntry>(embedder, textIn, threshold);
  const places = new WeakMap<MemoryEntry, number>();
  let recorded = 0;

  const newestFirst = (a: MemoryEntry, b: MemoryEntry): number =>
    (places.get(b) ?? 0) - (places.get(a) ?? 0);
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
  const byWords = (shelves: readonly Shelf[], text: string): readonly MemoryEntry[] => {
    const indexes = shelves.map(({ words }) => words);
    return [...scoresByWords(indexes, termsOfRequest(text))]
      .sort(([a, scoreOfA], [b, scoreOfB]) => scoreOfB - scoreOfA || newestFirst(a, b))
      .map(([entry]) => entry);
  };
  const byMeaning$ = (
    shelves: readonly Shelf[],
    { text, report }: MemoryQuery,
  ): Observable<readonly MemoryEntry[]> =>
    meaning === undefined
      ? of([])
      : meaning
          .rank$(
            endsOf(text),
            shelves.flatMap((shelf) => shelf.entries()),
          )
          .pipe(
            catchError((error: unknown) => {
              report?.(
                `Only words were looked for, as the search by meaning failed: ${messageOf(error)}`,
              );
              return of([]);
            }),
          );
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
        const { text, limit = 5 } = query;
        const shelves = all.visibleIn(scope);
        if (text.trim() === '') {
          const entries = shelves.flatMap((shelf) => shelf.entries());
          return of(entries.sort(newestFirst).slice(0, limit));
        }
        return byMeaning$(shelves, query).pipe(
          map((alike) => {
            const most = Math.max(depth, limit);
            const rankings = [byWords(shelves, text).slice(0, most), alike.slice(0, most)];
            return fuseRankings(rankings)
              .filter(({ item }) => shelves.some((shelf) => shelf.has(item)))
              .slice(0, limit)
              .map(({ item, score }): RecalledMemory => {
                shelves.forEach((shelf) => shelf.touch(item));
                return frozen({ ...item, score });
              });
          }),
        );
      }),
    forget$: (scope, which) =>
      defer(() => {
        checkScope('forget$()', scope);
        return of(which === 'all' ? all.clear(scope) : forget(all.visibleIn(scope), which));
      }),
  };
};

/** Places of a ranking that count: what comes behind is hardly alike, but would have a part in the sum. */
const depth = 50;

const textIn = ({ text }: MemoryEntry): string => text;

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
