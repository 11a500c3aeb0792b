import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that is gone afterwards. */
export const inDirectory = async <T>(work: (directory: string) => Promise<T>): Promise<T> => {
  const directory = await openDirectory();
  try {
    return await work(directory);
  } finally {
    await removeDirectory(directory);
  }
};

export const openDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'millrace-hostile-'));

export const removeDirectory = (directory: string): Promise<void> =>
  rm(directory, { recursive: true, force: true, maxRetries: 5 });

/** The paths of all files in a directory. */
export const filesIn = async (directory: string): Promise<readonly string[]> => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
};

/** Everything that rests on disk. */
export const contentOf = async (directory: string): Promise<string> => {
  const files = await filesIn(directory);
  return (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n');
};
