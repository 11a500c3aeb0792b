import { startPostgres, type TestServer } from '@millrace/postgres-server';
import { lastValueFrom, type Observable, Subscription } from 'rxjs';
import { type DbosEngine, type DbosOptions, openDbos } from './open-dbos.js';

/** Opens engines on a server of its own, each on a new schema unless told otherwise. */
export interface Engines {
  readonly server: TestServer;
  open(options?: DbosOptions): DbosEngine;
  /** Subscribes until the end of the test. */
  keep(running$: Observable<unknown>): void;
  /** Ends what runs, and closes the engines. */
  close(): Promise<void>;
  stop(): Promise<void>;
}

export const startEngines = async (): Promise<Engines> => {
  const server = await startPostgres();
  const engines: DbosEngine[] = [];
  let running = new Subscription();
  let count = 0;
  const close = async (): Promise<void> => {
    running.unsubscribe();
    running = new Subscription();
    for (const engine of engines.splice(0)) {
      await lastValueFrom(engine.close$(), { defaultValue: undefined });
    }
  };
  return {
    server,
    open: (options = {}) => {
      count += 1;
      const schema = `e${count}`;
      const engine = openDbos(server.url, {
        schema: `${schema}_dbos`,
        ...options,
        store: { schema, leaseMs: 1_000, ...options.store },
      });
      engines.push(engine);
      return engine;
    },
    keep: (running$) => {
      running.add(running$.subscribe());
    },
    close,
    stop: async () => {
      await close();
      await server.stop();
    },
  };
};
