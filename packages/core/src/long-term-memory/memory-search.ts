import { catchError, map, type Observable, of } from 'rxjs';
import { messageOf } from '../errors.js';
import { frozen } from '../frozen.js';
import { fuseRankings } from '../retrieval/fuse-rankings.js';
import { createMeaningIndex } from '../retrieval/meaning-index.js';
import { endsOf, termsOfRequest } from '../retrieval/request-terms.js';
import type { Embedder } from '../retrieval/embedder.js';
import { scoresByWords } from './keyword-index.js';
import type { MemoryEntry, MemoryQuery, RecalledMemory } from './long-term-memory.js';
import type { Shelf } from './shelf.js';

/** Looks for entries on shelves. */
export type MemorySearch = (
  shelves: readonly Shelf[],
  query: MemoryQuery,
) => Observable<readonly RecalledMemory[]>;

/** Places of a ranking that count: what comes behind is hardly alike, but would have a part in the sum. */
const depth = 50;

/** Makes a search by words, and with an embedder by meaning, too: the rankings are merged by their places. */
export const memorySearch = (
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
