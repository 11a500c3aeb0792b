import { setTimeout as sleep } from 'node:timers/promises';
import { isFlag, isListOf, isNumber, isShape, isText } from '../guard.js';
import { now } from '../one-clock.js';
import { expected } from './checked-call.js';
import type { Job } from './job.js';
import { watchMemory } from './watch-memory.js';

/** An answer that is taken slowly. */
export interface SlowOptions {
  readonly script: string;
  /** What is taken before, so that all is loaded. */
  readonly warmUpScript: string;
  /** Milliseconds that the consumer takes for a delta. */
  readonly waitMs: number;
}

/** What the consumer saw of itself. */
export interface Slow {
  /** False where the adapter has no form that is pulled: nothing has been measured then. */
  readonly isPulled: boolean;
  /** When it began with each delta, by the clock of the machine. */
  readonly takenAt: readonly number[];
  /** Chunks that had come out of the model and the consumer had not begun with, at most; 0 where nobody counts them. */
  readonly chunksAhead: number;
  /** What was held beyond what was held before, at most, in bytes. */
  readonly heldBytes: number;
  readonly rssBytes: number;
}

/** Measures a consumer that is slower than the answer comes. */
export const slowJob: Job<SlowOptions, Slow> = {
  name: 'slow',
  isOptions: isShape({ script: isText, warmUpScript: isText, waitMs: isNumber }),
  isResult: isShape({
    isPulled: isFlag,
    takenAt: isListOf(isNumber),
    chunksAhead: isNumber,
    heldBytes: isNumber,
    rssBytes: isNumber,
  }),
  run: async (open, { script, warmUpScript, waitMs }) => {
    let takenAt: number[] = [];
    let [chunks, chunksAhead] = [0, 0];
    const onModelChunk = (): void => {
      chunks += 1;
      chunksAhead = Math.max(chunksAhead, chunks - takenAt.length);
    };
    const adapter = await open({ onModelChunk });
    if (adapter.pull === undefined) {
      return { isPulled: false, takenAt, chunksAhead, heldBytes: 0, rssBytes: 0 };
    }
    for await (const _ of adapter.pull(warmUpScript));
    [takenAt, chunks, chunksAhead] = [[], 0, 0];
    const memory = await watchMemory();
    const texts: string[] = [];
    for await (const delta of adapter.pull(script)) {
      takenAt.push(now());
      texts.push(delta);
      await sleep(waitMs);
    }
    const most = memory.stop();
    if (texts.join('') !== expected(script).text) throw new Error('The text is not what was sent.');
    return { isPulled: true, takenAt, chunksAhead, ...most };
  },
};
