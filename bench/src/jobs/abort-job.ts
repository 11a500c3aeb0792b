import { setTimeout as sleep } from 'node:timers/promises';
import type { Adapter } from '../adapter.js';
import { isListOf, isNumber, isShape, isText } from '../guard.js';
import { now } from '../one-clock.js';
import type { Job } from './job.js';

/** Calls that are aborted in the middle of their answer, one after the other. */
export interface AbortOptions {
  readonly script: string;
  readonly times: number;
  /** Deltas that come before. */
  readonly afterDeltas: number;
}

/** When, by the clock of the machine. */
export interface Abort {
  readonly abortedAt: number;
  /** When whoever made the call heard of its end, whichever it was. */
  readonly settledAt: number;
}

/** What came of them. */
export interface Aborts {
  readonly aborts: readonly Abort[];
  /** Until then the process has been there, so that no socket has closed with it. */
  readonly endedAt: number;
}

/** Milliseconds in which a socket may close that was not closed at once. */
const afterwards = 500;

/** Measures how fast a call lets go that its signal aborts. */
export const abortJob: Job<AbortOptions, Aborts> = {
  name: 'abort',
  isOptions: isShape({ script: isText, times: isNumber, afterDeltas: isNumber }),
  isResult: isShape({
    aborts: isListOf(isShape({ abortedAt: isNumber, settledAt: isNumber })),
    endedAt: isNumber,
  }),
  run: async (open, { script, times, afterDeltas }) => {
    const adapter = await open();
    await abortOne(adapter, script, afterDeltas);
    await sleep(afterwards);
    const aborts: Abort[] = [];
    for (let time = 0; time < times; time += 1) {
      aborts.push(await abortOne(adapter, script, afterDeltas));
    }
    await sleep(afterwards);
    return { aborts, endedAt: now() };
  },
};

const abortOne = async (adapter: Adapter, script: string, afterDeltas: number): Promise<Abort> => {
  const controller = new AbortController();
  let [deltas, abortedAt] = [0, NaN];
  const abort = (): void => {
    abortedAt = now();
    controller.abort();
  };
  const onDelta = (): void => {
    deltas += 1;
    // In a turn of its own: whoever aborts is seldom who reads.
    if (deltas === afterDeltas) setImmediate(abort);
  };
  const failure = await adapter.call(script, { onDelta, signal: controller.signal }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const settledAt = now();
  if (Number.isNaN(abortedAt))
    throw new Error(`The call ended before it was aborted: ${String(failure)}`);
  return { abortedAt, settledAt };
};
