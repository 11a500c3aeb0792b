import { isRecord } from '@millrace/core/adapter';

/**
 * What the engine of the database throws when its file system fails, as an error of the system: by itself it is an object with a number, without a message.
 * Nothing, if it is another error.
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

/** Numbers of WASI: https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#errno */
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
