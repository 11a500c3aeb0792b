import { concat, concatMap, NEVER, of } from 'rxjs';
import { checkOptions, having } from '../options.js';
import type { Semaphore } from '../traffic/semaphore.js';
import type { CallStage } from './call-stage.js';
import { isOpen } from './call-state.js';

/**
 * Holds a place of a semaphore from here to the end of the call, so that no more calls than that run at once, whatever agents they are of.
 * The wait is told by a `queued` event, and counts into `callMs`; a call that is left while it waits leaves the queue; a full queue is a `queueFull` error. Calls that the tools of a call make share its place.
 * Put it behind the guards, so that what they refuse does not wait: `insertStageAfter(prepareCall, limitCalls(semaphore))`. A tool of a call that waits for
 * a session whose call waits for that call's place waits until a time-out.
 */
export const limitCalls = (semaphore: Semaphore): CallStage => {
  checkOptions('limitCalls()', { semaphore }, { semaphore: isSemaphore }, ['semaphore']);
  const limitedCalls: CallStage = ({ scope, hooks, interruption }) =>
    concatMap((state) => {
      // What is not to run needs no place.
      if (!isOpen(state) || interruption.current !== undefined) return of(state);
      return semaphore.hold$(
        () => concat(of(state), NEVER),
        scope.lineage[0],
        (ahead) => hooks.report(0, { type: 'queued', why: 'calls', ahead }),
      );
    });
  return limitedCalls;
};

const isSemaphore = having('hold$', 'a semaphore, such as createSemaphore() makes');
