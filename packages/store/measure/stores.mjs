// The stores that the programs beside this one measure. Each is created in a directory, opened several times, and removed.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { openFiles } from '@millrace/store';

export const stores = {
  sqlite: {
    create: async (directory) => {
      const { openSqlite } = await import('@millrace/store/sqlite');
      return {
        open: () => openSqlite(join(directory, 'calls.db')),
        remove: () => rmSync(directory, { recursive: true }),
      };
    },
  },
  files: {
    create: (directory) => ({
      open: () => openFiles(directory),
      remove: () => rmSync(directory, { recursive: true }),
    }),
  },
  postgres: {
    create: async () => {
      const { startPostgres } = await import('@millrace/postgres-server');
      const { openPostgres } = await import('@millrace/store/postgres');
      const server = await startPostgres();
      return { open: () => openPostgres(server.url), remove: () => server.stop() };
    },
  },
};
