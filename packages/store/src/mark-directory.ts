import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { storeMarker } from 'millrace/values';
import { ignoreErrors } from './files/file-system.js';

/** Marks the directory of a store, so that file tools refuse it. A store on a read-only disk stays as it is. */
export const markDirectory = (directory: string): void => {
  const path = join(directory, storeMarker);
  if (existsSync(path)) return;
  ignoreErrors(() => writeFileSync(path, text, { flag: 'wx', mode: 0o600 }));
};

const text = `A store of conversations and calls. File tools refuse this directory and all below it.\n`;
