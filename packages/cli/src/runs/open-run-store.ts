import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { type MemoryFactory, MillraceError } from 'millrace';
import type { CallStore } from 'millrace/journal';
import type { SessionStore } from 'millrace/sessions';
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
export const openToWrite = async (wanted: StorePlace): Promise<RunStore> => {
  const place = await available(wanted);
  const directory = directoryOf(place);
  if (directory !== undefined) {
    const { makePrivate } = await import('./make-private.js');
    await makePrivate(directory);
  }
  return runStore(await opened(place), place);
};

/** Opens a store without creating anything: a missing place has no runs. Rejects with `config` for no place. */
export const openRunStore = async (wanted: StorePlace): Promise<RunStore> => {
  const place = await available(wanted);
  const isMissing = place.type === 'sqlite' && !existsSync(place.path);
  // A missing directory has no runs, and reading creates none.
  const read: StorePlace = isMissing ? { type: 'files', directory: place.path } : place;
  return runStore(await opened(read), place);
};

/** The directory to make or to check. A database makes a missing one itself, and marks it, so that file tools refuse it. */
const directoryOf = (place: StorePlace): string | undefined => {
  if (place.type === 'files') return place.directory;
  if (place.type !== 'sqlite' || !existsSync(dirname(place.path))) return undefined;
  return dirname(place.path);
};

/** By default, runs are files if SQLite is not available. */
const available = async (place: StorePlace): Promise<StorePlace> => {
  if (place.type !== 'sqlite' || !place.isDefault) return place;
  const { hasSqlite } = await import('@millrace/store/sqlite');
  return hasSqlite() ? place : { type: 'files', directory: dirname(place.path) };
};

const runStore = (kept: Store, place: StorePlace): RunStore => {
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
    case 'sqlite': {
      const { openSqlite } = await import('@millrace/store/sqlite');
      return used(openSqlite(place.path, { leaseMs }));
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
