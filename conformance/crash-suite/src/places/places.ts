import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Place, StoreName } from './place.js';

/** Makes places, and removes them all in the end. */
export interface Places {
  /** The directory of all. */
  readonly root: string;
  next(): Promise<Place>;
  close(): Promise<void>;
}

/** Makes places of one store. `url` is that of a server, where it needs one. */
export const createPlaces = async (store: StoreName, url?: string): Promise<Places> => {
  const root = await mkdtemp(join(tmpdir(), 'crash-'));
  const names = (): Place => {
    count += 1;
    const directory = join(root, String(count));
    return url === undefined
      ? { store, directory }
      : { store, directory, url, schema: `crash_${Date.now().toString(36)}_${count}` };
  };
  let count = 0;
  return {
    root,
    next: async () => {
      const place = names();
      await mkdir(place.directory);
      return place;
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
};
