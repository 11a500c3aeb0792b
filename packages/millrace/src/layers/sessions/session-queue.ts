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
  /** Empty for what is no call. */
  readonly callId: string;
  /** The id of the message or the call that it continues after. Default: the head. */
  readonly after?: string | null | undefined;
  /** No other call may run beside it, on any branch. */
  readonly isAlone?: true;
  readonly input: readonly Message[];
  /** The calls that may wait for it, itself included. */
  readonly waiters: readonly CallInfo[];
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
  /** The running call; of several, the one that began first. */
  readonly running: RunningCall | undefined;
  runningAs(callId: string): RunningCall | undefined;
  runningAt(after: string | null | undefined): RunningCall | undefined;
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

/** The calls of one branch: one runs or is about to, the others wait. */
interface Line {
  readonly holder: QueueEntry;
  readonly former?: Occupant;
  readonly waiting: readonly QueueEntry[];
}

export const createSessionQueues = (): ((sessionId: string) => SessionQueue) => {
  const sessions = new Map<string, readonly Line[]>();
  const changed$ = new Subject<string>();
  // A call that ends synchronously starts the next: they must not nest.
  const trampoline = createTrampoline();
  const admitTo = createAdmissions();
  return (sessionId) => {
    const lines = (): readonly Line[] => sessions.get(sessionId) ?? [];
    const waiting = (): readonly QueueEntry[] =>
      lines().flatMap((line) => line.waiting.filter(({ occupant }) => occupant.callId !== ''));
    const queued = (): readonly QueuedCall[] =>
      Object.freeze(
        waiting().map(({ occupant: { callId, input } }) => Object.freeze({ callId, input })),
      );
    /** Replaces a line, or adds one, or removes it. */
    const set = (line: Line | undefined, changed: Line | undefined): void => {
      const now = line === undefined ? lines() : lines().filter((other) => other !== line);
      const place = line === undefined ? now.length : lines().indexOf(line);
      const next = changed === undefined ? now : now.toSpliced(place, 0, changed);
      const waits = (line?.waiting.length ?? 0) + (changed?.waiting.length ?? 0) > 0;
      if (next.length === 0) sessions.delete(sessionId);
      else sessions.set(sessionId, next);
      if (waits && line?.waiting !== changed?.waiting) changed$.next(sessionId);
    };
    const enqueue = (line: Line, entry: QueueEntry, onBusy: OnBusy): void => {
      // Before listeners of the change can react to it.
      if (onBusy === 'switch') {
        [line.holder, ...line.waiting].forEach((earlier) => {
          if (!earlier.hasStarted) earlier.supersede();
        });
      }
      set(line, { ...line, waiting: [...line.waiting, entry] });
      if (onBusy !== 'switch') return;
      if (line.holder.hasStarted) line.holder.occupant.interrupt({});
    };
    const runningAll = (): readonly RunningCall[] =>
      lines().flatMap(({ holder }) =>
        holder.hasStarted && holder.occupant.running !== undefined ? [holder.occupant.running] : [],
      );
    return {
      get running() {
        return runningAll()[0];
      },
      runningAs: (callId) => runningAll().find(({ info: call }) => call.callId === callId),
      runningAt: (after) => {
        const holder = lineFor(lines(), { after })?.holder;
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
          const line = lineFor(lines(), occupant);
          if (line === undefined) {
            set(undefined, { holder: entry, waiting: [] });
            entry.start();
            return;
          }
          const rejection = rejectionOf(sessionId, line, occupant, onBusy, maxQueue);
          if (rejection !== undefined) {
            subscriber.error(rejection);
            return;
          }
          // Before it waits: the call that it interrupts may end synchronously and start it.
          if (callersOf(occupant).length > 0) {
            waits.set(occupant, () => {
              const now = lines().find((other) => other.waiting.includes(entry));
              if (now === undefined) return [];
              const before = now.waiting.slice(0, now.waiting.indexOf(entry));
              return [now.holder, ...before].map((other) => other.occupant);
            });
          }
          subscriber.add(() => {
            waits.delete(occupant);
            const now = lines().find((other) => other.waiting.includes(entry));
            if (now === undefined) return;
            set(now, { ...now, waiting: now.waiting.filter((other) => other !== entry) });
          });
          enqueue(line, entry, onBusy);
        }),
      release: (occupant) => {
        const line = lines().find(({ holder }) => holder.occupant === occupant);
        if (line === undefined) return;
        const [holder, ...rest] = line.waiting;
        set(line, holder && { holder, former: occupant, waiting: rest });
      },
      startNext: (occupant) => {
        const line = lines().find(({ former }) => former === occupant);
        if (line?.holder.hasStarted === false) trampoline(line.holder.start);
      },
      interrupt: (message, callId) => {
        const entries = lines().flatMap((line) => [line.holder, ...line.waiting]);
        // Without an id: the calls that run, not the next ones, which may hold their places already.
        return entries
          .filter(({ occupant, hasStarted }) =>
            callId === undefined ? hasStarted : occupant.callId === callId,
          )
          .map(({ occupant }) => occupant.interrupt(toInterrupt(message)))
          .includes(true);
      },
      clear: (message) => {
        const entries = waiting();
        entries.forEach(({ occupant }) => occupant.interrupt(toInterrupt(message)));
        return entries.length;
      },
    };
  };
};

