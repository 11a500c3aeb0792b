import type { Stats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { isMillraceError, MillraceError } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';

/** The code of an error of the file system, such as `ENOENT`. */
export const codeOf = (error: unknown): string | undefined =>
  isRecord(error) && typeof error['code'] === 'string' ? error['code'] : undefined;

/** Tells whether an error says that there is no such file. */
export const isGone = (error: unknown): boolean => codeOf(error) === 'ENOENT';

/** What work gives, or, where it rejects because there is no such file, something else. */
export const whenGone = <T, Other>(work: Promise<T>, other: Other): Promise<T | Other> =>
  work.catch((error: unknown) => {
    if (isGone(error)) return other;
    throw error;
  });

/** What the file system says of a file or a directory; undefined where there is none. */
export const statIn = (path: string): Promise<Stats | undefined> => whenGone(stat(path), undefined);

/** Tells whether there is a file or a directory; with a number, whether it is that very file. */
export const isThere = async (path: string, ino?: number): Promise<boolean> => {
  const found = await statIn(path);
  return found !== undefined && (ino === undefined || found.ino === ino);
};

/** The names in a directory; none where there is no such directory. */
export const namesIn = (directory: string): Promise<readonly string[]> =>
  whenGone(readdir(directory), []);

/** The directories in a directory that are called as `storedName` calls them; none where there is no such directory. */
export const directoriesIn = async (root: string): Promise<readonly string[]> =>
  (await whenGone(readdir(root, { withFileTypes: true }), []))
    .filter((entry) => entry.isDirectory() && /^[ih]-[^.]*$/.test(entry.name))
    .map(({ name }) => name);

/** Tells whether an error says that there is such a file, or a directory that is not empty. */
export const isTaken = (error: unknown): boolean =>
  ['EEXIST', 'ENOTEMPTY'].includes(codeOf(error) ?? '');

/** What an error of the file system is to those who use a store in this directory. */
export const fileFailure =
  (directory: string) =>
  (error: unknown): MillraceError => {
    if (isMillraceError(error)) return error;
    const code = codeOf(error) ?? '';
    const reason = Object.hasOwn(reasons, code) ? reasons[code] : undefined;
    const [why, retryable] = reason ?? [`it could not be used (${messageOf(error)})`, false];
    return new MillraceError('store', `The store in ${directory} failed: ${why}.`, {
      cause: error,
      retryable,
    });
  };

/** The error of who uses an open store whose directory is not there any more. */
export const directoryGone = (directory: string): MillraceError =>
  new MillraceError(
    'store',
    `The store in ${directory} failed: the directory was moved or deleted while it was in use. Put it back, or open the store where it is now.`,
  );

/** Refuses a directory that is none, such as an environment variable that is not set. */
export const checkDirectory = (owner: string, directory: unknown): void => {
  if (typeof directory === 'string' && directory !== '') return;
  const given = directory === '' ? 'an empty string' : String(directory);
  throw new MillraceError(
    'config',
    `${owner} needs the path of a directory, such as './data', not ${given}. If it comes from an environment variable, set that, or give a default.`,
  );
};

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

const reasons: Readonly<Record<string, readonly [why: string, retryable: boolean]>> = {
  ENOSPC: ['the disk is full. Make room, and try again', true],
  EDQUOT: ['the quota is used up. Make room, or raise it, and try again', true],
  EROFS: ['the file system is read-only. Choose another directory', false],
  EACCES: ['this user may not write there. Give it the right, or choose another directory', false],
  EPERM: ['this user may not write there. Give it the right, or choose another directory', false],
  ENOENT: ['a directory of it is gone, or cannot be made. Choose another directory', false],
  ENOTDIR: ['a file is where a directory should be. Choose another directory', false],
  EEXIST: ['a file is where a directory should be. Choose another directory', false],
  EMFILE: ['too many files are open. Raise the limit (ulimit -n), or make fewer calls', true],
  ENFILE: ['too many files are open. Try again', true],
  EIO: ['the disk reported an error. Look into the system log', true],
};
