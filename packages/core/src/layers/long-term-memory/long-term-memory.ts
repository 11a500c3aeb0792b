import type { Observable } from 'rxjs';
import { misuse } from '../../values/errors.js';
import { isRecord } from '../../values/json.js';

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
  /** Receives a warning if a result is incomplete. Default: none. */
  readonly report?: (warning: string) => void;
}

/** An entry that was found. */
export interface RecalledMemory extends MemoryEntry {
  /** The greater the better; good for comparing entries of one recall, and for nothing else. */
  readonly score?: number;
}

declare module '../../events.js' {
  interface Events {
    /** The memories of the user that the model is shown, the best first. */
    readonly recalled: { readonly memories: readonly RecalledMemory[] };
  }
}

/**
 * Facts about users, across sessions. A session's scope includes what was recorded for its user; nothing of other users or
 * sessions is visible. Each operation is cold; unsubscribing ends it. It errors if the store does, and with `config` if a
 * scope lacks its user.
 */
export interface LongTermMemory {
  /** Records all entries or none, emits them once and completes. An entry with an id or a text that the scope already has is not recorded again: the existing one is emitted. A blank text is not recorded. */
  record$(scope: MemoryScope, memories: readonly NewMemory[]): Observable<readonly MemoryEntry[]>;
  /** Emits the matching entries once, best first, and completes. */
  recall$(scope: MemoryScope, query: MemoryQuery): Observable<readonly RecalledMemory[]>;
  /** Deletes entries by id, or `all` of the user or session. Emits their number once and completes. Unknown ids are ignored. */
  forget$(scope: MemoryScope, which: readonly string[] | 'all'): Observable<number>;
}

/** Refuses what names no user, so that it can never be taken for the scope of all. */
export const checkScope = (owner: string, scope: unknown): void => {
  if (isScope(scope)) return;
  throw misuse(
    `${owner} needs to know whose memory it is: { userId } or { userId, sessionId }, each a text that is not empty.`,
  );
};

export const isScope = (value: unknown): value is MemoryScope =>
  isRecord(value) &&
  isId(value['userId']) &&
  (value['sessionId'] === undefined || isId(value['sessionId']));

const isId = (value: unknown): boolean => typeof value === 'string' && value !== '';
