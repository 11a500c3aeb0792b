import { join } from 'node:path';
import { isMillraceError } from '@millrace/core';
import { sessionConflict, type SessionStore } from '@millrace/core/sessions';
import { checkId, idIn, storedName } from '../stored-name.js';
import { createAside } from './aside.js';
import { directoriesIn } from './failure.js';
import { fileWork$, type Part, partsOf } from './file-work.js';
import { writeState } from './session-file.js';
import { markOf, readSession, readSessionId, writeSession } from './session-files.js';

/**
 * Keeps the states of sessions in a directory, each in one of its own, which only this user can read. Several processes of one machine may use it at the same time. A state
 * is on the disk when its save is told.
 */
export const fileSessions = (directory: string): SessionStore => sessionsIn(partsOf(directory)(''));

/** As `fileSessions`, in a part of a store. */
export const sessionsIn = (part: Part): SessionStore => {
  const { root, check } = part;
  const aside = createAside(root, check);
  const pathOf = (sessionId: string): string => {
    checkId('A session', sessionId, 'invalidRequest');
    return join(root, storedName(sessionId));
  };
  return {
    load$: (sessionId) => fileWork$(part, () => readSession(pathOf(sessionId), sessionId)),
    save$: (sessionId, state, expectedVersion) =>
      fileWork$(part, async () => {
        const path = pathOf(sessionId);
        const text = writeState(state);
        const before = await markOf(path);
        const version =
          before?.version === expectedVersion
            ? await writeSession(aside, path, sessionId, text, before)
            : undefined;
        if (version !== undefined) return version;
        throw sessionConflict(sessionId, expectedVersion, (await markOf(path))?.version);
      }),
    list$: () => fileWork$(part, () => idsIn(root)),
    remove$: (sessionId) => fileWork$(part, () => aside.discard(pathOf(sessionId))),
  };
};

const idsIn = async (root: string): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (const name of await directoriesIn(root)) {
    const id = idIn(name) ?? (await readSessionId(join(root, name)).catch(unreadable));
    if (id !== undefined) ids.push(id);
  }
  return ids;
};

/** Who loads a session hears that it is damaged; the others are listed. */
const unreadable = (error: unknown): undefined => {
  if (!isMillraceError(error)) throw error;
};
