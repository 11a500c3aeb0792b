import { defer, type Observable, of, reduce } from 'rxjs';
import { isRecord } from './json.js';
import type { Message } from './message.js';

export interface Memory {
  /** Emits the conversation once, oldest first, and completes. Cold. */
  load$(): Observable<readonly Message[]>;
  /**
   * Adds messages, all of them or none, and completes. Known ids are skipped, so an append may be repeated. A memory
   * that edits or drops messages emits a `MemoryChange`; other values are ignored. `hasFailed`: the call failed, so no answer follows. Cold.
   */
  append$(messages: readonly Message[], hasFailed?: boolean): Observable<unknown>;
  /** Emits every stored message as it was appended, and completes. Cold. Default: `load$`. */
  all$?(): Observable<readonly Message[]>;
  /** Replaces all messages, or none if it fails, and completes. Needed to load a saved state. Cold. */
  replace$?(messages: readonly Message[]): Observable<unknown>;
}

export interface MemoryChange {
  /** The appended messages, as they are stored. */
  readonly appended: readonly Message[];
  readonly removed: readonly string[];
}

export const noMemory: Memory = { load$: () => of([]), append$: () => of(undefined) };

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
