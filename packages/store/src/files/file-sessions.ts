import { join } from 'node:path';
import { isMillraceError } from '@millrace/core';
import { sessionConflict, type SessionStore } from '@millrace/core/sessions';
import { checkId, parseStoredName, storedName } from '../stored-name.js';
import { createStaging } from './staging.js';
import { storedDirectories } from './file-system.js';
import { fileWork$, type Part, partsOf } from './file-work.js';
import { writeState } from './session-file.js';
import { readPointer, readSession, readSessionId, writeSession } from './session-files.js';

/**
 * Stores session states, each in its own subdirectory that only this user can read. Several processes on one machine
 * can share the directory. A state is on disk when its save emits.
 */
export const fileSessions = (directory: string): SessionStore => sessionsIn(partsOf(directory)(''));

export const sessionsIn = (part: Part): SessionStore => {
  const { root, check } = part;
  const staging = createStaging(root, check);
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
        const before = await readPointer(path);
        const version =
          before?.version === expectedVersion
            ? await writeSession(staging, path, sessionId, text, before)
            : undefined;
        if (version !== undefined) return version;
        throw sessionConflict(sessionId, expectedVersion, (await readPointer(path))?.version);
      }),
    list$: () => fileWork$(part, () => idsIn(root)),
    remove$: (sessionId) => fileWork$(part, () => staging.discard(pathOf(sessionId))),
  };
};

const idsIn = async (root: string): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (const name of await storedDirectories(root)) {
    const id = parseStoredName(name) ?? (await readSessionId(join(root, name)).catch(unreadable));
    if (id !== undefined) ids.push(id);
  }
  return ids;
};

/** Loading a damaged session errors; listing skips it. */
const unreadable = (error: unknown): undefined => {
  if (!isMillraceError(error)) throw error;
};
