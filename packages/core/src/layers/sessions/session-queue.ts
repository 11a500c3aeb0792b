import { AsyncSubject, concat, EMPTY, filter, map, Observable, startWith, Subject } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { restoreAsyncContext } from '../../flow/async-context.js';
import { MillraceError } from '../../values/errors.js';
import { type Interrupt, toInterrupt } from '../../flow/interruption.js';
import type { Message } from '../../values/message.js';
import { createTrampoline } from '../../flow/trampoline.js';
import type { RunningCall } from './steering.js';

/**
 * If the session is busy: `reject` errors with `busy`, `queue` waits for its turn, `switch` interrupts the running and
 * queued calls and then starts, `steer` adds its input to the running call and emits that call's events and reply (of
 * its own options, only `demand`, `signal`, `callMs` and `interruptOn(…)` apply).
 */
export type OnBusy = 'reject' | 'queue' | 'switch' | 'steer';

export interface Occupant {
  readonly callId: string;
  readonly input: readonly Message[];
  readonly lineage: readonly CallInfo[];
  readonly interrupt: (interrupt: Interrupt) => boolean;
  readonly running?: RunningCall;
}

export interface QueuedCall {
  readonly callId: string;
  readonly input: readonly Message[];
}

export interface Admission {
  readonly previousQueued$: Observable<never>;
  readonly queued: () => void;
}

export interface SessionQueue {
  readonly running: RunningCall | undefined;
  readonly queued: readonly QueuedCall[];
  readonly queued$: Observable<readonly QueuedCall[]>;
  admit(): Admission;
  /** Emits `superseded` if a later call replaces it, then `started` in its turn. Errors with `busy` or `queueFull`. */
  acquire$(occupant: Occupant, onBusy: OnBusy, maxQueue: number): Observable<Acquired>;
  release(occupant: Occupant): void;
  startNext(occupant: Occupant): void;
  readonly interrupt: (message?: string, callId?: string) => boolean;
  readonly clear: (message?: string) => number;
}

export type Acquired = 'started' | 'superseded';

interface QueueEntry {
  readonly occupant: Occupant;
  readonly start: () => void;
  readonly supersede: () => void;
  hasStarted: boolean;
}

interface QueueState {
  readonly holder: QueueEntry;
  readonly former?: Occupant;
  readonly waiting: readonly QueueEntry[];
}

