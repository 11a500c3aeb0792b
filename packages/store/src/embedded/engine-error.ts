import { isRecord } from '@millrace/core/values';

/**
 * Converts what the database engine throws when the file system fails, an object with an `errno` and no message, to a
 * system error. Returns undefined for other errors.
 */
export const engineError = (error: unknown): Error | undefined => {
  if (error instanceof Error || !isRecord(error) || typeof error['errno'] !== 'number') {
    return undefined;
  }
  const { errno } = error;
  const code = codes[errno];
  return Object.assign(
    new Error(`the system reported the error ${code ?? errno}`, { cause: error }),
    {
      ...(code === undefined ? {} : { code }),
    },
  );
};

/** WASI error numbers: https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#errno */
const codes: Readonly<Partial<Record<number, string>>> = {
  2: 'EACCES',
  19: 'EDQUOT',
  20: 'EEXIST',
  29: 'EIO',
  33: 'EMFILE',
  41: 'ENFILE',
  44: 'ENOENT',
  51: 'ENOSPC',
  54: 'ENOTDIR',
  63: 'EPERM',
  69: 'EROFS',
};
