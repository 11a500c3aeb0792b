import { join } from 'node:path';
import { openFiles, type Store } from '@millrace/store';
import { openPostgres } from '@millrace/store/postgres';
import { openSqlite } from '@millrace/store/sqlite';

/** The stores that are looked at. */
export const storeNames = ['files', 'sqlite', 'postgres'] as const;
export type StoreName = (typeof storeNames)[number];

/** Where the calls of one trial are kept. */
export interface Place {
  readonly store: StoreName;
  /** Of its own: conversations are kept there, and what the store keeps in files. */
  readonly directory: string;
  /** The address of the server, with a schema of its own, where there is one. */
  readonly url?: string;
  readonly schema?: string;
  /** How long a process that is gone keeps what it has. Default: 2,000, which all of them can. */
  readonly leaseMs?: number;
}

/** Opens the store of a place. */
export const openPlace = ({
  store,
  directory,
  url = '',
  schema = '',
  leaseMs = 2_000,
}: Place): Store => {
  switch (store) {
    case 'files':
      return openFiles(directory, { leaseMs });
    case 'sqlite':
      return openSqlite(join(directory, 'store.db'), { leaseMs });
    case 'postgres':
      return openPostgres(url, { schema, leaseMs, pool: { max: 3 } });
  }
};
