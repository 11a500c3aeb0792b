import { constants, fstatSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { isMillraceError, MillraceError } from 'millrace';
import { isRecord, messageOf } from 'millrace/values';

/** The code of an error of the file system, such as `ENOENT`. */
export const errorCode = (error: unknown): string | undefined =>
  isRecord(error) && typeof error['code'] === 'string' ? error['code'] : undefined;

export const isNotFound = (error: unknown): boolean => errorCode(error) === 'ENOENT';

/** Resolves to `other` if the work rejects with `ENOENT`. */
export const ifMissing = <T, Other>(work: Promise<T>, other: Other): Promise<T | Other> =>
  work.catch((error: unknown) => {
    if (isNotFound(error)) return other;
    throw error;
  });

export const statIfExists = (path: string): Promise<Stats | undefined> =>
  ifMissing(stat(path), undefined);

/** Whether there is nothing at a path. Synchronous: it takes microseconds, and far longer through another thread. Throws other errors. */
export const isMissing = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false }) === undefined;

/** The entries of a directory; empty if it does not exist. */
export const readNames = async (directory: string): Promise<readonly string[]> =>
  isMissing(directory) ? [] : ifMissing(readdir(directory), []);

/** The subdirectories with names made by `storedName`; empty if `root` does not exist. */
export const storedDirectories = async (root: string): Promise<readonly string[]> =>
  (await ifMissing(readdir(root, { withFileTypes: true }), []))
    .filter((entry) => entry.isDirectory() && /^[ih]-[^.]*$/.test(entry.name))
    .map(({ name }) => name);

/**
 * Opens a file, and nothing else: a pipe would hold a thread of the process until another process writes to it. Rejects with
 * `invalidState` if something else is in its place.
 */
export const openFile = async (
  path: string,
  flags: number = constants.O_RDONLY,
): Promise<FileHandle> => {
  const file = await open(path, flags | nonBlocking).catch((error: unknown) => {
    throw isNoFile(error) ? notAFile(path, error) : error;
  });
  if (fstatSync(file.fd).isFile()) return file;
  await file.close();
  throw notAFile(path);
};

/** Reads a whole file, as `openFile` opens it. */
export const readWhole = async (path: string): Promise<Buffer> => {
  const file = await openFile(path);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
};

/** Windows has no such flag. */
const nonBlocking = process.platform === 'win32' ? 0 : constants.O_NONBLOCK;

/** `ENXIO`: a pipe without a reader, or a socket. */
const isNoFile = (error: unknown): boolean =>
  ['EISDIR', 'ELOOP', 'ENXIO'].includes(errorCode(error) ?? '');

const notAFile = (path: string, cause?: unknown): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} is not a file: a directory, a pipe or a link to itself is in its place. Restore the file from a backup, or delete what is there.`,
    { cause },
  );

/** Whether the file already exists, or the directory already exists and is not empty. */
export const alreadyExists = (error: unknown): boolean =>
  ['EEXIST', 'ENOTEMPTY'].includes(errorCode(error) ?? '');

/** Maps a file system error to a `store` error that says how to fix it. */
export const toStoreError =
  (directory: string) =>
  (error: unknown): MillraceError => {
    if (isMillraceError(error)) return error;
    const code = errorCode(error) ?? '';
    const reason = Object.hasOwn(reasons, code) ? reasons[code] : undefined;
    const [why, retryable] = reason ?? [`it could not be used (${messageOf(error)})`, false];
    return new MillraceError('store', `The store in ${directory} failed: ${why}.`, {
      cause: error,
      retryable,
    });
  };

/** The error for using a store whose directory was deleted or moved while it was open. */
export const directoryMissing = (directory: string): MillraceError =>
  new MillraceError(
    'store',
    `The store in ${directory} failed: the directory was moved or deleted while it was in use. Restore it, or open the store at its new path.`,
  );

/** Rejects a path that is not a non-empty string, such as an environment variable that is not set. */
export const checkDirectory = (
  owner: string,
  directory: unknown,
  wanted = "a directory, such as './data'",
): void => {
  if (typeof directory === 'string' && directory !== '' && !directory.includes('\0')) return;
  const given =
    typeof directory !== 'string'
      ? String(directory)
      : directory === ''
        ? 'an empty string'
        : 'one with a NUL character';
  throw new MillraceError(
    'config',
    `${owner} needs the path of ${wanted}, not ${given}. If it comes from an environment variable, set the variable or pass a default.`,
  );
};

const reasons: Readonly<Record<string, readonly [why: string, retryable: boolean]>> = {
  ENOSPC: ['the disk is full. Free some space, then retry', true],
  EDQUOT: ['the disk quota is used up. Free some space or raise the quota, then retry', true],
  EROFS: ['the file system is read-only. Choose another directory', false],
  EACCES: ['permission denied. Grant this user write access, or choose another directory', false],
  EPERM: ['permission denied. Grant this user write access, or choose another directory', false],
  ENOENT: ['a directory is missing or cannot be created. Choose another directory', false],
  ENOTDIR: ['a file is in the place of a directory. Choose another directory', false],
  EEXIST: ['a file is in the place of a directory. Choose another directory', false],
  ENAMETOOLONG: ['a name in its path is too long. Choose a shorter one', false],
  EMFILE: [
    'too many open files. Raise the limit (ulimit -n), or run fewer calls in parallel',
    true,
  ],
  ENFILE: ['too many open files on this machine. Retry later', true],
  EIO: ['the disk reported an I/O error. Check the system log', true],
};

/** Runs cleanup that may fail. */
export const ignoreErrors = (work: () => void): void => {
  try {
    work();
  } catch {
    // Other processes detect a leftover lock.
  }
};
