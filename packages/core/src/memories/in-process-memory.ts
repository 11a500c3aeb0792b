import { defer, type Observable, of } from 'rxjs';
import type { Memory } from '../values/memory.js';
import type { Message } from '../values/message.js';

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
