import type { Row } from './sql.js';

/** The entries of a user that one scope shows: those of these sessions, where `''` stands for entries without a session. */
export interface SeenMemories {
  readonly userKey: string;
  readonly sessionKeys: readonly string[];
}

/** An entry to record. Its texts are encoded by `toSqlText`. */
export interface NewMemoryRow {
  readonly userKey: string;
  readonly sessionKey: string;
  readonly userId: string;
  readonly sessionId: string | null;
  readonly idKey: string;
  readonly id: string;
  readonly essence: string;
  readonly text: string;
  readonly kind: string;
  readonly createdAt: number;
  readonly metadata: string;
  readonly words: readonly string[];
}

/** The long-term memory in a database. Rows have the columns that `entryOf` reads, and a `place`. Rejects with a `MillraceError`. */
export interface MemoryTable {
  readonly hasVectors: boolean;
  /** Adds entries in one transaction. Returns the row of each, which is the known one for an entry with a known id or text. */
  record(memories: readonly NewMemoryRow[]): Promise<readonly Row[]>;
  newest(seen: SeenMemories, limit: number): Promise<readonly Row[]>;
  /** The best entries with any of the words, and, if the table has a language, of the text, which it stems. */
  byWords(
    seen: SeenMemories,
    search: { readonly words: readonly string[]; readonly text: string },
    limit: number,
  ): Promise<readonly Row[]>;
  /** The entries that are most similar to a vector, whose cosine similarity has a minimum. */
  byMeaning(
    seen: SeenMemories,
    vector: readonly number[],
    threshold: number,
    limit: number,
  ): Promise<readonly Row[]>;
  withoutVector(seen: SeenMemories, limit: number): Promise<readonly Row[]>;
  addVectors(places: readonly number[], vectors: readonly (readonly number[])[]): Promise<unknown>;
  /** Deletes entries of a user, of these sessions and with these ids; null stands for all. Returns their number. */
  forget(
    userKey: string,
    sessionKeys: readonly string[] | null,
    idKeys: readonly string[] | null,
  ): Promise<number>;
}
