import { rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sessionIn, type StoredCall } from '@millrace/core/journal';
import { storedName } from '../stored-name.js';
import type { Aside } from './aside.js';
import { isGone, namesIn } from './failure.js';
import { isThere } from './is-there.js';
import type { NamedCall } from './list-calls.js';
import { makeDirectory, syncDirectory } from './make-directory.js';

/**
 * Which calls a session has: an empty file for each, `.sessions/<session>/<place>.<call>`. It is there before anything is written to the call, and goes before the call does; one of a
 * call that is not there means nothing.
 */
export interface SessionMarks {
  /** Marks a call that a session begins. */
  add(sessionId: string, callId: string): Promise<void>;
  /** The calls of a session, the one that was last begun first. */
  of(sessionId: string): Promise<readonly Required<NamedCall>[]>;
  forget(call: StoredCall): Promise<void>;
}

/** Makes the marks of a directory of calls. `list` gives the calls that were there before there were marks. */
export const createSessionMarks = (
  root: string,
  aside: Aside,
  list: () => AsyncIterable<readonly StoredCall[]>,
): SessionMarks => {
  const all = join(root, '.sessions');
  const fill = async (made: string): Promise<void> => {
    for await (const calls of list()) {
      for (const call of calls) {
        const sessionId = sessionOf(call);
        if (sessionId === undefined) continue;
        const directory = join(made, storedName(sessionId));
        await makeDirectory(directory);
        await write(directory, storedName(call.callId), Math.floor(call.createdAt));
      }
    }
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
