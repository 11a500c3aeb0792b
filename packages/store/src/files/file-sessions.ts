import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isMillraceError } from '@millrace/core';
import { sessionConflict, type SessionStore } from '@millrace/core/sessions';
import { checkId, idIn, storedName } from '../stored-name.js';
import { createAside } from './aside.js';
import { directoriesIn } from './directories-in.js';
import { directoryGone } from './failure.js';
import { fileWork$ } from './file-work.js';
import { writeState } from './session-file.js';
import { markOf, readSession, readSessionId, writeSession } from './session-files.js';

/**
 * Keeps the states of sessions in a directory, each in one of its own, which only this user can read. Several processes of one machine may use it at the same time. A state
 * is on the disk when its save is told.
 */
export const fileSessions = (directory: string): SessionStore => {
  const root = resolve(directory);
  const aside = createAside(root);
  const known = { isThere: false };
  const pathOf = (sessionId: string): string => {
    checkId('A session', sessionId, 'invalidRequest');
    return join(root, storedName(sessionId));
  };
  return {
    load$: (sessionId) =>
      fileWork$(root, async () => {
        const found = await readSession(pathOf(sessionId), sessionId);
        known.isThere ||= found !== undefined;
        return found;
      }),
    save$: (sessionId, state, expectedVersion) =>
      fileWork$(root, async () => {
        const path = pathOf(sessionId);
        const text = writeState(state);
        const before = await markOf(path);
        const version =
          before?.version === expectedVersion
            ? await writeSession(aside, path, sessionId, text, before)
            : undefined;
        known.isThere ||= version !== undefined || before !== undefined;
        if (version !== undefined) return version;
        if (known.isThere && !existsSync(root)) throw directoryGone(root);
        throw sessionConflict(sessionId, expectedVersion, (await markOf(path))?.version);
      }),
    list$: () => fileWork$(root, () => sessionsIn(root)),
    remove$: (sessionId) => fileWork$(root, async () => aside.discard(pathOf(sessionId))),
  };
};

const sessionsIn = async (root: string): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (const name of await directoriesIn(root)) {
    const id = idIn(name) ?? (await quietly(() => readSessionId(join(root, name))));
    if (id !== undefined) ids.push(id);
  }
  return ids;
};

/** Who loads a session hears that it is damaged; the others are listed. */
const quietly = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await work();
  } catch (error) {
    if (isMillraceError(error)) return undefined;
    throw error;
  }
};
