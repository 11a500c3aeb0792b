import type { ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { startPostgres } from '@millrace/postgres-server';
import { bundleLife } from './driver/bundle-life.js';
import { type EffectServer, startEffectServer } from './effects/effect-server.js';
import type { StoreName } from './places/place.js';
import { createPlaces, type Places } from './places/places.js';

/** What is needed to put a store to the test. */
export interface Bench {
  readonly places: Places;
  readonly server: EffectServer;
  /** What processes run. */
  readonly program: string;
  /** Those that run. */
  readonly children: Set<ChildProcess>;
  /** Ends and removes all of it. */
  readonly close: () => Promise<void>;
  /** Kills and removes what would stay behind of a process that ends at once. */
  readonly abandon: () => void;
}

/** Starts what a store needs, which is to be closed. */
export const openBench = async (store: StoreName, seed: number): Promise<Bench> => {
  const closings: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closings.splice(0).toReversed()) await end();
  };
  try {
    const program = await bundleLife();
    closings.push(() => program.remove());
    const database = store === 'postgres' ? await startPostgres() : undefined;
    if (database !== undefined) closings.push(() => database.stop());
    const server = await startEffectServer(seed);
    closings.push(() => server.close());
    const places = await createPlaces(store, database?.url);
    closings.push(() => places.close());
    const children = new Set<ChildProcess>();
    const abandon = (): void => {
      for (const child of children) child.kill('SIGKILL');
      for (const path of [program.path, places.root])
        rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    };
    return { places, server, program: program.path, children, close, abandon };
  } catch (error) {
    await close();
    throw error;
  }
};
