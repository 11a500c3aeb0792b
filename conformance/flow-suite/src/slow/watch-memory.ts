import { heldMb } from '../memory-held.js';

/** What a process needs beyond what it needed before, at most, in megabytes. */
export interface Memory {
  /** Held on the heap and in buffers beside it. */
  readonly heldMb: number;
  /** Of the whole process (its resident set), garbage included. */
  readonly rssMb: number;
}

/** Watches the memory of this process. */
export interface MemoryWatch {
  /** Ends the watch, and tells what it has seen. */
  stop(): Memory;
}

/** Looks at what is held are far apart: each collects all garbage. Both in milliseconds. */
const heldEvery = 250;
const rssEvery = 20;

/** Begins to watch. */
export const watchMemory = (): MemoryWatch => {
  const before = { heldMb: heldMb(), rssMb: rssMb() };
  let most = before;
  const lookAtHeld = (): void => {
    most = { ...most, heldMb: Math.max(most.heldMb, heldMb()) };
  };
  const lookAtRss = (): void => {
    most = { ...most, rssMb: Math.max(most.rssMb, rssMb()) };
  };
  const timers = [setInterval(lookAtHeld, heldEvery), setInterval(lookAtRss, rssEvery)];
  return {
    stop: () => {
      timers.forEach((timer) => clearInterval(timer));
      lookAtRss();
      lookAtHeld();
      return { heldMb: most.heldMb - before.heldMb, rssMb: most.rssMb - before.rssMb };
    },
  };
};

const rssMb = (): number => process.memoryUsage.rss() / 1_000_000;
