import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { MillraceError } from '@millrace/core';
import { makeDirectory } from '@millrace/store';

/** Makes a directory for this user alone, and those above it that are not there. Rejects with `store` where that cannot be, or nothing can be written there. */
export const makePrivate = async (directory: string): Promise<void> => {
  try {
    // Nobody else reads what is asked and answered.
    await makeDirectory(directory);
    await access(directory, constants.W_OK);
  } catch (cause) {
    throw new MillraceError(
      'store',
      `Nothing can be written down in ${directory}: ${reasonOf(cause)}. Name another place with --store or MILLRACE_STORE, or none with --no-store.`,
      { cause },
    );
  }
};

const reasonOf = (error: unknown): string => {
  const reason = reasons.get(String(Reflect.get(Object(error), 'code')));
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
