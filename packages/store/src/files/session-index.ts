import { existsSync } from 'node:fs';
import { rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sessionIn, type StoredCall } from 'millrace/journal';
import { storedName } from '../stored-name.js';
import type { Staging } from './staging.js';
import { ifMissing, isNotFound, readNames } from './file-system.js';
import type { NamedCall } from './list-calls.js';
import { makeUnsynced, syncDirectories } from './make-directory.js';

/**
 * The index of calls by session: an empty file `.sessions/<session>/<place>.<call>` for each call. It is created before
 * the first record of the call and deleted after the call, so every call has one. An entry without a call is ignored.
 */
export interface SessionIndex {
  add(sessionId: string, callId: string): Promise<void>;
  /** The calls of a session, newest first. */
  of(sessionId: string): Promise<readonly SessionEntry[]>;
  /** Deletes the entries of calls, by the names of their directories. */
  forget(sessionId: string, names: ReadonlySet<string>): Promise<void>;
}

interface SessionEntry extends NamedCall {
  readonly place: number;
}

export const sessionsName = '.sessions';

/** `list` lists all calls, to build an index that is missing. */
export const createSessionIndex = (
  root: string,
  staging: Staging,
  list: () => AsyncIterable<readonly StoredCall[]>,
): SessionIndex => {
  const indexRoot = join(root, sessionsName);
  const fill = async (made: string): Promise<void> => {
    const directories = new Set<string>();
    for await (const calls of list()) {
      for (const { callId, createdAt, first } of calls) {
        const sessionId = sessionIn(callId, [first]);
        if (sessionId === undefined) continue;
        const directory = join(made, storedName(sessionId));
        await makeUnsynced(directory);
        directories.add(directory);
        await write(directory, storedName(callId), Math.floor(createdAt));
      }
    }
    for (const directory of directories) await syncDirectories(directory);
    await syncDirectories(made);
  };
  const directoryOf = async (sessionId: string): Promise<string> => {
    if (!existsSync(indexRoot)) await staging.create(indexRoot, fill);
    return join(indexRoot, storedName(sessionId));
  };
  const addEntry = async (directory: string, name: string): Promise<void> => {
    const isMade = await makeUnsynced(directory);
    const entries = isMade ? [] : await entriesIn(directory);
    if (entries.some((it) => it.name === name)) return;
    await write(directory, name, (entries[0]?.place ?? 0) + 1);
    await syncDirectories(directory, indexRoot);
  };
  return {
    add: async (sessionId, callId) => {
      const directory = await directoryOf(sessionId);
      const tryAdd = (): Promise<void> => addEntry(directory, storedName(callId));
      // Another process has just removed the last call of the session, and with it the directory.
      await tryAdd().catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
        return tryAdd();
      });
    },
    of: async (sessionId) => entriesIn(await directoryOf(sessionId)),
    forget: async (sessionId, names) => {
      const directory = join(indexRoot, storedName(sessionId));
      for (const { name, place } of await entriesIn(directory)) {
        if (names.has(name))
          await ifMissing(unlink(join(directory, `${place}.${name}`)), undefined);
      }
      // Fails if the session has other calls.
      await rmdir(directory).catch(() => undefined);
    },
  };
};

const write = (directory: string, name: string, place: number): Promise<void> =>
  writeFile(join(directory, `${place}.${name}`), '', { mode: 0o600 });

const entriesIn = async (directory: string): Promise<readonly SessionEntry[]> =>
  (await readNames(directory))
    .map((file): SessionEntry => {
      const end = file.indexOf('.');
      return { name: file.slice(end + 1), place: Number(file.slice(0, end)), from: 'session' };
    })
    .sort((a, b) => b.place - a.place);
