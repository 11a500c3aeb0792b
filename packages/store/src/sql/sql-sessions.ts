import { MillraceError } from 'millrace';
import {
  type CheckedSessionQuery,
  checkSessionQuery,
  searchTextOf,
  sessionConflict,
  type SessionChange,
  type SessionState,
  type SessionStore,
  type StoredSession,
  titleOf,
} from 'millrace/sessions';
import { type LoadedSession, searchTextsIn, sessionOf } from '../sessions/appended-session.js';
import { sessionKey, storedName } from '../stored-name.js';
import { abortable$, type LazySql, type Row } from './sql.js';
import { summaryIn } from './session-rows.js';
import { indexedLength } from './tables.js';
import { fromSqlText, numberIn, textIn, toSqlText } from './text.js';

/** Stores session states in a database: a row per session, and one per message that was appended since its last save. */
export const sqlSessions = (lazy: LazySql): Required<SessionStore> => {
  const opened = async (signal: AbortSignal) => {
    const sql = await lazy.open(signal);
    return { sql, ...sql, ...sessionStatements(sql.schema) };
  };
  const load = async (
    sessionId: string,
    signal: AbortSignal,
  ): Promise<StoredSession | undefined> => {
    const key = sessionKey(sessionId);
    const { query, load: loadStatement, schema } = await opened(signal);
    const [row] = await query(loadStatement, [key], signal);
    return row && sessionOf(loadedIn(row), () => damaged(sessionId, schema));
  };
  const write = async (
    sessionId: string,
    expected: number | undefined,
    statement: 'first' | 'next' | 'append',
    values: readonly unknown[],
    signal: AbortSignal,
  ): Promise<number> => {
    const key = sessionKey(sessionId);
    const { sql, query, ...statements } = await opened(signal);
    // Not a single statement: repeated, it would meet its own version.
    const [row] = await sql.transaction(
      (run) => run(statements[statement], [key, ...values]),
      signal,
    );
    if (row !== undefined) return numberIn(row, 'version');
    const [found] = await query(statements.version, [key], signal);
    throw sessionConflict(sessionId, expected, found && numberIn(found, 'version'));
  };
  const find = async (asked: CheckedSessionQuery, signal: AbortSignal) => {
    const { query, schema } = await opened(signal);
    return (await query(...findStatement(schema, asked), signal)).map(summaryIn);
  };
  const remove = async (sessionId: string, signal: AbortSignal): Promise<void> => {
    const key = sessionKey(sessionId);
    const { query, remove: removeStatement } = await opened(signal);
    await query(removeStatement, [key], signal);
  };
  return {
    load$: (sessionId) => abortable$((signal) => load(sessionId, signal)),
    // Serialize the state now: it may change while the database opens.
    save$: (sessionId, state, expected) =>
      abortable$((signal) =>
        expected === undefined
          ? write(sessionId, expected, 'first', firstValues(sessionId, state), signal)
          : write(sessionId, expected, 'next', [...stateValues(state), expected], signal),
      ),
    append$: (sessionId, change, expected) =>
      abortable$((signal) =>
        write(sessionId, expected, 'append', changeValues(change, expected), signal),
      ),
    find$: (query) => abortable$((signal) => find(checkSessionQuery(query), signal)),
    remove$: (sessionId) => abortable$((signal) => remove(sessionId, signal)),
  };
};

/** A save is a single statement, so of several concurrent saves of one version only one succeeds. */
const sessionStatements = (schema: string) => {
  const sessions = `${schema}.sessions`;
  const entries = `${schema}.session_entries`;
  return {
    load: `
      select version, state, rest, head, array(
        select entry from ${entries} where session = key order by place
      ) as entries
      from ${sessions} where key = $1`,
    version: `select version from ${sessions} where key = $1`,
    first: `
      insert into ${sessions} (key, state, title, search, id) values ($1, $2, $3, $4, $5)
      on conflict (key) do nothing returning version`,
    // A caller may pass any number as the version, even one that does not fit the column.
    next: `
      with saved as (
        update ${sessions} set state = $2, title = $3, search = $4, rest = null, head = null,
          version = default, updated_at = clock_timestamp()
        where key = $1 and version::float8 = $5::float8 returning key, version
      ), removed as (
        delete from ${entries} using saved where session = saved.key
      )
      select version from saved`,
    /** The text to search begins with the title. It is not written again unless that changes. */
    append: `
      with next as (
        select nextval('${schema}.session_versions') as version
      ), saved as (
        update ${sessions} as session set title = $2, rest = $5, head = $6, search = case
            when session.title is not distinct from $2 then session.search
            else $3::text || coalesce(substr(session.search, nullif(strpos(session.search, $4::text), 0)), '')
          end,
          version = next.version, updated_at = clock_timestamp()
        from next
        where session.key = $1 and session.version::float8 = $7::float8
        returning session.key, session.version
      ), added as (
        insert into ${entries} (session, entry, search)
        select saved.key, new.entry, new.search
        from saved, unnest($8::text[], $9::text[]) with ordinality as new (entry, search, at)
        order by new.at
      )
      select version from saved`,
    remove: `delete from ${sessions} where key = $1`,
  };
};

const stateValues = (state: SessionState): readonly unknown[] => [
  toSqlText(JSON.stringify(state)),
  titleIn(state),
  searchTextOf(state),
];

const firstValues = (sessionId: string, state: SessionState): readonly unknown[] => [
  ...stateValues(state),
  toSqlText(sessionId),
];

const changeValues = (
  { entries, head, rest }: SessionChange,
  expected: number,
): readonly unknown[] => [
  ...[titleIn(rest), searchTextOf({ title: titleOf(rest).title }), separator],
  ...[toSqlText(JSON.stringify(rest)), head === null ? null : toSqlText(head), expected],
  entries.map((entry) => toSqlText(JSON.stringify(entry))),
  searchTextsIn(entries),
];

const titleIn = (state: unknown): string | null => {
  const { title } = titleOf(state);
  return title === undefined ? null : toSqlText(title);
};

/** The character between the texts that a search compares. */
const separator = searchTextOf({ messages: [{}] });

const loadedIn = (row: Row): LoadedSession => {
  const { entries } = row;
  return {
    version: numberIn(row, 'version'),
    state: textIn(row, 'state'),
    change:
      row['rest'] !== null && Array.isArray(entries)
        ? {
            entries: entries.map((entry) => fromSqlText(String(entry))),
            rest: textIn(row, 'rest'),
            head: row['head'] === null ? null : textIn(row, 'head'),
          }
        : undefined,
  };
};

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
  if (search !== '') {
    const text = value(search);
    conditions.push(`(strpos(search, ${text}::text) > 0 or exists (
      select from ${schema}.session_entries as entry where session = sessions.key and strpos(entry.search, ${text}::text) > 0
    ))`);
  }
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
  const statement = `
    select id, title, (extract(epoch from updated_at) * 1000)::float8 as saved_at
    from ${schema}.sessions ${where}
    order by updated_at desc, key desc limit ${value(limit)}`;
  return [statement, values];
};

const lastCharacter = '\u{10ffff}';

const damaged = (sessionId: string, schema: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The state of the session '${sessionId.slice(0, 100)}' in ${schema}.sessions is not JSON: it was edited. Restore it from a backup, or delete the row to start the session over.`,
  );
