import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  map,
  type Observable,
  take,
  tap,
  throwError,
} from 'rxjs';
import { createContext } from '../create-context.js';
import { contained } from '../contained.js';
import { MillraceError } from '../errors.js';
import { failAs } from '../fail-as.js';
import { freezeMessage } from '../freeze-message.js';
import { kept$, type Memory } from '../memory.js';
import type { Message } from '../message.js';
import type { Seat, SeatedCall } from '../seats.js';
import { createSteering } from '../steering.js';
import { readState, toState } from './read-state.js';
import type { SessionRecord } from './session-records.js';
import { type SessionState, stateVersion } from './session-state.js';

/** Where a session is: its place for a call, its messages, and what its agent knows beside them. */
export interface SessionPlace {
  readonly seat: Seat;
  readonly memory: Memory;
  readonly record: SessionRecord;
}

/** Emits the state of a session as it is now, and completes. */
export const savedState$ = ({ memory, record }: SessionPlace): Observable<SessionState> =>
  kept$(memory).pipe(
    contained(),
    take(1),
    failAs('memory', 'The memory could not be read'),
    map((messages) => toState({ version: stateVersion, messages, ...record.state })),
  );

/** Puts a state in the place of what a session is, all of it or nothing, and completes. The session is busy meanwhile. */
export const loadedState$ = (
  { seat, memory, record }: SessionPlace,
  state: unknown,
): Observable<never> =>
  defer(() => {
    const read = readState(state);
    const load = seatedLoad(seat.sessionId);
    const leave = (): void => {
      seat.leave(load.call);
      seat.wake(load.call);
    };
    return seat.take$(load, 'reject', 0).pipe(
      catchError(() => throwError(() => busy(seat.sessionId))),
      take(1),
      concatMap(() =>
        concat(
          replaced$(memory, read.messages),
          defer(() => {
            record.restore(read);
            return EMPTY;
          }),
        ),
      ),
      // Whoever hears of the end finds the session free.
      tap({ complete: leave, error: leave, unsubscribe: leave }),
    );
  });

const replaced$ = (memory: Memory, messages: readonly Message[]): Observable<never> =>
  defer(() => {
    if (memory.replace$ === undefined) throw irreplaceable();
    return memory.replace$(messages.map(freezeMessage));
  }).pipe(contained(), failAs('memory', 'The memory could not be written'), ignoreElements());

/** While it has the place of a running call, others are told that the session is busy, or wait. */
const seatedLoad = (sessionId: string): SeatedCall => {
  const context = createContext({
    agentName: 'loadState',
    options: {},
    sessionId,
    listener: { hears: false, next: () => undefined },
    interceptors: [],
  });
  const steering = createSteering(context.call);
  steering.close();
  context.interruption.close();
  const hooks = { report: () => undefined, iteration: () => 0 };
  return { ...context, hooks, steering, input: [] };
};

const busy = (sessionId: string): MillraceError =>
  new MillraceError(
    'busy',
    `The session '${sessionId}' has a call that runs, and takes no other state meanwhile. Wait until it has ended, or interrupt it.`,
  );

const irreplaceable = (): MillraceError =>
  new MillraceError(
    'memory',
    "The memory cannot take the messages of a state: it has no 'replace$'. Add replace$(messages) to it, or use one that has it, such as inProcessMemory() makes.",
  );
