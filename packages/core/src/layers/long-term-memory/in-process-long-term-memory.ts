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
import { fuseRankings } from '../retrieval/fuse-rankings.js';
import { createMeaningIndex, type Embedder } from '../retrieval/meaning-index.js';
import { endsOf, lookUpForm, termsIn, termsOfRequest } from '../retrieval/words.js';
import {
  checkScope,
  type LongTermMemory,
  type MemoryEntry,
  type MemoryQuery,
  type MemoryScope,
  type NewMemory,
  type RecalledMemory,
} from './long-term-memory.js';

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

/** Looks for entries on shelves. */
type MemorySearch = (
  shelves: readonly Shelf[],
  query: MemoryQuery,
) => Observable<readonly RecalledMemory[]>;

/** Places of a ranking that count: what comes behind is hardly alike, but would have a part in the sum. */
const depth = 50;

/** Makes a search by words, and with an embedder by meaning, too: the rankings are merged by their places. */
const memorySearch = (
  newestFirst: (a: MemoryEntry, b: MemoryEntry) => number,
  embedder: Embedder | undefined,
  threshold: number,
): MemorySearch => {
  const meaning = embedder && createMeaningIndex<MemoryEntry>(embedder, textIn, threshold);
  const byMeaning$ = (
    shelves: readonly Shelf[],
    { text, report }: MemoryQuery,
  ): Observable<readonly MemoryEntry[]> =>
    meaning === undefined
      ? of([])
      : meaning.rank$(endsOf(text), entriesOf(shelves)).pipe(
          catchError((error: unknown) => {
            report?.(
              `Only words were looked for, as the search by meaning failed: ${messageOf(error)}`,
            );
            return of([]);
          }),
        );
  const byWords = (shelves: readonly Shelf[], text: string): readonly MemoryEntry[] =>
    [
      ...scoresByWords(
        shelves.map(({ words }) => words),
        termsOfRequest(text),
      ),
    ]
      .sort(([a, scoreOfA], [b, scoreOfB]) => scoreOfB - scoreOfA || newestFirst(a, b))
      .map(([entry]) => entry);
  return (shelves, query) => {
    const { text, limit = 5 } = query;
    if (text.trim() === '') return of([...entriesOf(shelves)].sort(newestFirst).slice(0, limit));
    const most = Math.max(depth, limit);
    return byMeaning$(shelves, query).pipe(
      map((alike) =>
        fuseRankings([byWords(shelves, text).slice(0, most), alike.slice(0, most)])
          // What was forgotten while vectors were made is gone.
          .filter(({ item }) => shelves.some((shelf) => shelf.has(item)))
          .slice(0, limit)
          .map(({ item, score }): RecalledMemory => {
            shelves.forEach((shelf) => shelf.touch(item));
            return frozen({ ...item, score });
          }),
      ),
    );
  };
};

const textIn = ({ text }: MemoryEntry): string => text;

const entriesOf = (shelves: readonly Shelf[]): readonly MemoryEntry[] =>
  shelves.flatMap((shelf) => shelf.entries());

interface Shelves {
  /** That of the very scope: an empty one, where it has none yet. */
  of(scope: MemoryScope): Shelf;
  /** Those that can be seen in a scope: the user's, and the session's. */
  visibleIn(scope: MemoryScope): readonly Shelf[];
  /** Clears those of a user, or that of a session, and tells how many entries they had. */
  clear(scope: MemoryScope): number;
}

/** Makes shelves for so many entries each; where there are too many shelves, the one that was asked for longest ago goes. */
const createShelves = (maxEntries: number, maxScopes: number): Shelves => {
  const places = new Map<string, { readonly scope: MemoryScope; readonly shelf: Shelf }>();
  const find = (scope: MemoryScope): readonly Shelf[] => {
    const key = keyOf(scope);
    const place = places.get(key);
    if (place === undefined) return [];
    places.delete(key);
    places.set(key, place);
    return [place.shelf];
  };
  return {
    of: (scope) => {
      const [known] = find(scope);
      if (known !== undefined) return known;
      const shelf = createShelf(maxEntries);
      places.set(keyOf(scope), { scope: { ...scope }, shelf });
      for (const oldest of places.keys()) {
        if (places.size <= maxScopes) break;
        places.delete(oldest);
      }
      return shelf;
    },
    visibleIn: ({ userId, sessionId }) => [
      ...find({ userId }),
      ...(sessionId === undefined ? [] : find({ userId, sessionId })),
    ],
    clear: ({ userId, sessionId }) => {
      const cleared = [...places.values()].filter(
        ({ scope }) =>
          scope.userId === userId && (sessionId === undefined || scope.sessionId === sessionId),
      );
      return cleared.reduce((count, { scope, shelf }) => {
        places.delete(keyOf(scope));
        // Whoever looks through it just now finds nothing.
        return count + shelf.clear();
      }, 0);
    },
  };
};

