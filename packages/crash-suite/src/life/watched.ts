import type { MemoryFactory } from '@millrace/core';
import type { CallStoreDriver } from '@millrace/core/journal';
import { concat, defer, EMPTY, map, type Observable } from 'rxjs';
import type { Point } from './said.js';

/** Calls of a driver, whose every write is told before and after. */
export const watchedCalls = (
  driver: CallStoreDriver,
  tell: (point: Point) => void,
): CallStoreDriver => ({
  ...driver,
  claim$: (callId) =>
    told('claim', tell, driver.claim$(callId)).pipe(
      map((claim) => ({
        append$: (records) =>
          concat(told('write', tell, claim.append$(records)), told('written', tell, EMPTY)),
      })),
    ),
});

/** As `watchedCalls`, of conversations. */
export const watchedMemory =
  (memoryOf: MemoryFactory, tell: (point: Point) => void): MemoryFactory =>
  (sessionId) => {
    const memory = memoryOf(sessionId);
    return {
      load$: () => memory.load$(),
      append$: (messages) =>
        concat(told('remember', tell, memory.append$(messages)), told('remembered', tell, EMPTY)),
    };
  };

const told = <T>(
  point: Point,
  tell: (point: Point) => void,
  source$: Observable<T>,
): Observable<T> =>
  defer(() => {
    tell(point);
    return source$;
  });
