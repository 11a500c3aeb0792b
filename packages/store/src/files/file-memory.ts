import { join } from 'node:path';
import type { Message } from '@millrace/core';
import { newMessages, conflict, parseMessage } from '../memory/stored-messages.js';
import type { StoredMemory, StoredMemoryFactory } from '../memory/stored-memory.js';
import { checkId, storedName } from '../stored-name.js';
import {
  addToConversation,
  type Conversation,
  noConversation,
  readConversation,
  replaceConversation,
} from './conversation-files.js';
import { directoryMissing } from './file-system.js';
import { fileWork$, type Part, partsOf } from './file-work.js';

/**
 * Stores conversations, each in its own subdirectory that only this user can read. Messages are on disk when their
 * append completes. An append errors with `conflict` if the conversation has changed since it was loaded; without a
 * load, it adds to the current messages.
 */
export const fileMemory = (directory: string): StoredMemoryFactory =>
  memoryIn(partsOf(directory)(''));

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
    return state.known.messages.map(({ text }) => parseMessage(text));
  };
  const append = async (messages: readonly Message[]): Promise<void> => {
    for (;;) {
      const known = await readConversation(path, state.known);
      state.known = known;
      const ids = new Set(known.messages.map(({ id }) => id));
      const fresh = newMessages(messages, (id) => ids.has(id));
      const isRepeated = fresh.length === 0 && messages.length > 0;
      if (messages.length === 0) return;
      if (isRepeated) {
        const last = known.messages.at(-1)?.id;
        // The caller repeats an append after losing its response: its own messages are no conflict.
        if (messages.some(({ id }) => id === last) && state.loaded !== undefined) {
          state.loaded = known.number;
        }
        return;
      }
      if (state.loaded !== undefined && state.loaded !== known.number) {
        throw known.number === 0 ? directoryMissing(part.root) : conflict(sessionId);
      }
      const next = await addToConversation(path, known, fresh);
      if (next === undefined) continue;
      state.known = next;
      if (state.loaded !== undefined) state.loaded = next.number;
      return;
    }
  };
  /** Later appends of a reader that loaded the replaced messages error with `conflict`. */
  const replace = async (messages: readonly Message[]): Promise<void> => {
    state.known = await replaceConversation(
      path,
      newMessages(messages, () => false),
    );
    state.loaded = state.known.number;
  };
  return {
    replace$: ({ entries }) =>
      fileWork$(part, () => replace(entries.map(({ message }) => message))),
    load$: () => fileWork$(part, load),
    append$: (messages) => fileWork$(part, () => append(messages)),
  };
};
