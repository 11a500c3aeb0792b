import type { StoreArguments } from '../command-line/arguments.js';
import type { Setting } from '../setting.js';
import { openRunStore, type RunStore } from './open-run-store.js';
import { storePlace } from './store-place.js';

/** Opens the store of a command, runs the work, and closes the store. Rejects if it cannot be opened. */
export const withRuns = async <T>(
  { given, environment }: Setting<StoreArguments>,
  work: (runs: RunStore) => Promise<T>,
): Promise<T> => {
  const runs = await openRunStore(storePlace(given.store, environment));
  try {
    return await work(runs);
  } finally {
    await runs.close();
  }
};
