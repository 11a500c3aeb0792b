import { join } from 'node:path';
import type { Message } from '@millrace/core';
import { freshOf, goneOn, messageIn } from '../memory/appending.js';
import type { StoredMemory, StoredMemoryFactory } from '../memory/stored-memory.js';
import { checkId, storedName } from '../stored-name.js';
import {
  addToConversation,
  type Conversation,
  noConversation,
  readConversation,
  replaceConversation,
} from './conversation-files.js';
import { directoryGone } from './failure.js';
import { fileWork$, type Part, partsOf } from './file-work.js';

/**
 * Keeps conversations in a directory, each in one of its own, which only this user can read. What was added is on the disk when that completes. Who adds to a
 * conversation that has gone on elsewhere since it was loaded gets `conflict`; who has not loaded it adds to what is there.
 */
export const fileMemory = (directory: string): StoredMemoryFactory =>
  memoryIn(partsOf(directory)(''));

/** As `fileMemory`, in a part of a store. */
export const memoryIn =
  (part: Part): StoredMemoryFactory =>
  (sessionId) => {
    checkId('A session', sessionId);
    return conversationIn(part, sessionId);
  };

const conversationIn = (part: Part, sessionId: string): StoredMemory => {
  const path = join(part.root, storedName(sessionId));
  const state: { known: Conversation; loaded?: number } = { known: noConversation };
  const load = async (): Promise<readonly Message[]> => {
    state.known = await readConversation(path, state.known);
    state.loaded = state.known.number;
    return state.known.messages.map(({ text }) => messageIn(text));
  };
  const append = async (messages: readonly Message[]): Promise<void> => {
    for (;;) {
      const known = await readConversation(path, state.known);
      state.known = known;
      const ids = new Set(known.messages.map(({ id }) => id));
      const fresh = freshOf(messages, (id) => ids.has(id));
      const isRepeated = fresh.length === 0 && messages.length > 0;
      if (messages.length === 0) return;
      if (isRepeated) {
        const last = known.messages.at(-1)?.id;
        // What was added before, and not answered to, is what has gone on.
        if (messages.some(({ id }) => id === last) && state.loaded !== undefined) {
          state.loaded = known.number;
        }
        return;
      }
      if (state.loaded !== undefined && state.loaded !== known.number) {
        throw known.number === 0 ? directoryGone(part.root) : goneOn(sessionId);
      }
      const next = await addToConversation(path, known, fresh);
      if (next === undefined) continue;
      state.known = next;
      if (state.loaded !== undefined) state.loaded = next.number;
      return;
    }
  };
  /** Whoever has loaded what was there before is refused from then on. */
  const replace = async (messages: readonly Message[]): Promise<void> => {
    state.known = await replaceConversation(
      path,
      freshOf(messages, () => false),
    );
    state.loaded = state.known.number;
  };
  return {
    replace$: (messages) => fileWork$(part, () => replace(messages)),
    load$: () => fileWork$(part, load),
    append$: (messages) => fileWork$(part, () => append(messages)),
  };
};
