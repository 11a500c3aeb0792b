import { isMillraceError, MillraceError } from 'millrace';
import { checkFormat, defined } from 'millrace/values';
import { dirname } from 'node:path';
import { directoryMissing, toStoreError } from '../files/file-system.js';
import type { Failure } from './messages.js';

/**
 * The error for a failure in the thread. Says what is wrong and what to do, but nothing of what the driver says: that may
 * contain values.
 */
export const sqliteError = (path: string, failure: Failure): MillraceError => {
  switch (failure.type) {
    case 'busy':
      return new MillraceError(
        'store',
        `${thing(path)} failed: other processes have been writing to it all the time. Retry later, or use a server: openPostgres() from @millrace/store/postgres.`,
        { retryable: true },
      );
    case 'sqlite':
      return codeError(path, failure.code);
    case 'system': {
      const system = Object.assign(new Error(failure.code), { code: failure.code });
      return toStoreError(dirname(path))(system);
    }
    case 'moved':
      return directoryMissing(dirname(path));
    case 'foreign':
      return new MillraceError(
        'invalidState',
        `The file ${path} is a database of another program. Choose another path.`,
      );
    case 'format':
      return formatError(path, failure);
    case 'noSharedMemory':
      return new MillraceError(
        'store',
        `${thing(path)} failed: its file system has no shared memory, as network file systems do not. Choose a path on a local disk.`,
      );
    case 'noDriver':
      return noDriver();
    case 'notPlain':
      return new MillraceError(
        'config',
        `${thing(path)} got a value that is not plain data, such as a function. Pass strings, numbers, lists and plain objects.`,
      );
    case 'refused':
      return refusal(failure);
    case 'other':
      return new MillraceError(
        'store',
        `${thing(path)} failed: the operation ended with ${failure.name}.`,
      );
  }
};

/** Neither the runtime nor a package has SQLite. */
export const noDriver = (): MillraceError =>
  new MillraceError(
    'config',
    'openSqlite() needs Node 22.13 or later, which has SQLite, or a driver: npm install libsql',
  );

const refusal = ({
  code,
  message,
  retryable,
  ...about
}: Extract<Failure, { type: 'refused' }>): MillraceError =>
  new MillraceError(code, message, {
    retryable,
    ...defined({ status: about.status, userMessage: about.userMessage }),
  });

const thing = (path: string): string => `The database ${path}`;

const formatError = (
  path: string,
  { part, found, read }: Extract<Failure, { type: 'format' }>,
): MillraceError => {
  try {
    checkFormat(`${thing(path)} (${part})`, found, read);
  } catch (error) {
    if (isMillraceError(error)) return error;
  }
  return new MillraceError('invalidState', `${thing(path)} has an unknown format.`);
};

const codeError = (path: string, code: number): MillraceError => {
  const known = reasons[code] ?? reasons[code & 255];
  const {
    why,
    type = 'store',
    retryable = false,
  } = known ?? {
    why: `SQLite reported the error ${code}`,
  };
  const cause = Object.assign(new Error(`SQLite error ${code}`), { code });
  return new MillraceError(type, `${thing(path)} failed: ${why}.`, { cause, retryable });
};

interface Reason {
  readonly why: string;
  readonly type?: 'invalidState';
  readonly retryable?: true;
}

const damaged =
  'the file is damaged. Restore it from a backup, or move it away to begin with an empty one';
const full: Reason = {
  why: 'the disk is full. Free some space, then retry',
  retryable: true,
};

/** By result code, https://sqlite.org/rescode.html */
const reasons: Readonly<Partial<Record<number, Reason>>> = {
  // The statements are always the same, so what they name is missing.
  1: {
    why: 'its tables are not those of this release. Restore it from a backup, or move it away to begin with an empty one',
    type: 'invalidState',
  },
  3: { why: 'permission denied. Grant this user write access, or choose another path' },
  7: { why: 'there is not enough memory', retryable: true },
  8: { why: 'the file is read-only. Grant this user write access, or choose another path' },
  10: { why: 'the disk reported an I/O error. Check the system log', retryable: true },
  11: { why: damaged, type: 'invalidState' },
  13: full,
  14: { why: 'the file cannot be opened. Check the permissions, or choose another path' },
  26: { why: 'the file is not a SQLite database. Choose another path', type: 'invalidState' },
  // SQLITE_IOERR_SHMSIZE: the file of the shared memory cannot grow.
  4874: full,
};
