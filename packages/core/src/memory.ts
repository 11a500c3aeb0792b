import { defer, of, type Observable } from 'rxjs';
import type { Message } from './message.js';

/** Where the conversation of one session is kept. */
export interface Memory {
  /** Emits the conversation once, oldest first, and completes. Cold. */
  load$(): Observable<readonly Message[]>;
  /**
   * Adds messages, all of them or none, and completes. A message whose id is there already is not
   * added again, so that an append may be repeated. Cold.
   */
  append$(messages: readonly Message[]): Observable<unknown>;
}

/** Gives the memory of a session. */
export type MemoryFactory = (sessionId: string) => Memory;

/** Keeps every conversation in this process, for as long as the factory itself is held. */
export const inProcessMemory = (): MemoryFactory => {
  const conversations = new Map<string, Memory>();
  return (sessionId) => {
    const known = conversations.get(sessionId);
    if (known !== undefined) return known;
    const created = arrayMemory();
    conversations.set(sessionId, created);
    return created;
  };
};

/** The memory of a call without a session: it begins empty and forgets. */
export const noMemory: Memory = { load$: () => of([]), append$: () => of(undefined) };

const arrayMemory = (): Memory => {
  let messages: readonly Message[] = [];
  const ids = new Set<string>();
  return {
    load$: () => defer(() => of(messages)),
    append$: (added) =>
      defer(() => {
        messages = messages.concat(added.filter(({ id }) => !ids.has(id) && ids.add(id)));
        return of(undefined);
      }),
  };
};
