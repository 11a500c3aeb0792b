import { join } from 'node:path';
import { type CallStoreDriver, inProcessCalls } from 'millrace/journal';
import type { Store } from '@millrace/store';
import { lastValueFrom } from 'rxjs';
import { folderBytes } from '../install/folder-bytes.js';

/** Where a store is opened. */
export interface StorePlace {
  /** One of `storeNames`. */
  readonly store: string;
  /** What it writes is below it. */
  readonly folder: string;
  /** Of a server; empty where there is none. */
  readonly url: string;
}

/** A store of calls that is measured. */
export interface OpenStore {
  /** Nothing: the calls have no journal. */
  readonly calls: CallStoreDriver | undefined;
  /** What the tables and files of it take on the disk by now, in bytes; without what a database writes ahead. */
  readonly bytes: () => number;
  readonly close: () => Promise<unknown>;
}

/** The stores that are measured, in the order of the tables. */
export const storeNames: readonly string[] = ['none', 'in process', 'files', 'sqlite', 'postgres'];

/** Opens a store: what it needs is imported only now. */
export const openStore = async ({ store, folder, url }: StorePlace): Promise<OpenStore> => {
  const nothing = { bytes: () => 0, close: () => Promise.resolve() };
  switch (store) {
    case 'none':
      return { ...nothing, calls: undefined };
    case 'in process':
      return { ...nothing, calls: inProcessCalls() };
    case 'files': {
      const { openFiles } = await import('@millrace/store');
      return {
        ...nothing,
        calls: openFiles(folder).calls.driver,
        bytes: () => folderBytes(folder),
      };
    }
    case 'sqlite': {
      const { openSqlite } = await import('@millrace/store/sqlite');
      return database(openSqlite(join(folder, 'store.db')), folder);
    }
    case 'postgres': {
      const { openPostgres } = await import('@millrace/store/postgres');
      return database(openPostgres(url), join(folder, 'data', 'base'));
    }
    default:
      throw new Error(`There is no store '${store}'. There are: ${storeNames.join(', ')}.`);
  }
};

const database = (
  { calls, close$ }: Pick<Store, 'calls' | 'close$'>,
  tables: string,
): OpenStore => ({
  calls: calls.driver,
  bytes: () => folderBytes(tables),
  close: () => lastValueFrom(close$(), { defaultValue: undefined }),
});
