import { MillraceError } from '@millrace/core';
import { parsedJson } from '@millrace/core/values';
import {
  type CheckedSessionQuery,
  checkSessionQuery,
  searchTextOf,
  sessionConflict,
  type SessionState,
  type SessionStore,
  type SessionSummary,
  type StoredSession,
  titleOf,
} from '@millrace/core/sessions';
import { checkId, storedName } from '../stored-name.js';
import { abortable$, type LazySql, type Query } from './sql.js';
import { indexedLength } from './tables.js';
import { numberIn, textIn, toSqlText } from './text.js';

/** Stores session states in a database, one row per session. */
export const sqlSessions = (lazy: LazySql): SessionStore => {
  const opened = async (signal: AbortSignal) => {
    const sql = await lazy.open(signal);
    return { sql, ...sql, ...sessionStatements(sql.schema) };
  };
  const load = async (
    sessionId: string,
    signal: AbortSignal,
  ): Promise<StoredSession | undefined> => {
    const key = keyOf(sessionId);
    const { query, load, schema } = await opened(signal);
    const [row] = await query(load, [key], signal);
    if (row === undefined) return undefined;
    const state = parsedJson(textIn(row, 'state'));
    if (state === undefined) throw damaged(sessionId, schema);
    return { version: numberIn(row, 'version'), state };
  };
  const save = async (
    sessionId: string,
    saved: Saved,
    expected: number | undefined,
    signal: AbortSignal,
  ): Promise<number> => {
    const key = keyOf(sessionId);
    const { sql, query, first, next, load } = await opened(signal);
    const values = [key, toSqlText(saved.state), toNullableText(saved.title), saved.search];
    // Not a single statement: repeated, it would meet its own version.
    const [row] = await sql.transaction(
      (query) =>
        expected === undefined
          ? query(first, [...values, toSqlText(sessionId)])
          : query(next, [...values, expected]),
      signal,
    );
    if (row !== undefined) return numberIn(row, 'version');
    const [found] = await query(load, [key], signal);
    throw sessionConflict(sessionId, expected, found && numberIn(found, 'version'));
  };
  const find = async (
    asked: CheckedSessionQuery,
    signal: AbortSignal,
  ): Promise<readonly SessionSummary[]> => {
    const { query, schema } = await opened(signal);
    if (asked.search !== '') await addSearchTexts(query, schema, signal);
    const rows = await query(...findStatement(schema, asked), signal);
    return rows.map((row) => ({
      id: textIn(row, 'id'),
      ...(row['title'] !== null && { title: textIn(row, 'title') }),
      savedAt: numberIn(row, 'saved_at'),
    }));
  };
  const remove = async (sessionId: string, signal: AbortSignal): Promise<void> => {
    const key = keyOf(sessionId);
    const { query, remove } = await opened(signal);
    await query(remove, [key], signal);
  };
  return {
    load$: (sessionId) => abortable$((signal) => load(sessionId, signal)),
    // Serialize the state now: it may change while the database opens.
    save$: (sessionId, state, expectedVersion) =>
      abortable$((signal) => save(sessionId, savedOf(state), expectedVersion, signal)),
    find$: (query) => abortable$((signal) => find(checkSessionQuery(query), signal)),
    remove$: (sessionId) => abortable$((signal) => remove(sessionId, signal)),
  };
};

/** A save is a single statement, so of several concurrent saves of one version only one succeeds. */
const sessionStatements = (schema: string) => {
  const sessions = `${schema}.sessions`;
  return {
    load: `select version, state from ${sessions} where key = $1`,
    first: `
      insert into ${sessions} (key, state, title, search, id) values ($1, $2, $3, $4, $5)
      on conflict (key) do nothing returning version`,
    // A caller may pass any number as the version, even one that does not fit the column.
    next: `
      update ${sessions}
      set state = $2, title = $3, search = $4, version = default, updated_at = clock_timestamp()
      where key = $1 and version::float8 = $5::float8 returning version`,
    remove: `delete from ${sessions} where key = $1`,
  };
};

interface Saved extends Pick<SessionSummary, 'title'> {
  readonly state: string;
  readonly search: string;
}

const savedOf = (state: SessionState): Saved => ({
  ...titleOf(state),
  state: JSON.stringify(state),
  search: searchTextOf(state),
});

const toNullableText = (text: string | undefined): string | null =>
  text === undefined ? null : toSqlText(text);

/** Contains only the conditions of the query, so that the planner can use an index for each of them. */
export const findStatement = (
  schema: string,
  { prefix, search, before, limit }: CheckedSessionQuery,
): readonly [statement: string, values: readonly unknown[]] => {
  const values: unknown[] = [];
  const value = (given: unknown): string => `$${values.push(given)}`;
  const conditions: string[] = [];
  if (before !== undefined) {
    const time = `'epoch'::timestamptz + ${value(before.savedAt)}::float8 * interval '1 millisecond'`;
    conditions.push(`(updated_at, key) < (${time}, ${value(storedName(before.id))})`);
  }
  if (prefix !== '') {
    const text = value(toSqlText(prefix));
    const indexed = `left(${text}::text, ${indexedLength})`;
    conditions.push(
      `left(id, ${indexedLength}) collate "C" between ${indexed}
        and ${indexed} || repeat(${value(lastCharacter)}::text, ${indexedLength})`,
      `left(id, length(${text}::text)) = ${text}::text`,
    );
  }
  if (search !== '') conditions.push(`strpos(search, ${value(search)}::text) > 0`);
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
  const statement = `
    select id, title, (extract(epoch from updated_at) * 1000)::float8 as saved_at
    from ${schema}.sessions ${where}
    order by updated_at desc, key desc limit ${value(limit)}`;
  return [statement, values];
};

const lastCharacter = '\u{10ffff}';

/** Adds the texts to search to sessions that were saved when there was no column for them. */
const addSearchTexts = async (query: Query, schema: string, signal: AbortSignal): Promise<void> => {
  const sessions = `${schema}.sessions`;
  for (;;) {
    const rows = await query(
      `select key, version, state from ${sessions} where search is null limit 100`,
      [],
      signal,
    );
    if (rows.length === 0) return;
    await query(
      `update ${sessions} as session set search = added.search
      from unnest($1::text[], $2::bigint[], $3::text[]) as added (key, version, search)
      where session.key = added.key and session.version = added.version`,
      [
        rows.map((row) => textIn(row, 'key')),
        rows.map((row) => row['version']),
        rows.map((row) => searchTextOf(parsedJson(textIn(row, 'state')))),
      ],
      signal,
    );
  }
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
