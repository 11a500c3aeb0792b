import { defined } from 'millrace/values';
import type { ConversationTable } from '../sql/conversation-table.js';
import type { SqliteEngine } from './engine.js';

export const sqliteConversation = (
  engine: SqliteEngine,
  key: string,
  sessionId: string,
): ConversationTable => {
  const named = [key, sessionId] as const;
  return {
    load: (at) => engine.run('loadConversation', named, at),
    last: (at) => engine.run('lastOfConversation', named, at),
    append: (messages, { after, replaces }) => {
      const place = defined({ after, replaces });
      return engine.run('appendToConversation', named, messages, place);
    },
    branches: (at) => engine.run('branchesOfConversation', named, at),
    moveHead: (to) => engine.run('moveHeadOfConversation', named, to),
    remove: (at) => engine.run('removeFromConversation', named, at),
    all: () => engine.run('wholeConversation', named),
    replace: (entries, head) => engine.run('replaceConversation', named, entries, head),
  };
};
