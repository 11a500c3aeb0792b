import { MillraceError } from '@millrace/core';
import { parsedJson } from '@millrace/core/values';
import { sessionConflict, type SessionStore, type StoredSession } from '@millrace/core/sessions';
import { defer, from } from 'rxjs';
import { checkId, storedName } from '../stored-name.js';
import type { LazySql } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';

/** Stores session states in a database, one row per session. */
export const sqlSessions = (lazy: LazySql): SessionStore => {
  const opened = async () => {
    const { query, schema } = await lazy.open();
    return { query, schema, ...sessionStatements(schema) };
  };
  const load = async (sessionId: string): Promise<StoredSession | undefined> => {
    const key = keyOf(sessionId);
    const { query, load, schema } = await opened();
    const [row] = await query(load, [key]);
    if (row === undefined) return undefined;
    const state = parsedJson(textIn(row, 'state'));
    if (state === undefined) throw damaged(sessionId, schema);
    return { version: numberIn(row, 'version'), state };
  };
  const save = async (sessionId: string, text: string, expected?: number): Promise<number> => {
    const key = keyOf(sessionId);
    const { query, first, next, load } = await opened();
    const [saved] =
      expected === undefined
        ? await query(first, [key, toSqlText(text), toSqlText(sessionId)])
        : await query(next, [key, toSqlText(text), expected]);
    if (saved !== undefined) return numberIn(saved, 'version');
    const [found] = await query(load, [key]);
    throw sessionConflict(sessionId, expected, found && numberIn(found, 'version'));
  };
  const list = async (): Promise<readonly string[]> => {
    const { query, list } = await opened();
    return (await query(list)).map((row) => textIn(row, 'id'));
  };
  const remove = async (sessionId: string): Promise<void> => {
    const key = keyOf(sessionId);
    const { query, remove } = await opened();
    await query(remove, [key]);
  };
  return {
    load$: (sessionId) => defer(() => from(load(sessionId))),
    // Serialize the state now: it may change while the database opens.
    save$: (sessionId, state, expectedVersion) =>
      defer(() => from(save(sessionId, JSON.stringify(state), expectedVersion))),
    list$: () => defer(() => from(list())),
    remove$: (sessionId) => defer(() => from(remove(sessionId))),
  };
};

/** A save is a single statement, so of several concurrent saves of one version only one succeeds. */
const sessionStatements = (schema: string) => {
  const sessions = `${schema}.sessions`;
  return {
    load: `select version, state from ${sessions} where key = $1`,
    first: `
      insert into ${sessions} (key, state, id) values ($1, $2, $3)
      on conflict (key) do nothing returning version`,
    // A caller may pass any number as the version, even one that does not fit the column.
    next: `
      update ${sessions} set state = $2, version = default, updated_at = clock_timestamp()
      where key = $1 and version::float8 = $3::float8 returning version`,
    list: `select id from ${sessions} order by key`,
    remove: `delete from ${sessions} where key = $1`,
  };
};

const keyOf = (sessionId: string): string => {
  checkId('A session', sessionId, 'invalidRequest');
  return storedName(sessionId);
};

const damaged = (sessionId: string, schema: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The state of the session '${sessionId.slice(0, 100)}' in ${schema}.sessions is not JSON: it was edited. Restore it from a backup, or delete the row to start the session over.`,
  );
