import { concat, concatMap, map, NEVER, of, race } from 'rxjs';
import type { Semaphore } from '../traffic/semaphore.js';
import type { CallStage } from './call-stage.js';

/**
 * Holds a place of a semaphore from here to the end of the call, so that no more calls than that run at once, whatever agents they are of.
 * The wait is told by a `queued` event, and counts into `callMs`; a call that is left while it waits leaves the queue; a full queue is a `queueFull` error. Calls that the tools of a call make share its place.
 * Put it first: `insertStageBefore(prepareCall, limitCalls(semaphore))`.
 */
export const limitCalls = (semaphore: Semaphore): CallStage => {
  const limitedCalls: CallStage = ({ call, hooks, interruption }) =>
    concatMap((state) =>
      race(
        semaphore.hold$(
          () => concat(of(state), NEVER),
          call.rootId,
          (ahead) => hooks.report(0, { type: 'queued', why: 'calls', ahead }),
        ),
        // A call that is interrupted while it waits has nothing to do.
        interruption.cut$.pipe(map(() => state)),
      ),
    );
  return limitedCalls;
};