const keyOf = ({ userId, sessionId }: MemoryScope): string => JSON.stringify([userId, sessionId]);

interface Shelf {
  readonly words: KeywordIndex<MemoryEntry>;
  /** The one of this id, or the one that says this. */
  find(id: string | undefined, text: string): MemoryEntry | undefined;
  get(id: string): MemoryEntry | undefined;
  entries(): readonly MemoryEntry[];
  /** Tells whether it has this very entry. */
  has(entry: MemoryEntry): boolean;
  /** Adds an entry; where there are too many, the one that was of use longest ago goes. */
  add(entry: MemoryEntry): void;
  /** Says that an entry was of use just now. */
  touch(entry: MemoryEntry): void;
  remove(entry: MemoryEntry): void;
  /** Removes all, and tells how many there were. */
  clear(): number;
}

const createShelf = (maxEntries: number): Shelf => {
  const byId = new Map<string, MemoryEntry>();
  const byText = new Map<string, MemoryEntry>();
  const words = createKeywordIndex<MemoryEntry>();
  const has = (entry: MemoryEntry): boolean => byId.get(entry.id) === entry;
  const remove = (entry: MemoryEntry): void => {
    if (!has(entry)) return;
    byId.delete(entry.id);
    byText.delete(essenceOf(entry.text));
    words.remove(entry, entry.text);
  };
  return {
    words,
    has,
    remove,
    get: (id) => byId.get(id),
    find: (id, text) =>
      (id === undefined ? undefined : byId.get(id)) ?? byText.get(essenceOf(text)),
    entries: () => [...byId.values()],
    add: (entry) => {
      frozen(entry);
      byId.set(entry.id, entry);
      byText.set(essenceOf(entry.text), entry);
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

const essenceOf = (text: string): string =>
  text.normalize('NFKC').replace(/\s+/gu, ' ').trim().toLowerCase();

interface KeywordIndex<Item> {
  /** Items that there are. */
  readonly size: number;
  /** Terms of all items together. */
  readonly length: number;
  /** How often each item that holds a term holds it. */
  holding(term: string): ReadonlyMap<Item, number>;
  /** Terms that an item has. */
  lengthOf(item: Item): number;
  add(item: Item, text: string): void;
  /** Takes an item out; the text is the one that it was added with. */
  remove(item: Item, text: string): void;
}

export const createKeywordIndex = <Item extends object>(): KeywordIndex<Item> => {
  const holders = new Map<string, Map<Item, number>>();
  const lengths = new Map<Item, number>();
  let length = 0;
  return {
    get size() {
      return lengths.size;
    },
    get length() {
      return length;
    },
    holding: (term) => holders.get(term) ?? nowhere,
    lengthOf: (item) => lengths.get(item) ?? 0,
    add: (item, text) => {
      const terms = formsIn(text);
      lengths.set(item, terms.length);
      length += terms.length;
      for (const term of terms) {
        const held = holders.get(term) ?? new Map<Item, number>();
        holders.set(term, held.set(item, (held.get(item) ?? 0) + 1));
      }
    },
    remove: (item, text) => {
      length -= lengths.get(item) ?? 0;
      lengths.delete(item);
      for (const term of formsIn(text)) {
        const held = holders.get(term);
        held?.delete(item);
        if (held?.size === 0) holders.delete(term);
      }
    },
  };
};

const nowhere: ReadonlyMap<never, number> = new Map<never, number>();

const formsIn = (text: string): readonly string[] =>
  termsIn(text).flatMap((term) => lookUpForm(term) ?? []);

const k1 = 1.2;

const b = 0.75;

/** The items of all these indexes that hold some of the terms, with their BM25 score, in no order. From Robertson and Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond”, 2009, with the weight of terms of Lucene, which is never negative. */
export const scoresByWords = <Item extends object>(
  indexes: readonly KeywordIndex<Item>[],
  terms: readonly string[],
): ReadonlyMap<Item, number> => {
  const scores = new Map<Item, number>();
  const size = indexes.reduce((sum, index) => sum + index.size, 0);
  const average = indexes.reduce((sum, index) => sum + index.length, 0) / size;
  for (const term of new Set(terms)) {
    const held = indexes.map((index) => ({ index, items: index.holding(term) }));
    const df = held.reduce((sum, { items }) => sum + items.size, 0);
    const weight = Math.log(1 + (size - df + 0.5) / (df + 0.5));
    for (const { index, items } of held) {
      for (const [item, count] of items) {
        const share = index.lengthOf(item) / average;
        const saturated = (count * (k1 + 1)) / (count + k1 * (1 - b + b * share));
        scores.set(item, (scores.get(item) ?? 0) + weight * saturated);
      }
    }
  }
  return scores;
};
