import { type MemoryFactory, MillraceError } from '@millrace/core';
import type { CallStore } from '@millrace/core/journal';
import type { SessionStore } from '@millrace/core/sessions';
import type { Store } from '@millrace/store';
import { firstValueFrom, lastValueFrom, take } from 'rxjs';
import type { StorePlace } from './store-place.js';

/** An open store of runs. */
export interface RunStore {
  readonly store: CallStore;
  /** The conversations. */
  readonly memory: MemoryFactory;
  /** The conversations of the server. */
  readonly sessions: SessionStore;
  readonly place: StorePlace;
  readonly close: () => Promise<unknown>;
}

/** How long a killed run counts as running, in milliseconds. */
const leaseMs = 5_000;

/** Opens a store to record runs. Creates a missing directory. Rejects with `store` if it is not writable. */
export const openToWrite = async (place: StorePlace): Promise<RunStore> => {
  if (place.type === 'files') {
    const { makePrivate } = await import('./make-private.js');
    await makePrivate(place.directory);
  }
  return openRunStore(place);
};

/** Opens a store without creating anything: a missing directory has no runs. Rejects with `config` for no place. */
export const openRunStore = async (place: StorePlace): Promise<RunStore> => {
  const kept = await opened(place);
  const close = (): Promise<unknown> => lastValueFrom(kept.close$(), { defaultValue: undefined });
  const { calls: store, memory, sessions } = kept;
  return { store, memory, sessions, place, close };
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

/** Connects now rather than on first use, to report errors early. */
const used = async (store: Store): Promise<Store> => {
  await firstValueFrom(store.calls.driver.list$().pipe(take(1)), { defaultValue: [] });
  return store;
};
