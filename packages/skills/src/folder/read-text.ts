import { constants } from 'node:fs';
import { open, readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { platform } from 'node:process';

/**
 * Passes a path of a directory that leads to it even if it is replaced by a link. Throws an error if that has happened since `real` was
 * resolved. Only Linux has such paths; elsewhere, it passes `real`.
 */
export const anchored = async <Result>(
  real: string,
  use: (directory: string) => Promise<Result>,
): Promise<Result> => {
  if (platform !== 'linux') return use(real);
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const handle = await open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    const anchor = `/proc/self/fd/${handle.fd}`;
    if ((await readlink(anchor)) !== real) {
      throw new Error('A folder was replaced in the meantime. Try again.');
    }
    return await use(anchor);
  } finally {
    await handle.close();
  }
};

/** Does not follow a link that has replaced the file meanwhile, nor wait for the other end of a pipe. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Reads a text file by its real path, with `name` in its errors. */
export const readText = async (
  real: string,
  name: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> => {
  const file = await anchored(dirname(real), (place) => open(join(place, basename(real)), flags));
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error(`'${name}' is not a regular file.`);
    if (stats.size > maxBytes) {
      throw new Error(`'${name}' has ${stats.size} bytes; files of up to ${maxBytes} are read.`);
    }
    return decode(await file.readFile({ signal }), name);
  } finally {
    await file.close();
  }
};

const decode = (bytes: Uint8Array, name: string): string => {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Invalid UTF-8 is reported below.
  }
  throw new Error(`'${name}' is not text, so it cannot be read.`);
};
