import { MillraceError } from 'millrace';
import {
  checkSessionQuery,
  searchTextOf,
  sessionConflict,
  type SessionChange,
  type SessionState,
  type SessionStore,
  titleOf,
} from 'millrace/sessions';
import { isRecord } from 'millrace/values';
import { defer, from, map, type SchedulerLike } from 'rxjs';
import { searchTextIn, searchTextsIn, sessionOf } from '../sessions/appended-session.js';
import { toSqlText } from '../sql/text.js';
import { sessionKey } from '../stored-name.js';
import type { SqliteEngine } from './engine.js';
import type { AppendedSession, SaveOutcome, WholeSession } from './session-operations.js';

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
    const outcome = await work(sessionKey(sessionId));
    if ('version' in outcome) return outcome.version;
    throw sessionConflict(sessionId, expected, outcome.found ?? undefined);
  };
  return {
    load$: (sessionId) =>
      defer(() => from(engine.run('loadSession', sessionKey(sessionId)))).pipe(
        map((loaded) => loaded && sessionOf(loaded, () => damaged(sessionId))),
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
    remove$: (sessionId) => defer(() => from(engine.run('removeSession', sessionKey(sessionId)))),
  };
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
  texts: searchTextsIn(entries),
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

const damaged = (sessionId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The stored state of the session '${sessionId.slice(0, 100)}' is not JSON: it was edited. Restore it from a backup, or remove the session to start it over.`,
  );
