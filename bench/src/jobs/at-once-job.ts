import type { Adapter } from '../adapter.js';
import { isNumber, isShape, isText } from '../guard.js';
import { checkedCall, expected } from './checked-call.js';
import { heldBytes, settled } from './held-memory.js';
import type { Job } from './job.js';

/** Calls that run side by side. */
export interface AtOnceOptions {
  readonly script: string;
  readonly calls: number;
  /** Before anything is measured: so many at once, then again. */
  readonly warmUp: number;
}

/** What they cost together. */
export interface AtOnce {
  readonly cpuMs: number;
  readonly wallMs: number;
  /** Calls that failed, or whose answer was another. */
  readonly failed: number;
  /** Why the first of them did; empty where none did. */
  readonly why: string;
  /** What the process needed at most beyond what it had before (its resident set, garbage included), in bytes. */
  readonly rssBytes: number;
  /** What was held when half of all deltas had come, beyond what was held before, in bytes. */
  readonly heldBytes: number;
}

/** Measures calls that run at once: first what they cost, then, in a second go, what they hold, because looking costs time. */
export const atOnceJob: Job<AtOnceOptions, AtOnce> = {
  name: 'at once',
  isOptions: isShape({ script: isText, calls: isNumber, warmUp: isNumber }),
  isResult: isShape({
    cpuMs: isNumber,
    wallMs: isNumber,
    failed: isNumber,
    why: isText,
    rssBytes: isNumber,
    heldBytes: isNumber,
  }),
  run: async (open, { script, calls, warmUp }) => {
    const adapter = await open();
    for (let go = 0; go < 2; go += 1) await allOf(warmUp, checkedCall(adapter, script));
    await settled();
    const rssBefore = process.memoryUsage.rss();
    const startedAt = performance.now();
    const before = process.cpuUsage();
    const failures = await allOf(calls, checkedCall(adapter, script));
    const { user, system } = process.cpuUsage(before);
    const wallMs = performance.now() - startedAt;
    const mostRss = process.resourceUsage().maxRSS * 1_024;
    return {
      cpuMs: (user + system) / 1_000,
      wallMs,
      failed: failures.length,
      why: failures[0] ?? '',
      rssBytes: mostRss - rssBefore,
      heldBytes: await heldBy(adapter, script, calls),
    };
  },
};

/** Resolves to the reasons of those that failed. */
const allOf = async (calls: number, call: () => Promise<void>): Promise<readonly string[]> => {
  const ends = await Promise.allSettled(Array.from({ length: calls }, call));
  return ends.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []));
};

const heldBy = async (adapter: Adapter, script: string, calls: number): Promise<number> => {
  await settled();
  const before = heldBytes();
  const half = Math.ceil((calls * expected(script).deltas) / 2);
  let [deltas, held] = [0, before];
  const onEach = (): void => {
    deltas += 1;
    // At once: where thousands of sockets are ready, an immediate runs long after.
    if (deltas === half) held = heldBytes();
  };
  await allOf(calls, checkedCall(adapter, script, onEach));
  return held - before;
};
