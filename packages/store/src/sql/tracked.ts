import { setImmediate } from 'node:timers/promises';

/** Knows what is under way. */
export interface Tracked {
  /** Does work, of which is known that it is under way until it settles. */
  track<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing is. */
  settled(): Promise<void>;
}

/** Makes what knows of nothing yet. */
export const createTracked = (): Tracked => {
  const running = new Set<Promise<unknown>>();
  return {
    track: async (work) => {
      const done = work();
      running.add(done);
      try {
        return await done;
      } finally {
        running.delete(done);
      }
    },
    settled: async () => {
      while (running.size > 0) {
        await Promise.allSettled(running);
        // What waits for one of them begins before the next look.
        await setImmediate();
      }
    },
  };
};
