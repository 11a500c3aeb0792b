import { type MemoryFactory, MillraceError } from '@millrace/core';
import type { CallStore } from '@millrace/core/journal';
import type { Store } from '@millrace/store';
import { firstValueFrom, lastValueFrom, take } from 'rxjs';
import type { StorePlace } from './store-place.js';

/** A place that runs are written down in, when it is there and can be used. */
export interface RunStore {
  readonly store: CallStore;
  /** What conversations were about. */
  readonly memory: MemoryFactory;
  readonly place: StorePlace;
  readonly close: () => Promise<unknown>;
}

/** How long a run that was killed counts as running, in milliseconds. */
const leaseMs = 5_000;

/** As `openRunStore`, to write runs down: a directory that is not there is made. Rejects with `store` where it cannot be written to. */
export const openToWrite = async (place: StorePlace): Promise<RunStore> => {
  if (place.type === 'files') {
    const { makePrivate } = await import('./make-private.js');
    await makePrivate(place.directory);
  }
  return openRunStore(place);
};

/** Opens a place, of which nothing is made: a directory that is not there holds no runs. Rejects with `config` where there is no place. */
export const openRunStore = async (place: StorePlace): Promise<RunStore> => {
  const kept = await opened(place);
  const close = (): Promise<unknown> => lastValueFrom(kept.close$(), { defaultValue: undefined });
  return { store: kept.calls, memory: kept.memory, place, close };
};

const opened = async (place: StorePlace): Promise<Store> => {
  switch (place.type) {
    case 'none':
      throw new MillraceError('config', `There are no runs: ${place.why}.`);
    case 'files': {
      const { openFiles } = await import('@millrace/store');
      return openFiles(place.directory, { leaseMs });
    }
    case 'embedded': {
      const { openEmbedded } = await import('@millrace/store/embedded');
      return used(openEmbedded(place.directory, { leaseMs }));
    }
    case 'postgres': {
      const { openPostgres } = await import('@millrace/store/postgres');
      return used(openPostgres(place.url, { leaseMs, pool: { max: 3 } }));
    }
  }
};

/** A database is not opened before it is used. */
const used = async (store: Store): Promise<Store> => {
  await firstValueFrom(store.calls.driver.list$().pipe(take(1)), { defaultValue: [] });
  return store;
};
