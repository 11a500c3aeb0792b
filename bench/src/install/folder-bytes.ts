import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The bytes of all files below a folder, but for those of the packages in it. Links are passed over. */
export const folderBytes = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true }).reduce((bytes, entry) => {
    const path = join(folder, entry.name);
    if (entry.isFile()) return bytes + statSync(path).size;
    return entry.isDirectory() && entry.name !== 'node_modules' ? bytes + folderBytes(path) : bytes;
  }, 0);
