import type { Message } from '@millrace/core';
import { checkTree } from '@millrace/core/values';
import { defer, from, map } from 'rxjs';
import { parseMessage } from '../memory/stored-messages.js';
import type { StoredMemory, StoredMemoryFactory } from '../memory/stored-memory.js';
import { checkId, storedName } from '../stored-name.js';
import type { ConversationTable, MessageText } from './conversation-table.js';

/** The memory of sessions in a database. */
export const tableMemory =
  (conversation: (key: string, sessionId: string) => ConversationTable): StoredMemoryFactory =>
  (sessionId) => {
    checkId('A session', sessionId);
    return memoryIn(conversation(storedName(sessionId), sessionId));
  };

const memoryIn = (table: ConversationTable): StoredMemory => ({
  load$: ({ at } = {}) =>
    defer(() => from(table.load(at))).pipe(map((texts) => texts.map(parseMessage))),
  last$: ({ at } = {}) => defer(() => from(table.last(at))),
  append$: (messages, options = {}) =>
    defer(() =>
      // Serialize the messages now: they may change while the database opens.
      from(table.append(messages.map(messageText), options)),
    ).pipe(map((change) => ({ appended: messages, removed: [], ...change }))),
  branches$: (at) => defer(() => from(table.branches(at))),
  moveHead$: (to) =>
    defer(() => from(table.moveHead(to))).pipe(
      map((head) => ({ appended: [], removed: [], head })),
    ),
  remove$: (at) =>
    defer(() => from(table.remove(at))).pipe(map((change) => ({ appended: [], ...change }))),
  all$: () =>
    defer(() => from(table.all())).pipe(
      map(({ entries, head }) => ({
        entries: entries.map(({ json, after }) => ({ message: parseMessage(json), after })),
        head,
      })),
    ),
  replace$: (tree) =>
    defer(() => {
      checkTree(tree);
      const entries = tree.entries.map(({ message, after }) => ({
        ...messageText(message),
        after,
      }));
      return from(table.replace(entries, tree.head));
    }),
});

const messageText = (message: Message): MessageText => ({
  id: message.id,
  json: JSON.stringify(message),
});
