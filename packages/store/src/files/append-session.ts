import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type SessionChange, titleOf } from 'millrace/sessions';
import { openFile, readWhole } from './file-system.js';
import { writeNew } from './make-directory.js';
import { type AppendedTo, type Part, writeAppended, writeEntries } from './session-file.js';
import {
  readSessionHead,
  type SessionPointer,
  type SessionWriter,
  writeSession,
} from './session-files.js';

/** Appends to a session as the successor of a state. Resolves to its version, undefined on a conflict. */
export type AppendSession = (
  directory: string,
  sessionId: string,
  change: SessionChange,
  previous: SessionPointer,
) => Promise<number | undefined>;

/** Maximum number of sessions whose files a writer continues. */
const mostFiles = 1_000;

/**
 * Appends messages to files of this writer's own: one for each session, which it continues while the state refers to all of it at its
 * end. Otherwise it starts a new file, which takes in the shorter ones before it: so a state refers to few files, and a
 * message is copied few times, however many writers append in turn.
 */
export const sessionAppender = (writer: SessionWriter): AppendSession => {
  const files = new Map<string, Part>();
  return async (directory, sessionId, change, previous) => {
    const head = await readSessionHead(directory);
    if (head?.version !== previous.version) return undefined;
    const { base, parts } = head.appended ?? { base: previous.name, parts: [] };
    const own = files.get(directory);
    // If the save fails, what is in the file is not known. A save at the same time uses another one.
    files.delete(directory);
    const added = appendedPart(directory, parts, own, writeEntries(change.entries));
    const appended: AppendedTo = { base, parts: added.parts };
    const saved = { sessionId, ...titleOf(change.rest), state: writeAppended(change), appended };
    const version = await writeSession(writer, directory, saved, previous, added.write).catch(
      async (error: unknown) => {
        await added.discard();
        throw error;
      },
    );
    if (version === undefined) {
      await added.discard();
      return undefined;
    }
    const [file] = added.parts.slice(-1);
    for (const oldest of files.keys()) if (files.size >= mostFiles) files.delete(oldest);
    if (file !== undefined && added.isOwn) files.set(directory, file);
    return version;
  };
};

interface AddedPart {
  readonly parts: readonly Part[];
  /** Whether the last of them is a file of this writer. */
  readonly isOwn: boolean;
  readonly write: () => Promise<unknown>;
  /** Removes the file of a save that has failed, if it is new. */
  readonly discard: () => Promise<unknown>;
}

const appendedPart = (
  directory: string,
  parts: readonly Part[],
  own: Part | undefined,
  text: string,
): AddedPart => {
  const last = parts.at(-1);
  const isOwn = own !== undefined && last?.[0] === own[0] && last[1] === own[1];
  const nothing = (): Promise<unknown> => Promise.resolve();
  if (text === '') return { parts, isOwn, write: nothing, discard: nothing };
  if (isOwn) {
    const [file, bytes] = own;
    const part: Part = [file, bytes + Buffer.byteLength(text)];
    const write = (): Promise<unknown> => appendTo(join(directory, file), text);
    return { parts: [...parts.slice(0, -1), part], isOwn, write, discard: nothing };
  }
  const file = `${randomUUID()}.entries`;
  const path = join(directory, file);
  let size = Buffer.byteLength(text);
  let kept = parts.length;
  for (let before = parts[kept - 1]; before !== undefined && before[1] <= size;) {
    size += before[1];
    kept -= 1;
    before = parts[kept - 1];
  }
  const write = async (): Promise<void> => {
    const copied: string[] = [];
    for (const [name, bytes] of parts.slice(kept)) {
      copied.push((await readWhole(join(directory, name))).subarray(0, bytes).toString('utf8'));
    }
    await writeNew(path, copied.join('') + text);
  };
  const discard = (): Promise<unknown> => rm(path, { force: true });
  return { parts: [...parts.slice(0, kept), [file, size]], isOwn: true, write, discard };
};

/** Appends to a file that exists. The text is on disk when this resolves. */
const appendTo = async (path: string, text: string): Promise<void> => {
  // Without `O_CREAT`: the session may have been removed.
  const file = await openFile(path, constants.O_WRONLY | constants.O_APPEND);
  try {
    await file.appendFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
};
