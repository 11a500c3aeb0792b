import type { Memory, MemoryFactory, Message } from '@millrace/core';
import { defer, from } from 'rxjs';
import { freshOf, goneOn, messageIn } from '../memory/appending.js';
import { checkId, storedName } from '../stored-name.js';
import type { LazySql } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';

/**
 * Keeps conversations in a database, a message a row. Who adds to a conversation that has gone on elsewhere since it was loaded gets `conflict`; who has not loaded
 * it adds to what is there.
 */
export const sqlMemory =
  (sql: LazySql): MemoryFactory =>
  (sessionId) => {
    checkId('A session', sessionId);
    return memoryIn(sql, storedName(sessionId), sessionId);
  };

const memoryIn = (lazy: LazySql, key: string, sessionId: string): Memory => {
  /** Messages that there were when it was loaded, and those added since. */
  const state: { loaded?: number } = {};
  const load = async (): Promise<readonly Message[]> => {
    const { query, schema } = await lazy.open();
    const rows = await query(
      `select message from ${schema}.messages where conversation = $1 order by position`,
      [key],
    );
    state.loaded = rows.length;
    return rows.map((row) => messageIn(textIn(row, 'message')));
  };
  const append = async (messages: readonly Message[]): Promise<void> => {
    if (messages.length === 0) return;
    const sql = await lazy.open();
    const conversations = `${sql.schema}.conversations`;
    const rows = `${sql.schema}.messages`;
    const names = messages.map(({ id }) => storedName(id));
    const loaded = await sql.transaction(async (query) => {
      await query(
        `insert into ${conversations} (key, id) values ($1, $2) on conflict (key) do nothing`,
        [key, toSqlText(sessionId)],
      );
      const [conversation = {}] = await query(
        `select length from ${conversations} where key = $1 for update`,
        [key],
      );
      const length = numberIn(conversation, 'length');
      const known = await query(
        `select id, position from ${rows} where conversation = $1 and id = any ($2::text[])`,
        [key, names],
      );
      const ids = new Set(known.map((row) => textIn(row, 'id')));
      const fresh = freshOf(messages, (id) => ids.has(storedName(id)));
      if (fresh.length === 0) {
        // What was added before, and not answered to, is what has gone on.
        const isLast = known.some((row) => numberIn(row, 'position') === length);
        return isLast ? length : state.loaded;
      }
      if (state.loaded !== undefined && state.loaded !== length) throw goneOn(sessionId);
      await query(
        `insert into ${rows} (conversation, position, id, message)
        select $1, $2::bigint + message.place, message.id, message.text
        from unnest($3::text[], $4::text[]) with ordinality as message (id, text, place)`,
        [
          key,
          length,
          fresh.map(({ id }) => storedName(id)),
          fresh.map(({ text }) => toSqlText(text)),
        ],
      );
      await query(
        `update ${conversations} set length = $2, updated_at = clock_timestamp() where key = $1`,
        [key, length + fresh.length],
      );
      return length + fresh.length;
    });
    if (state.loaded !== undefined && loaded !== undefined) state.loaded = loaded;
  };
  return {
    load$: () => defer(() => from(load())),
    append$: (messages) => defer(() => from(append(messages))),
  };
};
