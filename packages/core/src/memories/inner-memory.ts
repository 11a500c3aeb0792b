import { defer, map, type Observable } from 'rxjs';
import { misuse } from '../errors.js';
import type { Memory, MemoryFactory } from '../memory.js';
import type { Message } from '../message.js';
import { withResults } from '../tools/suspend.js';

/** Refuses what makes no memories. */
export const checkInner = (owner: string, inner: unknown): void => {
  if (typeof inner === 'function') return;
  throw misuse(`${owner} needs a factory of memories, such as inProcessMemory() makes.`);
};

/** What a memory holds, each result that came later in its place. */
export const settled$ = (memory: Memory): Observable<readonly Message[]> =>
  defer(() => memory.load$()).pipe(map(withResults));

/** Makes memories that show what others hold in another way, and write as those do. */
export const shownBy =
  (
    inner: MemoryFactory,
    show: (
      sessionId: string,
      messages$: Observable<readonly Message[]>,
    ) => ReturnType<Memory['load$']>,
  ): MemoryFactory =>
  (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: () => show(sessionId, settled$(memory)),
      append$: (messages) => defer(() => memory.append$(messages)),
    };
  };
