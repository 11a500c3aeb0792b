import type { MemoryFactory } from 'millrace';
import type { CallStoreDriver, NewRecord } from 'millrace/journal';
import type { SessionStore } from 'millrace/sessions';
import { concat, defer, EMPTY, map, type Observable, tap } from 'rxjs';
import type { Point } from './said.js';

/** Calls of a driver, whose every write is told before and after; what was written, too. */
export const watchedCalls = (
  driver: CallStoreDriver,
  tell: (point: Point) => void,
  onWritten: (records: readonly NewRecord[]) => void,
): CallStoreDriver => ({
  ...driver,
  claim$: (callId) =>
    told('claim', tell, driver.claim$(callId)).pipe(
      map((claim) => ({
        append$: (records) =>
          concat(
            told('write', tell, claim.append$(records)),
            defer(() => {
              onWritten(records);
              return told('written', tell, EMPTY);
            }),
          ),
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

/** As `watchedCalls`, of the states of sessions. */
export const watchedSessions = (
  store: SessionStore,
  tell: (point: Point) => void,
): SessionStore => ({
  ...store,
  save$: (...given) =>
    told('remember', tell, store.save$(...given)).pipe(tap(() => tell('remembered'))),
  ...(store.append$ && {
    append$: (...given) =>
      told('remember', tell, store.append$?.(...given) ?? EMPTY).pipe(
        tap(() => tell('remembered')),
      ),
  }),
});

const told = <T>(
  point: Point,
  tell: (point: Point) => void,
  source$: Observable<T>,
): Observable<T> =>
  defer(() => {
    tell(point);
    return source$;
  });
