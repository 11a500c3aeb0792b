import { constants } from 'node:fs';
import { access, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { MillraceError } from '@millrace/core';

/** Makes a directory for this user alone, and those above it that are not there. Rejects with `store` where that cannot be, or nothing can be written there. */
export const makePrivate = async (directory: string): Promise<void> => {
  try {
    await make(directory);
    await access(directory, constants.W_OK);
  } catch (cause) {
    throw new MillraceError(
      'store',
      `Nothing can be written down in ${directory}: ${reasonOf(cause)}. Name another place with --store or MILLRACE_STORE, or none with --no-store.`,
      { cause },
    );
  }
};

/** What is above is made once: Node's recursive `mkdir` tries for ever where it is there and the system says that it is not, as in `/proc`. */
const make = async (directory: string, isAboveMade = false): Promise<void> => {
  try {
    // Nobody else reads what is asked and answered.
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST' && (await stat(directory)).isDirectory()) return;
    const above = dirname(directory);
    if (code !== 'ENOENT' || isAboveMade || above === directory) throw error;
    await make(above);
    await make(directory, true);
  }
};

const codeOf = (error: unknown): string => String(Reflect.get(Object(error), 'code'));

const reasonOf = (error: unknown): string => {
  const reason = reasons.get(codeOf(error));
  return reason ?? (error instanceof Error ? error.message : String(error));
};

const reasons: ReadonlyMap<string, string> = new Map([
  ['EEXIST', 'a file has this name'],
  ['ENOTDIR', 'a part of its path is a file'],
  ['ENOENT', 'no directory can be made there'],
  ['EACCES', 'this user may not write there'],
  ['EPERM', 'nobody may write there'],
  ['EROFS', 'its file system is read-only'],
  ['ENOSPC', 'the disk is full'],
]);
