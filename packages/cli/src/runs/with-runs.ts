import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { StoreArguments } from '../command-line/arguments.js';
import type { Setting } from '../setting.js';
import { storeOption } from './hints.js';
import { openRunStore, type RunStore } from './open-run-store.js';
import { type StorePlace, storePlace } from './store-place.js';

/** Opens the store of a command, runs the work, and closes the store. Rejects if it cannot be opened. */
export const withRuns = async <T>(
  { given, environment, errorTheme }: Setting<StoreArguments>,
  work: (runs: RunStore) => Promise<T>,
): Promise<T> => {
  const runs = await openRunStore(storePlace(given.store, environment));
  const note = filesNote(runs.place);
  if (note !== '') environment.stderr.write(`${errorTheme.colors.yellow(note)}\n`);
  try {
    return await work(runs);
  } finally {
    await runs.close();
  }
};

/** A note on runs that are files beside the default database, from before SQLite was available; else an empty string. */
const filesNote = (place: StorePlace): string => {
  if (place.type !== 'sqlite' || !place.isDefault) return '';
  const directory = dirname(place.path);
  return existsSync(join(directory, 'calls'))
    ? `Earlier runs are in files: npx @millrace/cli runs${storeOption(directory)}`
    : '';
};
