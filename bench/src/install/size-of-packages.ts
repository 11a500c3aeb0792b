import { sep } from 'node:path';
import { closure } from './closure.js';
import { folderBytes } from './folder-bytes.js';
import type { InstalledSize } from './installed-size.js';
import { packedBytes } from './packed-bytes.js';

/** The size of packages with all that they need, as an install of them alone would bring it. */
export const sizeOfPackages = (names: readonly string[], from: string): InstalledSize => {
  const folders = [...closure(names, from)];
  const isInstalled = (folder: string): boolean => folder.split(sep).includes('node_modules');
  const bytes = folders.reduce(
    (sum, folder) => sum + (isInstalled(folder) ? folderBytes(folder) : packedBytes(folder)),
    0,
  );
  return { bytes, packages: folders.length };
};
