import { defer, type Observable, of } from 'rxjs';
import type { Memory } from '../values/memory.js';
import type { Message } from '../values/message.js';

export type MemoryFactory = (sessionId: string) => Memory;

/** Keeps conversations in this process, as long as the factory is referenced. */
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
  readonly ids: Set<string>;
}

const empty = (): Conversation => ({ messages: [], ids: new Set() });
