import { isOpen } from '../call/call.js';
import type { Layer } from '../layer.js';
import { checkOptions, having } from '../options.js';
import type { Semaphore } from './semaphore.js';

/**
 * Holds a place of a semaphore while the call runs, so that no more calls than that run at once, whichever agents they belong to. A `queued` event reports the wait,
 * which counts towards `callMs`. A call that is aborted or interrupted while it waits leaves the queue; a full queue is a `queueFull` error. Calls that the tools of a call make
 * share its place. What a guard rejects does not wait. A tool of a call that waits for a session whose call waits for that call's place waits until a
 * time-out.
 */
export const limitCalls = (semaphore: Semaphore): Layer => {
  checkOptions('limitCalls()', { semaphore }, { semaphore: isSemaphore }, ['semaphore']);
  return {
    name: 'limitCalls',
    priority: 57,
    call:
      ({ lineage, hooks, interruption }) =>
      (next) =>
      (call) =>
        // What is not to run needs no place.
        isOpen(call) && interruption.current === undefined
          ? semaphore.hold$(
              () => next(call),
              lineage[0],
              (ahead) => hooks.report(0, { type: 'queued', why: 'calls', ahead }),
            )
          : next(call),
  };
};

const isSemaphore = having('hold$', 'a semaphore, such as createSemaphore() makes');