/** The line of the branch of a call; `undefined` if no call is on it. A call at the head waits for any other. */
const lineFor = (
  lines: readonly Line[],
  { after, isAlone }: Pick<Occupant, 'after' | 'isAlone'>,
): Line | undefined =>
  after === undefined || isAlone === true
    ? lines[0]
    : lines.find(({ holder, waiting }) =>
        [holder, ...waiting].some(({ occupant }) => isOf(after, occupant)),
      );

const isOf = (after: string | null, { callId, isAlone }: Occupant): boolean =>
  isAlone === true || after === callId || after?.startsWith(`${callId}/`) === true;

const rejectionOf = (
  sessionId: string,
  { holder, waiting }: Line,
  occupant: Occupant,
  onBusy: OnBusy,
  maxQueue: number,
): MillraceError | undefined => {
  const callers = callersOf(occupant);
  const isAwaited = ({ occupant: earlier }: QueueEntry): boolean => waitsForAny(earlier, callers);
  if (callers.length > 0 && [holder, ...waiting].some(isAwaited)) return ownBusy(sessionId);
  if (onBusy === 'reject' || onBusy === 'steer') return busy(sessionId);
  return waiting.length < maxQueue ? undefined : full(sessionId, maxQueue);
};

/** The calls whose tools may wait for this one. */
const callersOf = ({ waiters, running }: Occupant): readonly CallInfo[] =>
  waiters.filter((call) => call !== running?.info);

/** The calls of tools that wait in the queues of all sessions, and what they wait for. */
const waits = new Map<Occupant, () => readonly Occupant[]>();

/** Whether a call waits for one of these, at any distance: through calls of its tools that wait in other sessions. */
const waitsForAny = (
  { running }: Occupant,
  calls: readonly CallInfo[],
  seen = new Set<Occupant>(),
): boolean => {
  if (running === undefined) return false;
  if (calls.includes(running.info)) return true;
  return [...waits].some(([waiting, earlier]) => {
    if (seen.has(waiting) || !waiting.waiters.includes(running.info)) return false;
    seen.add(waiting);
    return earlier().some((other) => waitsForAny(other, calls, seen));
  });
};

const ownBusy = (sessionId: string): MillraceError =>
  new MillraceError(
    'busy',
    `The session '${sessionId}' is busy with a call that waits for this one, because one of its tools made it. Waiting for the session would never end: call another session, or start this call when the tool has ended.`,
  );

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
