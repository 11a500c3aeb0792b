import { defer, map, type Observable, of, reduce } from 'rxjs';
import { isRecord } from './json.js';
import type { Message } from './message.js';
import { lineOf, type MessageTree, type Place, unknownPlace } from './message-tree.js';

/**
 * The messages of a conversation. With `branches$`, it is a tree: a call may continue after any message. Without, it is a line, and a
 * call that would continue elsewhere than at its end errors with `conflict`. All of it is cold.
 */
export interface Memory {
  /**
   * Emits the conversation from its beginning to a message, oldest first, and completes. `at`: the id of a message, `null`
   * for the beginning, or the id of a call for its last message; default: the head. Errors with `conflict` if a tree does not know it.
   */
  load$(options?: LoadOptions): Observable<readonly Message[]>;
  /**
   * Adds messages, all of them or none, and completes. Known ids are skipped, so an append may be repeated. A tree, and a memory
   * that edits or drops messages, emit a `MemoryChange`; other values are ignored.
   */
  append$(messages: readonly Message[], options?: AppendOptions): Observable<unknown>;
  /** In a tree: emits the id of the last message of what `load$` emits, as it is stored; `null` for none. Errors as `load$` does. */
  last$?(options?: LoadOptions): Observable<string | null>;
  /** Emits the ids of a message and of those that come after the same message, the oldest first, and completes. */
  branches$?(at: string): Observable<readonly string[]>;
  /** Makes a message the head, and completes. Emits a `MemoryChange`. Errors with `conflict` if it is unknown. */
  moveHead$?(to: string): Observable<unknown>;
  /** Removes a message and those after it, and completes. Emits a `MemoryChange`. Errors with `conflict` if it is unknown. */
  remove$?(at: string): Observable<unknown>;
  /** Emits everything that is stored, as it was appended, and completes. Default: what `load$` emits. */
  all$?(): Observable<MessageTree>;
  /** Replaces everything, or nothing if it fails, and completes. Needed to load a saved state. */
  replace$?(tree: MessageTree): Observable<unknown>;
}

export interface LoadOptions {
  readonly at?: string | null;
}

export interface AppendOptions extends Place {
  /** The call failed, so no answer follows. */
  readonly hasFailed?: boolean;
}

export interface MemoryChange {
  /** The appended messages, as they are stored. */
  readonly appended: readonly Message[];
  readonly removed: readonly string[];
  /** In a tree: the id of the message before the appended ones. */
  readonly after?: string | null;
  /** In a tree: the head before and after the change. */
  readonly head?: HeadChange;
}

export interface HeadChange {
  readonly from: string | null;
  readonly to: string | null;
}

export const noMemory: Memory = { load$: () => of([]), append$: () => of(undefined) };

export const appended$ = (
  memory: Memory,
  messages: readonly Message[],
  options?: AppendOptions,
): Observable<MemoryChange> =>
  defer(() => memory.append$(messages, options)).pipe(
    reduce<unknown, MemoryChange>(
      (change, emitted) => (isMemoryChange(emitted) ? emitted : change),
      { appended: messages, removed: [] },
    ),
  );

/** The path to a message. A memory without branches has only that to its end. */
export const loadAt$ = (
  memory: Memory,
  at: string | null | undefined,
): Observable<readonly Message[]> =>
  defer(() => {
    if (at === undefined) return memory.load$();
    if (memory.branches$ !== undefined) return memory.load$({ at });
    return memory.load$().pipe(
      map((messages) => {
        const head = messages.at(-1)?.id ?? null;
        if (head === at || (at !== null && head?.startsWith(`${at}/`))) return messages;
        throw unknownPlace(at ?? '', head);
      }),
    );
  });

/** Everything that a memory has. */
export const kept$ = (memory: Memory): Observable<MessageTree> =>
  defer(() => memory.all$?.() ?? memory.load$().pipe(map(lineOf)));

export const isMemoryChange = (value: unknown): value is MemoryChange =>
  isRecord(value) && Array.isArray(value['appended']) && Array.isArray(value['removed']);
