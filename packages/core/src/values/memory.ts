import { defer, type Observable, of, reduce } from 'rxjs';
import { isRecord } from './json.js';
import type { Message } from './message.js';

/** Where one conversation is kept. */
export interface Memory {
  /** Emits the conversation once, oldest first, and completes. Cold. */
  load$(): Observable<readonly Message[]>;
  /**
   * Adds messages, all of them or none, and completes. Known ids are skipped, so an append may be repeated. A memory that edits or drops
   * messages emits a `MemoryChange`; other values are ignored. `hasFailed`: the messages are what a failed call leaves, and no answer follows. Cold.
   */
  append$(messages: readonly Message[], hasFailed?: boolean): Observable<unknown>;
  /** Emits all that is kept, as it was written, and completes. Cold. Default: what `load$` emits. */
  all$?(): Observable<readonly Message[]>;
  /** Puts messages in the place of all there are, all of them or none, and completes. Loading a saved state needs it. Cold. */
  replace$?(messages: readonly Message[]): Observable<unknown>;
}

/** What an append has done to a memory. */
export interface MemoryChange {
  /** As they are kept. */
  readonly appended: readonly Message[];
  /** The ids of those that have been dropped. */
  readonly removed: readonly string[];
}

export const noMemory: Memory = { load$: () => of([]), append$: () => of(undefined) };

/** Appends, and emits what has changed by it. */
export const appended$ = (
  memory: Memory,
  messages: readonly Message[],
  hasFailed = false,
): Observable<MemoryChange> =>
  defer(() => memory.append$(messages, hasFailed)).pipe(
    reduce<unknown, MemoryChange>(
      (change, emitted) => (isMemoryChange(emitted) ? emitted : change),
      { appended: messages, removed: [] },
    ),
  );

export const kept$ = (memory: Memory): Observable<readonly Message[]> =>
  defer(() => memory.all$?.() ?? memory.load$());

export const isMemoryChange = (value: unknown): value is MemoryChange =>
  isRecord(value) && Array.isArray(value['appended']) && Array.isArray(value['removed']);
