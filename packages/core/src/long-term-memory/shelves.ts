import type { MemoryScope } from './long-term-memory.js';
import { createShelf, type Shelf } from './shelf.js';

/** The shelves of all scopes. */
export interface Shelves {
  /** That of the very scope: an empty one, where it has none yet. */
  of(scope: MemoryScope): Shelf;
  /** Those that can be seen in a scope: the user's, and the session's. */
  visibleIn(scope: MemoryScope): readonly Shelf[];
  /** Clears those of a user, or that of a session, and tells how many entries they had. */
  clear(scope: MemoryScope): number;
}

/** Makes shelves for so many entries each; where there are too many shelves, the one that was asked for longest ago goes. */
export const createShelves = (maxEntries: number, maxScopes: number): Shelves => {
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

/** One text for each scope, whatever is in its ids. */
const keyOf = ({ userId, sessionId }: MemoryScope): string => JSON.stringify([userId, sessionId]);
