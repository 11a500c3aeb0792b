import { randomInt, randomUUID } from 'node:crypto';
import { readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MillraceError } from '@millrace/core';
import type { Aside } from './aside.js';
import { isGone, namesIn } from './failure.js';
import { syncDirectory, writeNew } from './make-directory.js';
import { headIn, readSessionFile, writeHead } from './session-file.js';

/**
 * A session is a directory. Its state is a file, written once and never changed, and an empty file beside it has the same name: that one says which file counts. To save
 * is to write another state, and to rename the empty file after it. Of many who do, one finds it under the name that they all know.
 */
export interface SessionMark {
  readonly version: number;
  /** What both files are called. */
  readonly name: string;
  /** The files of states that stood beside it. */
  readonly states: readonly string[];
}

const named = /^\d+-[0-9a-f-]{36}\.(?:json|current)$/;

/** A first version is any number, so that one that was removed and saved anew has none of its former versions. */
const firstVersions = 2 ** 47;

/** Says which version there is of a session; undefined where there is none. */
export const markOf = async (directory: string, tries = 10): Promise<SessionMark | undefined> => {
  const names = await namesIn(directory);
  const files = names.filter((name) => named.test(name));
  const states = files.filter((name) => name.endsWith('.json'));
  const [mark] = files
    .filter((name) => name.endsWith('.current'))
    .map((name) => ({ version: versionIn(name), name: basename(name, '.current'), states }))
    .sort((a, b) => b.version - a.version);
  if (mark !== undefined || names.length === 0) return mark;
  // Whoever reads a directory while a file in it is renamed may miss it.
  if (tries > 0) return markOf(directory, tries - 1);
  throw new MillraceError(
    'invalidState',
    `${directory} lacks the file that says which state counts (its name ends with .current). Restore the directory from a backup, or delete it to begin anew.`,
  );
};

/** Reads a session; undefined where there is none. */
export const readSession = (
  directory: string,
  sessionId: string,
): Promise<{ readonly version: number; readonly state: unknown } | undefined> =>
  atMark(directory, async (path, { version }) => ({
    version,
    state: readSessionFile(path, await readFile(path), { sessionId, version }),
  }));

/** Reads whose session it is; undefined where there is none. */
export const readSessionId = (directory: string): Promise<string | undefined> =>
  atMark(directory, async (path) => headIn(path, await readFile(path)).sessionId);

/** Reads the file that counts. */
const atMark = async <T>(
  directory: string,
  read: (path: string, mark: SessionMark) => Promise<T>,
  missing?: string,
): Promise<T | undefined> => {
  const mark = await markOf(directory);
  if (mark === undefined) return undefined;
  const path = join(directory, `${mark.name}.json`);
  try {
    return await read(path, mark);
  } catch (error) {
    if (!isGone(error)) throw error;
    // It was saved anew, or removed, since the mark was read.
    if (mark.name !== missing) return atMark(directory, read, mark.name);
    throw new MillraceError(
      'invalidState',
      `${path} is gone, and with it the state of the session. Restore it from a backup, or delete the directory to begin anew.`,
    );
  }
};

/** Saves a state, as `writeState` writes it, behind the one that a mark is of, and gives its version; nothing, where another one was first. */
export const writeSession = async (
  aside: Aside,
  directory: string,
  sessionId: string,
  state: string,
  before: SessionMark | undefined,
): Promise<number | undefined> => {
  const version = before === undefined ? 1 + randomInt(firstVersions) : before.version + 1;
  const name = `${version}-${randomUUID()}`;
  const text = writeHead({ sessionId, version }) + state;
  const isSaved =
    before === undefined
      ? await makeSession(aside, directory, name, text)
      : await replaceState(directory, before.name, name, text);
  if (!isSaved) return undefined;
  // Those that stood beside the one that was followed, up to this version, will never count. Others may be of a session that was made anew.
  const over = before?.states.filter((state) => versionIn(state) <= version) ?? [];
  // What is left behind costs room, and nothing else.
  await Promise.allSettled(over.map((state) => rm(join(directory, state), { force: true })));
  return version;
};

const makeSession = async (
  aside: Aside,
  directory: string,
  name: string,
  text: string,
): Promise<boolean> => {
  const isMade = await aside.make(directory, async (made) => {
    await writeNew(join(made, `${name}.json`), text);
    await writeNew(join(made, `${name}.current`), '');
    await syncDirectory(made);
  });
  if (isMade) await syncDirectory(dirname(directory));
  return isMade;
};

const replaceState = async (
  directory: string,
  before: string,
  name: string,
  text: string,
): Promise<boolean> => {
  const state = join(directory, `${name}.json`);
  try {
    await writeNew(state, text);
    // What counts must be there first, also after a crash of the machine.
    await syncDirectory(directory);
    await rename(join(directory, `${before}.current`), join(directory, `${name}.current`));
  } catch (error) {
    await rm(state, { force: true });
    if (isGone(error)) return false;
    throw error;
  }
  await syncDirectory(directory);
  return true;
};

const versionIn = (name: string): number => Number.parseInt(name, 10);
