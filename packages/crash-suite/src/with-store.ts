import { startPostgres } from '@millrace/postgres-server';
import { type EffectServer, startEffectServer } from './effects/effect-server.js';
import type { StoreName } from './places/place.js';
import { createPlaces, type Places } from './places/places.js';

/** What is needed to put a store to the test. */
export interface Bench {
  readonly places: Places;
  readonly server: EffectServer;
}

/** Starts what a store needs, works with it, and ends it whatever happens. */
export const withStore = async <T>(
  store: StoreName,
  seed: number,
  work: (bench: Bench) => Promise<T>,
): Promise<T> => {
  const closings: (() => Promise<void>)[] = [];
  try {
    const database = store === 'postgres' ? await startPostgres() : undefined;
    if (database !== undefined) closings.push(() => database.stop());
    const server = await startEffectServer(seed);
    closings.push(() => server.close());
    const places = await createPlaces(store, database?.url);
    closings.push(() => places.close());
    return await work({ places, server });
  } finally {
    for (const close of closings.toReversed()) await close();
  }
};
