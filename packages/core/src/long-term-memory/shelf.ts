import { frozen } from '../frozen.js';
import { createKeywordIndex, type KeywordIndex } from './keyword-index.js';
import type { MemoryEntry } from './long-term-memory.js';

/** The entries of one scope, in the order in which they were last of use. */
export interface Shelf {
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

/** Makes an empty shelf for so many entries. */
export const createShelf = (maxEntries: number): Shelf => {
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

/** What two texts have in common that say the same. */
const essenceOf = (text: string): string =>
  text.normalize('NFKC').replace(/\s+/gu, ' ').trim().toLowerCase();
