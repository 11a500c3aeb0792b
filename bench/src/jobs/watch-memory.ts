import { heldBytes, settled } from './held-memory.js';

/** What a process needs beyond what it needed before, at most, in bytes. */
export interface Memory {
  readonly heldBytes: number;
  /** Of the whole process (its resident set), garbage included. */
  readonly rssBytes: number;
}

/** Milliseconds between two looks: each collects all garbage. */
const lookEvery = 200;

/** Begins to watch the memory of this process. */
export const watchMemory = async (): Promise<{ readonly stop: () => Memory }> => {
  await settled();
  const before = { heldBytes: heldBytes(), rssBytes: process.memoryUsage.rss() };
  let most = before;
  const look = (): void => {
    const rssBytes = Math.max(most.rssBytes, process.memoryUsage.rss());
    most = { rssBytes, heldBytes: Math.max(most.heldBytes, heldBytes()) };
  };
  const timer = setInterval(look, lookEvery);
  return {
    stop: () => {
      clearInterval(timer);
      look();
      return {
        heldBytes: most.heldBytes - before.heldBytes,
        rssBytes: most.rssBytes - before.rssBytes,
      };
    },
  };
};
