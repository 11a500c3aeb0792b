import type { Observable } from 'rxjs';

/** Whose memory it is. It comes from the program, and never from a model. */
export interface MemoryScope {
  readonly userId: string;
  /** Of this session only. Default: of the user, in every session. */
  readonly sessionId?: string;
}

/** What a memory is about. A program may have kinds of its own. */
export type MemoryKind = 'fact' | 'conversation' | 'toolCall' | (string & Record<never, never>);

/** Something that is remembered: plain JSON. */
export interface MemoryEntry {
  /** Unique in its scope. */
  readonly id: string;
  readonly text: string;
  readonly kind: MemoryKind;
  /** In which it was recorded. */
  readonly scope: MemoryScope;
  /** In milliseconds since the epoch. */
  readonly createdAt: number;
  /** What the program has to say of it, such as the call that it is from. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Something that is to be remembered. */
export interface NewMemory {
  /** Give one where it may be recorded again, as when a call is resumed. Default: one that the memory makes. */
  readonly id?: string;
  readonly text: string;
  /** Default: `fact`. */
  readonly kind?: MemoryKind;
  /** In milliseconds since the epoch. Default: now. */
  readonly createdAt?: number;
  /** Default: none. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** What is looked for in a memory. */
export interface MemoryQuery {
  /** Words or a question, as a user says it. A blank one looks for what was recorded last. */
  readonly text: string;
  /** The most entries, at least 1. Default: 5. */
  readonly limit?: number;
  /** Is told in a sentence what did not work where there is a result nevertheless. Default: nobody is. */
  readonly report?: (warning: string) => void;
}

/** An entry that was found. */
export interface RecalledMemory extends MemoryEntry {
  /** The greater the better; good for comparing entries of one recall, and for nothing else. */
  readonly score?: number;
}

/**
 * What is remembered of users, from one session to the next. In the scope of a user there is what was recorded for the user; in
 * that of a session, what was recorded for the session, too. Nothing of another user or session is ever seen in it, whatever
 * the ids are. Each operation is cold, and leaving it ends it. It errors where the store does, and with `config` where a
 * scope lacks its user.
 */
export interface LongTermMemory {
  /**
   * Records, all or none, emits the entries once, in their order and as they are kept, and completes. What has the id or the text of one
   * that the very scope has is not recorded again: that one is emitted. A blank text is not recorded.
   */
  record$(scope: MemoryScope, memories: readonly NewMemory[]): Observable<readonly MemoryEntry[]>;
  /** Emits once what the scope has about the query, the best first, an empty list where there is nothing, and completes. */
  recall$(scope: MemoryScope, query: MemoryQuery): Observable<readonly RecalledMemory[]>;
  /**
   * Forgets entries of these ids that can be recalled in the scope, or `all` that was recorded for the user, in every session, or
   * for the session. Emits once how many, and completes. An id that is not known is passed over.
   */
  forget$(scope: MemoryScope, which: readonly string[] | 'all'): Observable<number>;
}
