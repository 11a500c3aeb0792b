import { basename, dirname, join } from 'node:path';
import { anchored } from './anchored.js';
import { openUnlessDatabase, storeRefusal } from './store-database.js';

/** Reads a UTF-8 text file, with its byte order mark. Throws an error if it is not a regular file, is too large, is not text, or belongs to a store. */
export const readText = async (
  real: string,
  { name, maxBytes, signal }: { name: string; maxBytes: number; signal: AbortSignal },
): Promise<string> => {
  const file = await anchored(dirname(real), (directory) =>
    openUnlessDatabase(join(directory, basename(real))),
  );
  if (file === undefined) throw storeRefusal(name);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error(`'${name}' is not a regular file.`);
    if (stats.size > maxBytes) {
      throw new Error(`'${name}' has ${stats.size} bytes; files of up to ${maxBytes} can be read.`);
    }
    return decode(await file.readFile({ signal }), name);
  } finally {
    await file.close();
  }
};

const decode = (bytes: Uint8Array, name: string): string => {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Invalid UTF-8 is reported below.
  }
  throw new Error(`'${name}' is not UTF-8 text, so it cannot be read.`);
};
