import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom } from 'rxjs';
import { openPlace, type Place, type StoreName } from './place.js';

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
  // To make a database takes longer than to copy one.
  const model = store === 'embedded' ? names() : undefined;
  if (model !== undefined) {
    const opened = openPlace(model);
    await lastValueFrom(opened.calls.driver.list$(), { defaultValue: undefined });
    await lastValueFrom(opened.close$(), { defaultValue: undefined });
  }
  return {
    root,
    next: async () => {
      const place = names();
      if (model === undefined) await mkdir(place.directory);
      else await cp(model.directory, place.directory, { recursive: true });
      return place;
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
};
