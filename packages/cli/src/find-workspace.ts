import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Finds the root of Millrace's own workspace above a directory or above this package; undefined if it finds none. */
export const findWorkspace = async (directory: string): Promise<string | undefined> =>
  (await workspaceAbove(directory)) ??
  (await workspaceAbove(dirname(fileURLToPath(import.meta.url))));

const workspaceAbove = async (directory: string): Promise<string | undefined> => {
  if (await isWorkspace(directory)) return directory;
  const parent = dirname(directory);
  return parent === directory ? undefined : workspaceAbove(parent);
};

const isWorkspace = async (directory: string): Promise<boolean> => {
  try {
    const manifest: unknown = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'));
    return Reflect.get(Object(manifest), 'name') === 'millrace-workspace';
  } catch {
    return false;
  }
};
