import type { Observable } from 'rxjs';
import { misuse } from '../../values/errors.js';
import { isRecord } from '../../values/json.js';

/** The owner of memories. Set by the program, never by a model. */
export interface MemoryScope {
  readonly userId: string;
  /** Limits the scope to one session. Default: all sessions of the user. */
  readonly sessionId?: string;
}

/** The kind of an entry. Programs may add their own. */
export type MemoryKind = 'fact' | 'conversation' | 'toolCall' | (string & Record<never, never>);

export interface MemoryEntry {
  readonly id: string;
  readonly text: string;
  readonly kind: MemoryKind;
  readonly scope: MemoryScope;
  readonly createdAt: number;
  /** Program-defined data, such as the call that it is from. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface NewMemory {
  /** Pass an id if it may be recorded again, as in a resumed call. Default: a generated id. */
  readonly id?: string;
  readonly text: string;
  /** Default: `fact`. */
  readonly kind?: MemoryKind;
  /** Milliseconds since the epoch. Default: now. */
  readonly createdAt?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface MemoryQuery {
  /** Keywords or a question, as the user wrote it. If blank, finds the latest entries. */
  readonly text: string;
  /** Maximum number of entries, at least 1. Default: 5. */
  readonly limit?: number;
  /** Receives a warning if a result is incomplete. Default: none. */
  readonly report?: (warning: string) => void;
}

export interface RecalledMemory extends MemoryEntry {
  /** Higher is better. Only comparable within one recall. */
  readonly score?: number;
}

declare module '../../events.js' {
  interface Events {
    /** The memories shown to the model, best first. */
    readonly recalled: { readonly memories: readonly RecalledMemory[] };
  }
}

/**
 * Facts about users, across sessions. The scope of a session includes that of its user; other users and sessions are
 * invisible. Operations are cold, and unsubscribing cancels them. They error as the store does, and with `config` if a
 * scope has no user.
 */
export interface LongTermMemory {
  /** Records all entries or none and emits them once; of a known id or text, the existing entry. Skips blank text. */
  record$(scope: MemoryScope, memories: readonly NewMemory[]): Observable<readonly MemoryEntry[]>;
  /** Emits the matching entries once, best first, and completes. */
  recall$(scope: MemoryScope, query: MemoryQuery): Observable<readonly RecalledMemory[]>;
  /** Deletes entries by id, or `all` of the user or session. Emits their number and completes. Ignores unknown ids. */
  forget$(scope: MemoryScope, which: readonly string[] | 'all'): Observable<number>;
}

/** Rejects a scope without a user, which must never mean all users. */
export const checkScope = (owner: string, scope: unknown): void => {
  if (isScope(scope)) return;
  throw misuse(
    `${owner} needs the scope of the memory: { userId } or { userId, sessionId }, as non-empty strings.`,
  );
};

export const isScope = (value: unknown): value is MemoryScope =>
  isRecord(value) &&
  isId(value['userId']) &&
  (value['sessionId'] === undefined || isId(value['sessionId']));

const isId = (value: unknown): boolean => typeof value === 'string' && value !== '';
