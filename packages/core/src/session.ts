import equal from 'fast-deep-equal';
import {
  defer,
  filter,
  firstValueFrom,
  lastValueFrom,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  catchError,
  concat,
  concatMap,
  EMPTY,
  ignoreElements,
  map,
  take,
  tap,
  throwError,
  defaultIfEmpty,
} from 'rxjs';
import type { Callable } from './callable.js';
import type { AgentEvent } from './events.js';
import type { Input } from './input.js';
import { type Memory, kept$, isMemoryChange, type MemoryChange } from './memory.js';
import type { QueuedCall, Seat, SeatedCall } from './seats.js';
import { type SessionState, stateVersion } from './sessions/session-state.js';
import { type SteerOutcome, createSteering } from './steering.js';
import { liveToolkit } from './tools/live-toolkit.js';
import type { LiveToolkit } from './tools/types.js';
import { createContext } from './create-context.js';
import { contained } from './contained.js';
import { MillraceError } from './errors.js';
import { failAs } from './fail-as.js';
import { freezeMessage } from './freeze-message.js';
import type { Message } from './message.js';
import { readState, toState } from './sessions/read-state.js';
import type { SessionRecord } from './sessions/session-records.js';
import { memoryChanges, type MessagesChange } from './memory-changes.js';

/**
 * One conversation: its calls follow one another, and remember. A call that comes while another runs errors with `busy`,
 * unless its `onBusy` says otherwise.
 */
export interface Session<out Output = unknown> extends Callable<Output> {
  readonly id: string;
  /** What a program does to it is told by the call that runs, else by the next one. */
  readonly memory: Memory;
  /** The events of its calls, and of the calls below them. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** Its tools. A change is seen by the next request, also of a call that runs, and is kept as long as `memory` is. */
  readonly toolkit: LiveToolkit;
  /** The calls that wait for the one that runs. */
  readonly queue: SessionQueue;
  /**
   * Ends the running call politely, with reason `interrupted`: with this message as the reply, else with
   * the text so far. With an id it ends that call only, also one that waits. False when there is none to end.
   */
  interrupt(message?: string, callId?: string): boolean;
  /**
   * Says something to the running call, or only to the one of this id: its next turn begins with it. Emits what became
   * of it and completes; errors with `invalidRequest` where the input is no message of a user. Cold; leaving it takes
   * back what has not been delivered.
   */
  steer$(input: Input, callId?: string): Observable<SteerOutcome>;
  /** The Promise form of `steer$`: it speaks at once. */
  steer(input: Input, callId?: string): Promise<SteerOutcome>;
  /**
   * Emits all there is to know of the session as it is now, as plain JSON of its own, and completes. While a call runs, it has what memory has by then.
   * Errors with `invalidState` where memory holds what is no conversation. Cold.
   */
  saveState$(): Observable<SessionState>;
  /** The Promise form of `saveState$`. */
  saveState(): Promise<SessionState>;
  /**
   * Puts what `saveState` gave, here or elsewhere, in the place of all that the session is, and completes. It takes the object, and checks all of it. Groups of
   * tools that the agent does not have by now are passed over, and those that the state does not name are as they were in the beginning; tools that were added at run time stay.
   * Errors with `invalidState` where something is wrong with the state, with `busy` while a call runs or waits, and with `memory` where the memory has no
   * `replace$` or fails; the session is then as it was. Calls that come while it loads find the session busy. Cold.
   */
  loadState$(state: unknown): Observable<never>;
  /** The Promise form of `loadState$`: it loads at once. */
  loadState(state: unknown): Promise<void>;
}

/** The calls of a session that wait, in the order in which they will run. */
export interface SessionQueue {
  readonly calls: readonly QueuedCall[];
  /** Emits the list on subscription, and each change of it. Hot; never errors, never completes. */
  readonly calls$: Observable<readonly QueuedCall[]>;
  /**
   * Ends all of them politely, with reason `interrupted`, and says how many they were. They never were a part of the
   * conversation, and memory knows nothing of them.
   */
  clear(message?: string): number;
}

