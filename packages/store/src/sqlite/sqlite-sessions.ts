import { type Entry, MillraceError } from '@millrace/core';
import {
  appendedState,
  checkSessionQuery,
  searchTextOf,
  sessionConflict,
  type SessionChange,
  type SessionState,
  type SessionStore,
  type StoredSession,
  titleOf,
} from '@millrace/core/sessions';
import { isRecord, parsedJson } from '@millrace/core/values';
import { defer, from, map, type SchedulerLike } from 'rxjs';
import { toSqlText } from '../sql/text.js';
import { checkId, storedName } from '../stored-name.js';
import type { SqliteEngine } from './engine.js';
import type {
  AppendedSession,
  LoadedSession,
  SaveOutcome,
  WholeSession,
} from './session-operations.js';

/** The states of sessions in a SQLite database: the last one that was saved as a whole, and the messages that were appended since. */
export const sqliteSessions = (
  engine: SqliteEngine,
  scheduler: SchedulerLike,
): Required<SessionStore> => {
  const saved = async (
    sessionId: string,
    expected: number | undefined,
    work: (key: string) => Promise<SaveOutcome>,
  ): Promise<number> => {
    const outcome = await work(keyOf(sessionId));
    if ('version' in outcome) return outcome.version;
    throw sessionConflict(sessionId, expected, outcome.found ?? undefined);
  };
  return {
    load$: (sessionId) =>
      defer(() => from(engine.run('loadSession', keyOf(sessionId)))).pipe(
        map((loaded) => loaded && sessionOf(sessionId, loaded)),
      ),
    // States are serialized now: they may change while the database opens.
    save$: (sessionId, state, expectedVersion) =>
      defer(() => {
        const session = wholeSession(sessionId, state, expectedVersion, scheduler.now());
        return from(
          saved(sessionId, expectedVersion, (key) =>
            engine.run('saveSession', { ...session, key }),
          ),
        );
      }),
    append$: (sessionId, change, expectedVersion) =>
      defer(() => {
        const session = appendedSession(change, expectedVersion, scheduler.now());
        return from(
          saved(sessionId, expectedVersion, (key) =>
            engine.run('appendToSession', { ...session, key }),
          ),
        );
      }),
    find$: (query) => defer(() => from(engine.run('findSessions', checkSessionQuery(query)))),
    remove$: (sessionId) => defer(() => from(engine.run('removeSession', keyOf(sessionId)))),
  };
};

const keyOf = (sessionId: string): string => {
  checkId('A session', sessionId, 'invalidRequest');
  return storedName(sessionId);
};

const wholeSession = (
  id: string,
  state: SessionState,
  expected: number | undefined,
  now: number,
): Omit<WholeSession, 'key'> => ({
  ...titleIn(state),
  id: toSqlText(id),
  state: toSqlText(JSON.stringify(state)),
  texts: messagesIn(state).map(searchTextIn),
  expected: expected ?? null,
  now,
});

const appendedSession = (
  { entries, head, rest }: SessionChange,
  expected: number,
  now: number,
): Omit<AppendedSession, 'key'> => ({
  ...titleIn(rest),
  entries: entries.map((entry) => toSqlText(JSON.stringify(entry))),
  texts: entries.map(({ message }) => searchTextIn(message)),
  rest: toSqlText(JSON.stringify(rest)),
  head: head === null ? null : toSqlText(head),
  expected,
  now,
});

const titleIn = (state: unknown): Pick<WholeSession, 'title' | 'titleText'> => {
  const { title } = titleOf(state);
  return {
    title: title === undefined ? null : toSqlText(title),
    titleText: searchTextOf({ title }),
  };
};

const messagesIn = (state: unknown): readonly unknown[] => {
  const { messages, branches } = isRecord(state) ? state : {};
  const onBranches = listOf(branches).map((entry) => isRecord(entry) && entry['message']);
  return [...listOf(messages), ...onBranches];
};

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The text of a message, without the empty title before it. */
const searchTextIn = (message: unknown): string => searchTextOf({ messages: [message] }).slice(1);

const sessionOf = (
  sessionId: string,
  { version, state: stateText, change }: LoadedSession,
): StoredSession => {
  const parsed = (text: string): unknown => {
    const value = parsedJson(text);
    if (value === undefined) throw damaged(sessionId);
    return value;
  };
  const state = parsed(stateText);
  if (change === undefined) return { version, state };
  const entries = change.entries.map(parsed).filter(isEntry);
  const rest = parsed(change.rest);
  if (entries.length !== change.entries.length || !isRest(rest)) throw damaged(sessionId);
  return { version, state: appendedState(state, { entries, head: change.head, rest }) };
};

/** Checks only the shape, as this package wrote the rest. */
const isEntry = (value: unknown): value is Entry =>
  isRecord(value) && isRecord(value['message']) && 'after' in value;

const isRest = (value: unknown): value is SessionChange['rest'] => isRecord(value);

const damaged = (sessionId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The stored state of the session '${sessionId.slice(0, 100)}' is not JSON: it was edited. Restore it from a backup, or remove the session to start it over.`,
  );
