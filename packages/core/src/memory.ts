import { defer, type Observable, of, reduce } from 'rxjs';
import { isRecord } from './json.js';
import type { Message } from './message.js';

/** Where the conversation of one session is kept. */
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
  /** Puts messages in the place of all there are, all of them or none, and completes. `session.loadState` needs it. Cold. */
  replace$?(messages: readonly Message[]): Observable<unknown>;
}

/** What an append has done to a memory. */
export interface MemoryChange {
  /** As they are kept. */
  readonly appended: readonly Message[];
  /** The ids of those that have been dropped. */
  readonly removed: readonly string[];
}

/** Gives the memory of a session. */
export type MemoryFactory = (sessionId: string) => Memory;

/** Keeps every conversation in this process, for as long as the factory itself is held. */
export const inProcessMemory = (): MemoryFactory => {
  const conversations = new Map<string, Conversation>();
  return (sessionId) => {
    const set = (messages: readonly Message[], ids: Set<string>): Observable<undefined> => {
      if (messages.length === 0) conversations.delete(sessionId);
      else conversations.set(sessionId, { messages, ids });
      return of(undefined);
    };
    const add = ({ messages, ids }: Conversation, added: readonly Message[]) =>
      set(messages.concat(added.filter(({ id }) => !ids.has(id) && ids.add(id))), ids);
    return {
      load$: () => defer(() => of(conversations.get(sessionId)?.messages ?? [])),
      append$: (added) => defer(() => add(conversations.get(sessionId) ?? empty(), added)),
      replace$: (messages) => defer(() => add(empty(), messages)),
    };
  };
};

interface Conversation {
  readonly messages: readonly Message[];
  /** They are many: the set is the conversation's own, and grows with it. */
  readonly ids: Set<string>;
}

const empty = (): Conversation => ({ messages: [], ids: new Set() });

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

/** Emits all that a memory keeps. */
export const kept$ = (memory: Memory): Observable<readonly Message[]> =>
  defer(() => memory.all$?.() ?? memory.load$());

export const isMemoryChange = (value: unknown): value is MemoryChange =>
  isRecord(value) && Array.isArray(value['appended']) && Array.isArray(value['removed']);
