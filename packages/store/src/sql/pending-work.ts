import { setImmediate } from 'node:timers/promises';

export interface PendingWork {
  /** Runs the work, which counts as pending until it settles. */
  track<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when no work is pending. */
  settled(): Promise<void>;
}

export const createPendingWork = (): PendingWork => {
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
        // Let work start that waited for the settled work.
        await setImmediate();
      }
    },
  };
};
