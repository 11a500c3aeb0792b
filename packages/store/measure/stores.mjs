// The stores that the programs beside this one measure. Each is created in a directory, opened several times, and removed.
import { rmSync } from 'node:fs';
import { openFiles } from '@millrace/store';

export const stores = {
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
