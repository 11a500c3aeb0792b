import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** Reads a file of UTF-8 text; throws a sentence where it is no regular file, too large, or not text. */
export const readText = async (
  real: string,
  { name, maxBytes, signal }: { name: string; maxBytes: number; signal: AbortSignal },
): Promise<string> => {
  const file = await open(real, flags);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error(`'${name}' is no regular file.`);
    if (stats.size > maxBytes) {
      throw new Error(`'${name}' has ${stats.size} bytes; files of up to ${maxBytes} can be read.`);
    }
    return decode(await file.readFile({ signal }), name);
  } finally {
    await file.close();
  }
};

/**
 * A link that took the file's place meanwhile is not followed, and nothing waits for the other end of a pipe.
 * A system that lacks a flag has it undefined, which adds nothing.
 */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const decode = (bytes: Uint8Array, name: string): string => {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Bytes that are no UTF-8 are told of below.
  }
  throw new Error(`'${name}' is not UTF-8 text, so it cannot be read.`);
};
