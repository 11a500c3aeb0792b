import { type CallStore, prune$ } from 'millrace/journal';
import { concat, defer, EMPTY, type Observable } from 'rxjs';
import type { ProcessStore } from './process-store.js';
import type { Runs } from './runs.js';

const hourMs = 3_600_000;

/** Removes calls that ended long ago, up to once an hour. Each new call triggers it, so no timer keeps the process alive. */
export const createPruning = (calls: CallStore, keepCallsMs: number): Observable<unknown> => {
  let prunedAt = 0;
  return defer(() => {
    const now = Date.now();
    if (Math.abs(now - prunedAt) < Math.min(hourMs, keepCallsMs)) return EMPTY;
    prunedAt = now;
    return prune$(calls, { olderThanMs: keepCallsMs });
  });
};

/** The memory of a server without a store. */
export interface Room {
  readonly kept: ProcessStore;
  readonly maxBytes: number;
}

/** Removes the conversations that were used least recently until the others have room. The last one stays. */
export const madeRoom$ = (
  room: Room,
  runs: Pick<Runs, 'ofSession'>,
  removeIdle$: (sessionId: string) => Observable<never>,
): Observable<never> =>
  defer(() => {
    if (room.kept.bytes <= room.maxBytes) return EMPTY;
    const idle = leastRecent(room.kept.ids(), (id) => runs.ofSession(id).length === 0);
    return idle === undefined
      ? EMPTY
      : concat(removeIdle$(idle), madeRoom$(room, runs, removeIdle$));
  });

/** The first id that fits, except the last one. */
const leastRecent = (ids: Iterable<string>, fits: (id: string) => boolean): string | undefined => {
  let found: string | undefined;
  for (const id of ids) {
    if (found !== undefined) return found;
    if (fits(id)) found = id;
  }
  return undefined;
};
