import type { StoredMemoryFactory } from '../memory/stored-memory.js';
import { conversationStatements } from './conversation-statements.js';
import { conversationWork, type ConversationWork } from './conversation-work.js';
import { abortedBy, type LazySql } from './sql.js';
import { tableMemory } from './table-memory.js';
import { runWork, type Work } from './work.js';

/** Stores conversations in a database that speaks the SQL of Postgres. */
export const sqlMemory = (lazy: LazySql): StoredMemoryFactory =>
  tableMemory((key, sessionId, signal) => {
    const workIn = (schema: string): ConversationWork =>
      conversationWork(conversationStatements(schema), key, sessionId);
    const read = async <T>(work: (on: ConversationWork) => Work<T>): Promise<T> => {
      const { query, schema } = abortedBy(await lazy.open(signal), signal);
      return runWork(query, work(workIn(schema)));
    };
    const write = async <T>(work: (on: ConversationWork) => Work<T>): Promise<T> => {
      const sql = abortedBy(await lazy.open(signal), signal);
      return sql.transaction((query) => runWork(query, work(workIn(sql.schema))));
    };
    return {
      load: (at) => read((on) => on.load(at)),
      last: (at) => read((on) => on.last(at)),
      append: (messages, options) => write((on) => on.append(messages, options)),
      branches: (at) => read((on) => on.branches(at)),
      moveHead: (to) => write((on) => on.moveHead(to)),
      remove: (at) => write((on) => on.remove(at)),
      all: () => read((on) => on.all()),
      replace: (entries, head) => write((on) => on.replace(entries, head)),
    };
  });
