import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { folderBytes } from './folder-bytes.js';
import type { InstalledSize } from './installed-size.js';

/** The size of what is installed in a folder: all packages of its `node_modules`, and those within them. */
export const sizeOfFolder = (folder: string): InstalledSize => {
  const packages = packagesIn(join(folder, 'node_modules'));
  const bytes = packages.reduce((sum, one) => sum + folderBytes(one), 0);
  return { bytes, packages: packages.length };
};

const packagesIn = (modules: string): readonly string[] => {
  if (!existsSync(modules)) return [];
  const names = foldersIn(modules).flatMap((name) =>
    name.startsWith('@') ? foldersIn(join(modules, name)).map((rest) => join(name, rest)) : [name],
  );
  return names
    .map((name) => join(modules, name))
    .flatMap((path) => [path, ...packagesIn(join(path, 'node_modules'))]);
};

const foldersIn = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
