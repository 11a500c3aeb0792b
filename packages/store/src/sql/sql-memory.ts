import type { Message } from '@millrace/core';
import { defer, from } from 'rxjs';
import {
  newMessages,
  conflict,
  type StoredMessage,
  parseMessage,
} from '../memory/stored-messages.js';
import type { StoredMemory, StoredMemoryFactory } from '../memory/stored-memory.js';
import { checkId, storedName } from '../stored-name.js';
import type { LazySql, Query } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';

/**
 * Stores conversations in a database, one row per message. An append errors with `conflict` if the conversation has
 * changed since it was loaded; without a load, it adds to the current messages.
 */
export const sqlMemory =
  (sql: LazySql): StoredMemoryFactory =>
  (sessionId) => {
    checkId('A session', sessionId);
    return memoryIn(sql, storedName(sessionId), sessionId);
  };

const memoryIn = (lazy: LazySql, key: string, sessionId: string): StoredMemory => {
  /** The position of the last message this memory knows. Positions are never reused, so a new one reveals a change. */
  const state: { loaded?: number } = {};
  const load = async (): Promise<readonly Message[]> => {
    const { query, schema } = await lazy.open();
    const rows = await query(
      `select conversation.length, message.message from ${schema}.conversations as conversation
      left join ${schema}.messages as message on message.conversation = conversation.key
      where conversation.key = $1 order by message.position`,
      [key],
    );
    const [row] = rows;
    state.loaded = row === undefined ? 0 : numberIn(row, 'length');
    return rows
      .filter(({ message }) => message !== null)
      .map((row) => parseMessage(textIn(row, 'message')));
  };
  /** Reads the length of the conversation, and locks its row until the transaction ends. */
  const lockedLength = async (query: Query, schema: string): Promise<number> => {
    const [row = {}] = await query(
      `insert into ${schema}.conversations (key, id) values ($1, $2)
      on conflict (key) do update set id = excluded.id returning length`,
      [key, toSqlText(sessionId)],
    );
    return numberIn(row, 'length');
  };
  /** Adds messages after a position, and returns the position of the last one. */
  const add = async (
    query: Query,
    schema: string,
    after: number,
    fresh: readonly StoredMessage[],
  ): Promise<number> => {
    await query(
      `insert into ${schema}.messages (conversation, position, id, message)
      select $1, $2::bigint + message.place, message.id, message.text
      from unnest($3::text[], $4::text[]) with ordinality as message (id, text, place)`,
      [key, after, fresh.map(({ id }) => storedName(id)), fresh.map(({ text }) => toSqlText(text))],
    );
    await query(
      `update ${schema}.conversations set length = $2, updated_at = clock_timestamp() where key = $1`,
      [key, after + fresh.length],
    );
    return after + fresh.length;
  };
  const append = async (messages: readonly Message[]): Promise<void> => {
    if (messages.length === 0) return;
    const sql = await lazy.open();
    const loaded = await sql.transaction(async (query) => {
      const length = await lockedLength(query, sql.schema);
      const known = await query(
        `select id, position from ${sql.schema}.messages where conversation = $1 and id = any ($2::text[])`,
        [key, messages.map(({ id }) => storedName(id))],
      );
      const ids = new Set(known.map((row) => textIn(row, 'id')));
      const fresh = newMessages(messages, (id) => ids.has(storedName(id)));
      if (fresh.length === 0) {
        // The caller repeats an append after losing its response: its own messages are no conflict.
        const isLast = known.some((row) => numberIn(row, 'position') === length);
        return isLast ? length : state.loaded;
      }
      if (state.loaded !== undefined && state.loaded !== length) throw conflict(sessionId);
      return add(query, sql.schema, length, fresh);
    });
    if (state.loaded !== undefined && loaded !== undefined) state.loaded = loaded;
  };
  /** Later appends of a reader that loaded the replaced messages error with `conflict`. */
  const replace = async (messages: readonly Message[]): Promise<void> => {
    const sql = await lazy.open();
    const { schema } = sql;
    const fresh = newMessages(messages, () => false);
    state.loaded = await sql.transaction(async (query) => {
      const length = await lockedLength(query, schema);
      await query(`delete from ${schema}.messages where conversation = $1`, [key]);
      return add(query, schema, length + 1, fresh);
    });
  };
  return {
    replace$: ({ entries }) => defer(() => from(replace(entries.map(({ message }) => message)))),
    load$: () => defer(() => from(load())),
    append$: (messages) => defer(() => from(append(messages))),
  };
};
