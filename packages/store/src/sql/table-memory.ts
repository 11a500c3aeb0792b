import type { Message } from 'millrace';
import { checkTree } from 'millrace/values';
import { defer, map, type Observable } from 'rxjs';
import { parseMessage } from '../memory/stored-messages.js';
import type { StoredMemory, StoredMemoryFactory } from '../memory/stored-memory.js';
import { checkId, storedName } from '../stored-name.js';
import type { ConversationTable, MessageText } from './conversation-table.js';
import { abortable$ } from './sql.js';

export const tableMemory =
  (
    conversation: (key: string, sessionId: string, signal: AbortSignal) => ConversationTable,
  ): StoredMemoryFactory =>
  (sessionId) => {
    checkId('A session', sessionId);
    const key = storedName(sessionId);
    return memoryIn((work) => abortable$((signal) => work(conversation(key, sessionId, signal))));
  };

type On = <T>(work: (table: ConversationTable) => Promise<T>) => Observable<T>;

const memoryIn = (on$: On): StoredMemory => ({
  load$: ({ at } = {}) =>
    on$((table) => table.load(at)).pipe(map((texts) => texts.map(parseMessage))),
  last$: ({ at } = {}) => on$((table) => table.last(at)),
  append$: (messages, options = {}) =>
    // Serializes the messages now: they may change while the database opens.
    on$((table) => table.append(messages.map(messageText), options)).pipe(
      map((change) => ({ appended: messages, removed: [], ...change })),
    ),
  branches$: (at) => on$((table) => table.branches(at)),
  moveHead$: (to) =>
    on$((table) => table.moveHead(to)).pipe(map((head) => ({ appended: [], removed: [], head }))),
  remove$: (at) =>
    on$((table) => table.remove(at)).pipe(map((change) => ({ appended: [], ...change }))),
  all$: () =>
    on$((table) => table.all()).pipe(
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
      return on$((table) => table.replace(entries, tree.head));
    }),
});

const messageText = (message: Message): MessageText => ({
  id: message.id,
  json: JSON.stringify(message),
});
