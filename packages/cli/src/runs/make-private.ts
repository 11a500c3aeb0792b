import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
import { makeDirectory } from '@millrace/store';

/** Creates a directory that only this user can read, with its parents. Rejects with `store` if it is not writable. */
export const makePrivate = async (directory: string): Promise<void> => {
  try {
    await makeDirectory(directory);
    await access(directory, constants.W_OK);
  } catch (cause) {
    throw new MillraceError(
      'store',
      `Runs cannot be recorded in ${directory}: ${reasonOf(cause)}. Choose another place with --store or MILLRACE_STORE, or record nothing with --no-store.`,
      { cause },
    );
  }
};

const reasonOf = (error: unknown): string => {
  const reason = reasons.get(String(Reflect.get(Object(error), 'code')));
  return reason ?? messageOf(error);
};

const reasons: ReadonlyMap<string, string> = new Map([
  ['EEXIST', 'a file has this name'],
  ['ENOTDIR', 'a part of its path is a file'],
  ['ENOENT', 'the directory cannot be created'],
  ['EACCES', 'permission denied'],
  ['EPERM', 'writing is not permitted'],
  ['EROFS', 'its file system is read-only'],
  ['ENOSPC', 'the disk is full'],
]);
