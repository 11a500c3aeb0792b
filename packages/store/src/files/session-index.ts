import { existsSync } from 'node:fs';
import { rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sessionIn, type StoredCall } from '@millrace/core/journal';
import { storedName } from '../stored-name.js';
import type { Staging } from './staging.js';
import { isNotFound, readNames } from './file-system.js';
import type { NamedCall } from './list-calls.js';
import { makeUnsynced, syncDirectories } from './make-directory.js';

/**
 * The index of calls by session: an empty file `.sessions/<session>/<place>.<call>` for each call. It is created before
 * the first record of the call and deleted before the call, so every call has one. An entry without a call is ignored.
 */
export interface SessionIndex {
  /** Adds a call that a session starts. */
  add(sessionId: string, callId: string): Promise<void>;
  /** The calls of a session, newest first. */
  of(sessionId: string): Promise<readonly Required<NamedCall>[]>;
  forget(call: StoredCall): Promise<void>;
}

/** `list` lists all calls, to build an index that is missing. */
export const createSessionIndex = (
  root: string,
  staging: Staging,
  list: () => AsyncIterable<readonly StoredCall[]>,
): SessionIndex => {
  const indexRoot = join(root, '.sessions');
  const fill = async (made: string): Promise<void> => {
    for await (const calls of list()) {
      for (const call of calls) {
        const sessionId = sessionOf(call);
        if (sessionId === undefined) continue;
        const directory = join(made, storedName(sessionId));
        await makeUnsynced(directory);
        await write(directory, storedName(call.callId), Math.floor(call.createdAt));
        await syncDirectories(directory);
      }
    }
    await syncDirectories(made);
  };
  const directoryOf = async (sessionId: string): Promise<string> => {
    if (!existsSync(indexRoot)) await staging.create(indexRoot, fill);
    return join(indexRoot, storedName(sessionId));
  };
  const addEntry = async (directory: string, name: string): Promise<void> => {
    await makeUnsynced(directory);
    const entries = await entriesIn(directory);
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
    forget: async (call) => {
      const sessionId = sessionOf(call);
      if (sessionId === undefined) return;
      const directory = await directoryOf(sessionId);
      for (const { name, place } of await entriesIn(directory)) {
        if (name === storedName(call.callId)) await unlink(join(directory, `${place}.${name}`));
      }
      // Fails if the session has other calls.
      await rmdir(directory).catch(() => undefined);
    },
  };
};

const sessionOf = ({ callId, first }: StoredCall): string | undefined => sessionIn(callId, [first]);

const write = (directory: string, name: string, place: number): Promise<void> =>
  writeFile(join(directory, `${place}.${name}`), '', { mode: 0o600 });

const entriesIn = async (directory: string): Promise<readonly Required<NamedCall>[]> =>
  (await readNames(directory))
    .map((file) => {
      const end = file.indexOf('.');
      return { name: file.slice(end + 1), place: Number(file.slice(0, end)) };
    })
    .sort((a, b) => b.place - a.place);
