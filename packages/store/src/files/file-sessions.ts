import { join } from 'node:path';
import { isMillraceError } from 'millrace';
import {
  checkSessionQuery,
  searchTextOf,
  sessionConflict,
  type SessionStore,
  type SessionSummary,
  titleOf,
} from 'millrace/sessions';
import { sessionKey, storedName } from '../stored-name.js';
import { sessionAppender } from './append-session.js';
import { createStaging } from './staging.js';
import { fileWork$, type Part, partsOf } from './file-work.js';
import { writeState } from './session-file.js';
import {
  pointerTime,
  readPointer,
  readSession,
  readSessionHead,
  writeSession,
} from './session-files.js';
import { sessionsByTime } from './sessions-by-time.js';

/**
 * Stores session states, each in its own subdirectory that only this user can read. Several processes on one machine
 * can share the directory. A state is on disk when its save emits.
 */
export const fileSessions = (directory: string): SessionStore => sessionsIn(partsOf(directory)(''));

export const sessionsIn = (part: Part, now: () => number = Date.now): SessionStore => {
  const { root, check } = part;
  const staging = createStaging(root, check);
  const byTime = sessionsByTime(part);
  const clock = createClock(now);
  const writer = { staging, byTime, clock };
  const append = sessionAppender(writer);
  const pathOf = (sessionId: string): string => join(root, sessionKey(sessionId));
  return {
    load$: (sessionId) => fileWork$(part, () => readSession(pathOf(sessionId), sessionId)),
    save$: (sessionId, state, expectedVersion) =>
      fileWork$(part, async () => {
        const path = pathOf(sessionId);
        const saved = { sessionId, ...titleOf(state), state: writeState(state) };
        const before = await readPointer(path);
        const version =
          before?.version === expectedVersion
            ? await writeSession(writer, path, saved, before)
            : undefined;
        if (version !== undefined) return version;
        throw sessionConflict(sessionId, expectedVersion, (await readPointer(path))?.version);
      }),
    append$: (sessionId, change, expectedVersion) =>
      fileWork$(part, async () => {
        const path = pathOf(sessionId);
        const before = await readPointer(path);
        const version =
          before?.version === expectedVersion
            ? await append(path, sessionId, change, before)
            : undefined;
        if (version !== undefined) return version;
        throw sessionConflict(sessionId, expectedVersion, (await readPointer(path))?.version);
      }),
    find$: (query) =>
      fileWork$(part, async () => {
        const checked = checkSessionQuery(query);
        return byTime.find(checked, (name) => readSummary(join(root, name), checked.search));
      }),
    remove$: (sessionId) =>
      fileWork$(part, async () => {
        const path = pathOf(sessionId);
        const pointer = await readPointer(path).catch(unreadable);
        await staging.discard(path);
        if (pointer) await byTime.remove(storedName(sessionId), pointerTime(pointer));
      }),
  };
};

/** The time in microseconds. Those that are read in the same millisecond differ. */
const createClock = (now: () => number): (() => number) => {
  let last = 0;
  return () => {
    const micros = Math.floor(now()) * 1000;
    last = Math.floor(last / 1000) * 1000 === micros ? last + 1 : micros;
    return last;
  };
};

/** Resolves to undefined if the session does not exist, does not match or is damaged. */
const readSummary = async (
  directory: string,
  search: string,
): Promise<Pick<SessionSummary, 'id' | 'title'> | undefined> => {
  const head = await readSessionHead(directory).catch(unreadable);
  if (head === undefined) return undefined;
  const { sessionId: id } = head;
  if (search !== '') {
    const stored = await readSession(directory, id).catch(unreadable);
    if (!searchTextOf(stored?.state).includes(search)) return undefined;
  }
  return { id, ...titleOf(head) };
};

/** Loading a damaged session errors; listing skips it. */
const unreadable = (error: unknown): undefined => {
  if (!isMillraceError(error)) throw error;
};