export const createSessionQueues = (): ((sessionId: string) => SessionQueue) => {
  const states = new Map<string, QueueState>();
  const changed$ = new Subject<string>();
  // A call that ends synchronously starts the next: they must not nest.
  const trampoline = createTrampoline();
  const admitTo = createAdmissions();
  return (sessionId) => {
    const waiting = (): readonly QueueEntry[] => states.get(sessionId)?.waiting ?? [];
    const queued = (): readonly QueuedCall[] =>
      Object.freeze(
        waiting().map(({ occupant: { callId, input } }) => Object.freeze({ callId, input })),
      );
    const set = (state: QueueState | undefined): void => {
      const before = waiting();
      if (state === undefined) states.delete(sessionId);
      else states.set(sessionId, state);
      if (before !== waiting() && before.length + waiting().length > 0) changed$.next(sessionId);
    };
    const enqueue = (state: QueueState, entry: QueueEntry, onBusy: OnBusy): void => {
      // Before listeners of the change can react to it.
      if (onBusy === 'switch') {
        [state.holder, ...state.waiting].forEach((earlier) => {
          if (!earlier.hasStarted) earlier.supersede();
        });
      }
      set({ ...state, waiting: [...state.waiting, entry] });
      if (onBusy !== 'switch') return;
      if (state.holder.hasStarted) state.holder.occupant.interrupt({});
    };
    return {
      get running() {
        const holder = states.get(sessionId)?.holder;
        return holder?.hasStarted === true ? holder.occupant.running : undefined;
      },
      get queued() {
        return queued();
      },
      // Created on demand: most sessions are idle, and few are watched.
      get queued$() {
        return changed$.pipe(
          filter((id) => id === sessionId),
          startWith(sessionId),
          map(queued),
        );
      },
      admit: () => admitTo(sessionId),
      acquire$: (occupant, onBusy, maxQueue) =>
        new Observable((subscriber) => {
          const entry: QueueEntry = {
            occupant,
            hasStarted: false,
            start: () => {
              entry.hasStarted = true;
              subscriber.next('started');
            },
            supersede: () => subscriber.next('superseded'),
          };
          const state = states.get(sessionId);
          if (state === undefined) {
            set({ holder: entry, waiting: [] });
            entry.start();
            return;
          }
          const rejection = rejectionOf(sessionId, state, occupant, onBusy, maxQueue);
          if (rejection !== undefined) {
            subscriber.error(rejection);
            return;
          }
          // Before it waits: the call that it interrupts may end synchronously and start it.
          subscriber.add(() => {
            const now = states.get(sessionId);
            if (now?.waiting.includes(entry) === true) {
              set({ ...now, waiting: now.waiting.filter((other) => other !== entry) });
            }
          });
          enqueue(state, entry, onBusy);
        }),
      release: (occupant) => {
        const state = states.get(sessionId);
        if (state?.holder.occupant !== occupant) return;
        const [holder, ...rest] = state.waiting;
        set(holder === undefined ? undefined : { holder, former: occupant, waiting: rest });
      },
      startNext: (occupant) => {
        const state = states.get(sessionId);
        if (state?.former === occupant && !state.holder.hasStarted) trampoline(state.holder.start);
      },
      interrupt: (message, callId) => {
        const state = states.get(sessionId);
        const entries = state === undefined ? [] : [state.holder, ...state.waiting];
        // Without an id: the running call, not the next one, which may hold the place already.
        const entry = entries.find(({ occupant, hasStarted }) =>
          callId === undefined ? hasStarted : occupant.callId === callId,
        );
        return entry?.occupant.interrupt(toInterrupt(message)) ?? false;
      },
      clear: (message) => {
        const entries = waiting();
        entries.forEach(({ occupant }) => occupant.interrupt(toInterrupt(message)));
        return entries.length;
      },
    };
  };
};

const rejectionOf = (
  sessionId: string,
  { holder, waiting }: QueueState,
  { lineage }: Occupant,
  onBusy: OnBusy,
  maxQueue: number,
): MillraceError | undefined => {
  const busyWith = holder.occupant.lineage.at(-1);
  const waitsForItself = busyWith !== undefined && lineage.includes(busyWith);
  if (onBusy === 'reject' || onBusy === 'steer' || waitsForItself) return busy(sessionId);
  return waiting.length < maxQueue ? undefined : full(sessionId, maxQueue);
};

const busy = (sessionId: string): MillraceError =>
  new MillraceError(
    'busy',
    `The session '${sessionId}' is busy with another call. Wait until that has ended, interrupt it, or set 'onBusy' to 'queue', 'switch' or 'steer'.`,
  );

const full = (sessionId: string, maxQueue: number): MillraceError =>
  new MillraceError(
    'queueFull',
    `${maxQueue} calls are already waiting for the session '${sessionId}' ('maxQueue'). Try again when some have ended.`,
    { retryable: true },
  );

const createAdmissions = (): ((sessionId: string) => Admission) => {
  const queues = new Map<string, { readonly all$: Observable<never>; readonly waiting: number }>();
  return (sessionId) => {
    const { all$: before$, waiting } = queues.get(sessionId) ?? { all$: EMPTY, waiting: 0 };
    const queued$ = new AsyncSubject<never>();
    queues.set(sessionId, { all$: concat(before$, queued$), waiting: waiting + 1 });
    let isWaiting = true;
    return {
      previousQueued$: before$.pipe(restoreAsyncContext()),
      queued: () => {
        if (!isWaiting) return;
        isWaiting = false;
        const admissions = queues.get(sessionId);
        if (admissions === undefined || admissions.waiting === 1) queues.delete(sessionId);
        else queues.set(sessionId, { ...admissions, waiting: admissions.waiting - 1 });
        queued$.complete();
      },
    };
  };
};