/** Makes the handle on a session. */
export const createSession = <Output>(
  callable: Callable<Output>,
  place: SessionPlace,
  agentEvents$: Observable<AgentEvent>,
): Session<Output> => {
  const { seat, memory, record } = place;
  const id = seat.sessionId;
  const steer$: Session['steer$'] = (input, callId) =>
    defer(() => {
      const { running } = seat;
      return running === undefined || (callId !== undefined && callId !== running.call.callId)
        ? of(notRunning)
        : running.steering.steer$(input);
    });
  return {
    ...callable,
    id,
    memory: watchedMemory(memory, (change) => record.note(change)),
    get events$() {
      return agentEvents$.pipe(ofSession(id));
    },
    get toolkit() {
      return liveToolkit(record.toolkit);
    },
    get queue() {
      return {
        get calls() {
          return seat.queued;
        },
        get calls$() {
          return seat.queued$;
        },
        clear: seat.empty,
      };
    },
    interrupt: seat.interrupt,
    steer$,
    steer: (input, callId) => firstValueFrom(steer$(input, callId)),
    saveState$: () => savedState$(place),
    saveState: () => firstValueFrom(savedState$(place)),
    loadState$: (state) => loadedState$(place, state),
    loadState: (state) => lastValueFrom(loadedState$(place, state), { defaultValue: undefined }),
  };
};

const notRunning: SteerOutcome = { status: 'notDelivered', why: 'notRunning' };

/** Lets the events of one session's calls through, and those of all calls below them, whatever session those are in. */
const ofSession =
  (id: string): MonoTypeOperatorFunction<AgentEvent> =>
  (event$) =>
    defer(() => {
      const running = new Set<string>();
      return event$.pipe(
        filter(({ type, callId, parentId, sessionId }) => {
          const isOurs =
            sessionId === id ||
            running.has(callId) ||
            (parentId !== undefined && running.has(parentId));
          if (isOurs) running.add(callId);
          if (type === 'postCall' || type === 'error') running.delete(callId);
          return isOurs;
        }),
      );
    });

/** Where a session is: its place for a call, its messages, and what its agent knows beside them. */
interface SessionPlace {
  readonly seat: Seat;
  readonly memory: Memory;
  readonly record: SessionRecord;
}

/** Emits the state of a session as it is now, and completes. */
const savedState$ = ({ memory, record }: SessionPlace): Observable<SessionState> =>
  kept$(memory).pipe(
    contained(),
    take(1),
    failAs('memory', 'The memory could not be read'),
    map((messages) => toState({ version: stateVersion, messages, ...record.state })),
  );

/** Puts a state in the place of what a session is, all of it or nothing, and completes. The session is busy meanwhile. */
const loadedState$ = ({ seat, memory, record }: SessionPlace, state: unknown): Observable<never> =>
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

/** The memory of a session as a program has it: what the program does to the messages is told. */
const watchedMemory = (memory: Memory, tell: (change: MessagesChange) => void): Memory => {
  const replace$ = memory.replace$?.bind(memory);
  return {
    load$: () => memory.load$(),
    all$: () => kept$(memory),
    append$: (messages) =>
      defer(() => {
        let change: MemoryChange = { appended: messages, removed: [] };
        return memory.append$(messages).pipe(
          tap({
            next: (emitted) => {
              if (isMemoryChange(emitted)) change = emitted;
            },
            complete: () => memoryChanges(change).forEach(tell),
          }),
        );
      }),
    ...(replace$ !== undefined && {
      replace$: (messages: readonly Message[]): Observable<unknown> =>
        kept$(memory).pipe(
          take(1),
          defaultIfEmpty<readonly Message[], readonly Message[]>([]),
          concatMap((before) =>
            replace$(messages).pipe(
              tap({
                complete: () => memoryChanges(difference(before, messages)).forEach(tell),
              }),
            ),
          ),
        ),
    }),
  };
};

/** What stands before the first difference is left out of it. */
const difference = (before: readonly Message[], after: readonly Message[]): MemoryChange => {
  const found = before.findIndex((message, index) => !equal(message, after[index]));
  const from = found === -1 ? before.length : found;
  return { appended: after.slice(from), removed: before.slice(from).map(({ id }) => id) };
};
