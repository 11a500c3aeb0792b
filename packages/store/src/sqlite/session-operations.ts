import type { CheckedSessionQuery, SessionSummary } from 'millrace/sessions';
import type { LoadedSession } from '../sessions/appended-session.js';
import { summaryIn } from '../sql/session-rows.js';
import { numberIn, textIn, toSqlText } from '../sql/text.js';
import { storedName } from '../stored-name.js';
import type { Database } from './database.js';
import { read, write } from './operation.js';
import type { SqlValue } from './sqlite-driver.js';
import type { TablesOfPart } from './tables.js';

export const sessionTables: TablesOfPart = {
  part: 'sessions',
  format: 1,
  statements: [
    `create table sessions (
      place integer primary key,
      key text not null unique,
      id text not null,
      version integer not null,
      title text,
      -- The title as a search compares it.
      title_text text not null,
      -- The state that was last saved as a whole.
      state text not null,
      -- What messages that were appended since have changed beside the messages; null without changes.
      rest text,
      head text,
      saved_at real not null
    ) strict`,
    `create index sessions_by_time on sessions (saved_at, key)`,
    `create index sessions_by_id on sessions (substr(id, 1, 128))`,
    `create table session_entries (
      place integer primary key,
      session integer not null references sessions on delete cascade,
      entry text not null
    ) strict`,
    `create index entries_by_session on session_entries (session, place)`,
    // The texts of the messages, as a search compares them.
    `create table session_texts (
      place integer primary key,
      session integer not null references sessions on delete cascade,
      text text not null
    ) strict`,
    `create index texts_by_session on session_texts (session)`,
    // A version is never reused, even if a session is removed and saved again.
    `create table session_versions (last integer not null) strict`,
    `insert into session_versions (last) values (0)`,
  ],
};

/** The values that each save stores beside the messages. Texts are encoded by `toSqlText`. */
interface SavedSession {
  readonly key: string;
  readonly title: string | null;
  readonly titleText: string;
  /** The texts of the added messages, as a search compares them. */
  readonly texts: readonly string[];
  /** The version that is replaced; null for a new session. */
  readonly expected: number | null;
  readonly now: number;
}

export interface WholeSession extends SavedSession {
  readonly id: string;
  readonly state: string;
}

export interface AppendedSession extends SavedSession {
  readonly entries: readonly string[];
  readonly rest: string;
  readonly head: string | null;
}

/** The new version, or the one that was found instead of the expected one: null if there is no such session. */
export type SaveOutcome = { readonly version: number } | { readonly found: number | null };

const load = (database: Database, key: string): LoadedSession | undefined => {
  const row = database.get(
    'select place, version, state, rest, head from sessions where key = ?',
    key,
  );
  if (row === undefined) return undefined;
  const entries = (): readonly string[] =>
    database
      .all(
        'select entry from session_entries where session = ? order by place',
        numberIn(row, 'place'),
      )
      .map((entry) => textIn(entry, 'entry'));
  return {
    version: numberIn(row, 'version'),
    state: textIn(row, 'state'),
    change:
      row['rest'] === null
        ? undefined
        : {
            entries: entries(),
            rest: textIn(row, 'rest'),
            head: row['head'] === null ? null : textIn(row, 'head'),
          },
  };
};

const nextVersion = (database: Database): number =>
  numberIn(
    database.get('update session_versions set last = last + 1 returning last') ?? {},
    'last',
  );

/** The time of a save. Saves within a millisecond keep their order. */
const timeAfter = (database: Database, now: number): number => {
  const row = database.get('select max(saved_at) as last from sessions') ?? {};
  const last = row['last'] === null ? 0 : numberIn(row, 'last');
  return last >= now && last < now + 1 ? last + 0.001 : now;
};

/** The session to save, if it has the expected version. */
const found = (
  database: Database,
  { key, expected }: SavedSession,
): { readonly place: number | null; readonly version: number | null; readonly fits: boolean } => {
  const row = database.get('select place, version from sessions where key = ?', key);
  const version = row === undefined ? null : numberIn(row, 'version');
  return {
    place: row === undefined ? null : numberIn(row, 'place'),
    version,
    fits: version === expected,
  };
};

const addTexts = (database: Database, place: number, texts: readonly string[]): void => {
  for (const text of texts) {
    if (text === '') continue;
    database.run('insert into session_texts (session, text) values (?, ?)', place, text);
  }
};

const save = (database: Database, session: WholeSession): SaveOutcome => {
  const before = found(database, session);
  if (!before.fits) return { found: before.version };
  const { key, id, title, titleText, state, texts, now } = session;
  const version = nextVersion(database);
  if (before.place !== null) {
    database.run('delete from session_entries where session = ?', before.place);
    database.run('delete from session_texts where session = ?', before.place);
  }
  const row = database.get(
    `insert into sessions (key, id, version, title, title_text, state, saved_at)
    values (?, ?, ?, ?, ?, ?, ?)
    on conflict (key) do update set version = excluded.version, title = excluded.title,
      title_text = excluded.title_text, state = excluded.state, rest = null, head = null,
      saved_at = excluded.saved_at
    returning place`,
    key,
    id,
    version,
    title,
    titleText,
    state,
    timeAfter(database, now),
  );
  addTexts(database, numberIn(row ?? {}, 'place'), texts);
  return { version };
};

const append = (database: Database, session: AppendedSession): SaveOutcome => {
  const { place, version: known, fits } = found(database, session);
  if (place === null || !fits) return { found: known };
  const { title, titleText, entries, rest, head, texts, now } = session;
  const version = nextVersion(database);
  database.run(
    `update sessions set version = ?, title = ?, title_text = ?, rest = ?, head = ?, saved_at = ?
    where place = ?`,
    version,
    title,
    titleText,
    rest,
    head,
    timeAfter(database, now),
    place,
  );
  for (const entry of entries) {
    database.run('insert into session_entries (session, entry) values (?, ?)', place, entry);
  }
  addTexts(database, place, texts);
  return { version };
};

/** Contains only the conditions of the query, so that an index can be used for each of them. */
const find = (
  database: Database,
  { prefix, search, before, limit }: CheckedSessionQuery,
): readonly SessionSummary[] => {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  if (before !== undefined) {
    conditions.push('(saved_at, key) < (?, ?)');
    values.push(before.savedAt, storedName(before.id));
  }
  if (prefix !== '') {
    const text = toSqlText(prefix);
    const beginning = Array.from(text).slice(0, indexedLength).join('');
    conditions.push(`substr(id, 1, ${indexedLength}) between ? and ?`, 'substr(id, 1, ?) = ?');
    values.push(beginning, beginning + lastCharacter.repeat(indexedLength));
    values.push(Array.from(text).length, text);
  }
  if (search !== '') {
    conditions.push(`(instr(title_text, ?) > 0 or exists (
      select 1 from session_texts where session = sessions.place and instr(text, ?) > 0
    ))`);
    values.push(search, search);
  }
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
  const rows = database.all(
    `select id, title, saved_at from sessions ${where}
    order by saved_at desc, key desc limit ?`,
    ...values,
    limit,
  );
  return rows.map(summaryIn);
};

/** The number of characters of an id that are indexed. */
const indexedLength = 128;
const lastCharacter = '\u{10ffff}';

/** The operations of a `SessionStore`. */
export const sessionOperations = {
  loadSession: read(load),
  saveSession: write(save),
  appendToSession: write(append),
  findSessions: read(find),
  removeSession: write((database, key: string) =>
    database.run('delete from sessions where key = ?', key),
  ),
};
