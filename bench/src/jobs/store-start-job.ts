import { isNumber, isShape, isText } from '../guard.js';
import { openStore, type StorePlace } from '../journal/open-store.js';
import { timeAppends } from '../journal/time-appends.js';
import type { Job } from './job.js';

/** How long it took until a store could be relied on. */
export interface StoreStart {
  /** Until the first step was safe, with the import of what the store needs. */
  readonly ms: number;
}

/** Measures the first step that a process writes into a store. */
export const storeStartJob: Job<StorePlace, StoreStart> = {
  name: 'start of a store',
  isOptions: isShape({ store: isText, folder: isText, url: isText }),
  isResult: isShape({ ms: isNumber }),
  run: async (_open, place) => {
    const startedAt = performance.now();
    const { calls, close } = await openStore(place);
    if (calls !== undefined) await timeAppends(calls, `first-${startedAt}-${process.pid}`, 1);
    const ms = performance.now() - startedAt;
    await close();
    return { ms };
  },
};
