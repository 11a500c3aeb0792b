import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Layer, MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';

/** Reads prices of a JSON file: the layers that add costs to replies. None without a path. Rejects with `config` if the file has a mistake. */
export const readCosts = async (
  path: string | undefined,
  { directory }: { readonly directory: string },
): Promise<readonly Layer[]> => {
  if (path === undefined || path === '') return [];
  const text = await readFile(resolve(directory, path), 'utf8').catch(failed(path));
  // Loaded with the option only: every other start is quicker without it.
  const { cost, readPriceList } = await import('millrace/traffic');
  return cost(readPriceList(parsed(path, text), `The prices of ${path}`));
};

const parsed = (path: string, text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The error of the parser quotes the file.
    throw new MillraceError('config', `The prices of ${path} are not JSON.`);
  }
};

const failed = (path: string) => (cause: unknown) => {
  const why = messageOf(cause);
  throw new MillraceError('config', `The prices of ${path} cannot be read: ${why}`, { cause });
};
