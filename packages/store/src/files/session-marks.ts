import { rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sessionIn, type StoredCall } from '@millrace/core/journal';
import { storedName } from '../stored-name.js';
import type { Aside } from './aside.js';
import { isGone, isThere, namesIn } from './failure.js';
import type { NamedCall } from './list-calls.js';
import { makeDirectory, syncDirectory } from './make-directory.js';

/**
 * The index of calls by session: an empty file `.sessions/<session>/<place>.<call>` for each call. It is created before the first record of the call, and deleted before the call, so no call is
 * without one. A file whose call does not exist is ignored.
 */
export interface SessionMarks {
  /** Marks a call that a session begins. */
  add(sessionId: string, callId: string): Promise<void>;
  /** The calls of a session, the newest first. */
  of(sessionId: string): Promise<readonly Required<NamedCall>[]>;
  forget(call: StoredCall): Promise<void>;
}

/** `list` lists all calls: the index of a directory from before there was one is made of it. */
export const createSessionMarks = (
  root: string,
  aside: Aside,
  list: () => AsyncIterable<readonly StoredCall[]>,
): SessionMarks => {
  const all = join(root, '.sessions');
  const fill = async (made: string): Promise<void> => {
    const sessions = new Set([made]);
    for await (const calls of list()) {
      for (const call of calls) {
        const sessionId = sessionOf(call);
        if (sessionId === undefined) continue;
        const directory = join(made, storedName(sessionId));
        await makeDirectory(directory);
        await write(directory, storedName(call.callId), Math.floor(call.createdAt));
        sessions.add(directory);
      }
    }
    for (const directory of sessions) await syncDirectory(directory);
  };
  const directoryOf = async (sessionId: string): Promise<string> => {
    if (!(await isThere(all))) await aside.make(all, fill);
    return join(all, storedName(sessionId));
  };
  const mark = async (directory: string, name: string): Promise<void> => {
    await makeDirectory(directory);
    const marks = await marksIn(directory);
    if (marks.some((it) => it.name === name)) return;
    await write(directory, name, (marks[0]?.place ?? 0) + 1);
    await syncDirectory(directory);
  };
  return {
    add: async (sessionId, callId) => {
      const directory = await directoryOf(sessionId);
      const marked = (): Promise<void> => mark(directory, storedName(callId));
      // Whoever has just forgotten the last call of the session has removed its directory.
      await marked().catch((error: unknown) => {
        if (!isGone(error)) throw error;
        return marked();
      });
    },
    of: async (sessionId) => marksIn(await directoryOf(sessionId)),
    forget: async (call) => {
      const sessionId = sessionOf(call);
      if (sessionId === undefined) return;
      const directory = await directoryOf(sessionId);
      for (const { name, place } of await marksIn(directory)) {
        if (name === storedName(call.callId)) await unlink(join(directory, `${place}.${name}`));
      }
      // One in which there are others stays.
      await rmdir(directory).catch(() => undefined);
    },
  };
};

const sessionOf = ({ callId, first }: StoredCall): string | undefined => sessionIn(callId, [first]);

const write = (directory: string, name: string, place: number): Promise<void> =>
  writeFile(join(directory, `${place}.${name}`), '', { mode: 0o600 });

const marksIn = async (directory: string): Promise<readonly Required<NamedCall>[]> =>
  (await namesIn(directory))
    .map((file) => {
      const end = file.indexOf('.');
      return { name: file.slice(end + 1), place: Number(file.slice(0, end)) };
    })
    .sort((a, b) => b.place - a.place);
